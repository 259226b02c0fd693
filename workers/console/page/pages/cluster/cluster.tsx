/**
 * The Cluster page: the engines that are one system, the links to them, which of them keeps the
 * state, and its log.
 *
 * @module
 */
import type { ClusterView, EngineRow } from "../../../../../engine/ports/directory.ts";
import type { VNode } from "preact";
import type { WatchedTrigger } from "../../../wire.ts";
import {
  Badge,
  type Column,
  type ConsolePage,
  Empty,
  Failed,
  formatBytes,
  formatCount,
  formatDuration,
  formatSpan,
  NONE,
  Page,
  Pairs,
  Panel,
  Skeleton,
  Table,
  useQuery,
} from "../../kit/mod.ts";
import { endsText, followText, isBehind, keeperText, logText } from "./cluster_rows.ts";

const QUERY = { function_id: "engine::cluster::engines", payload: { logs: true } };
/** Nothing fires when a link changes, so links are asked for now and then. */
export const LINK_CHANGES: readonly WatchedTrigger[] = [
  { type: "engine::metrics-sampled", config: { interval_ms: 2_000 } },
];

/** The table is as high as its rows, in pixels. */
const HEAD_HEIGHT = 32;
const ROW_HEIGHT = 36;

/** `/cluster`. */
export const clusterPage: ConsolePage = {
  path: "/cluster",
  title: "Cluster",
  icon: "link",
  group: "observe",
  key: "u",
  view: Cluster,
};

function Cluster(): VNode {
  const { status, value, error, retry } = useQuery<ClusterView>(QUERY, LINK_CHANGES);
  const info = value as ClusterView | null;
  const isAlone = info !== null && info.cluster === null;
  return (
    <Page title="Cluster" count={info?.cluster ?? undefined}>
      {status === "failed" && info === null
        ? <Failed what="The engines cannot be listed" error={error} retry={retry} />
        : info === null
        ? <Skeleton rows={4} />
        : isAlone
        ? <Alone />
        : <Known info={info} />}
    </Page>
  );
}

function Alone(): VNode {
  return (
    <Empty icon="link" title="This engine is alone">
      <p>
        With <code class="code">engine.cluster</code>{" "}
        in config.yaml, engines that share a NATS service are one system: docs/how-to/cluster.md.
      </p>
    </Empty>
  );
}

function Known({ info }: { info: ClusterView }): VNode {
  const { connected, engines, log } = info;
  return (
    <div class="stack-4">
      {!connected && (
        <p class="notice bad" role="alert">
          NATS cannot be reached: workers of this engine go on, calls of others fail until it is
          back.
        </p>
      )}
      {log?.problem && <p class="notice bad" role="alert">{log.problem}</p>}
      <Panel title="Engines" flush>
        <div style={{ display: "flex", height: `${HEAD_HEIGHT + ROW_HEIGHT * engines.length}px` }}>
          <Table
            label="Engines"
            columns={COLUMNS}
            items={engines}
            keyOf={({ life }) => life}
            rowHeight={ROW_HEIGHT}
          />
        </div>
      </Panel>
      <Panel title="State">
        <Pairs
          pairs={[
            ["Kept by", keeperText(info)],
            ["Log", log ? logText(log) : null],
            ["Log size", log ? formatBytes(log.bytes) : null],
            ["Links that ended", endsText(info)],
          ]}
        />
      </Panel>
    </div>
  );
}

const end = { align: "end" } as const;

const COLUMNS: readonly Column<EngineRow>[] = [
  {
    id: "name",
    title: "Engine",
    width: "minmax(96px, 1fr)",
    sort: ({ name }) => name,
    cell: ({ name, life, keeper }) => (
      <>
        <span class="cut" title={`Life ${life}`}>{name}</span>
        {keeper && <Badge tone="info" title="It keeps the state of the cluster">keeper</Badge>}
      </>
    ),
  },
  {
    id: "state",
    title: "State",
    width: "84px",
    cell: ({ state }) => (
      <Badge tone={state === "draining" ? "warn" : state === "here" ? "neutral" : "ok"}>
        {state}
      </Badge>
    ),
  },
  {
    id: "log",
    title: "Log",
    width: "96px",
    cell: ({ log }) => (
      <span class={`num ${isBehind(log) ? "bad-text" : ""}`}>{followText(log) ?? NONE}</span>
    ),
  },
  number("age", "Linked for", ({ age_ms }) => formatSpan(age_ms)),
  { ...number("rtt", "Round trip", ({ rtt_ms }) => formatDuration(rtt_ms)), hide: "tablet" },
  number("out", "Calls out", ({ calls_out }) => formatCount(calls_out)),
  number("in", "Calls in", ({ calls_in }) => formatCount(calls_in)),
  {
    ...number("bytes", "Bytes out / in", (link) => {
      return `${formatBytes(link.bytes_out)} / ${formatBytes(link.bytes_in)}`;
    }),
    width: "164px",
    hide: "tablet",
  },
  { ...number("queued", "Queued", (link) => formatBytes(link.queued_bytes)), hide: "tablet" },
  {
    id: "version",
    title: "Version",
    width: "72px",
    ...end,
    hide: "tablet",
    cell: ({ version }) => <span class="quiet">{version}</span>,
  },
];

function number(
  id: string,
  title: string,
  text: (link: NonNullable<EngineRow["link"]>) => string,
): Column<EngineRow> {
  return {
    id,
    title,
    width: "88px",
    ...end,
    hide: "phone",
    cell: ({ link }) => <span class="num">{link === null ? NONE : text(link)}</span>,
  };
}
