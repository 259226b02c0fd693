/**
 * One trace: as a waterfall, as a flame graph, as a map, as what was said, and with its logs.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  Badge,
  CopyButton,
  Empty,
  Failed,
  formatCount,
  formatDateTime,
  formatDuration,
  Link,
  link,
  Page,
  Skeleton,
  Split,
  Tabs,
  useNow,
  useQuery,
  useQueryMember,
} from "../../kit/mod.ts";
import { ALL_LOGS } from "../logs/log_record.ts";
import { readServiceMap } from "./service_map.ts";
import { serviceColours } from "./service_colours.ts";
import type { SpanTree } from "./span_tree.ts";
import { type TimeWindow, wholeWindow } from "./waterfall.ts";
import { LogTable } from "../logs/log_table.tsx";
import { useLogs } from "../logs/use_logs.ts";
import { ServiceMapView } from "./service_map_view.tsx";
import { SpanDetail } from "./span_detail.tsx";
import { FlameView } from "./flame_view.tsx";
import { PathView } from "./path_view.tsx";
import { type TraceSpans, useTraceSpans } from "./trace_spans.ts";
import { Waterfall } from "./waterfall_view.tsx";

const TABS = [
  { id: "", title: "Waterfall" },
  { id: "flame", title: "Flame graph" },
  { id: "path", title: "Path" },
  { id: "map", title: "Map" },
  { id: "logs", title: "Logs" },
];

/** What the views of a trace share. */
export interface TraceViewProps {
  readonly tree: SpanTree;
  /** Service to the number of its colour, from 1. */
  readonly colours: ReadonlyMap<string, number>;
  readonly nowMs: number;
  readonly window: TimeWindow;
  /** `null` shows all. */
  readonly setWindow: (window: TimeWindow | null) => void;
  /** Id of the chosen span; empty when there is none. */
  readonly chosen: string;
  readonly choose: (span_id: string) => void;
}

/** `/traces/<trace id>`. */
export function TraceView({ trace_id }: { trace_id: string }): VNode {
  const trace = useTraceSpans(trace_id);
  const { tree } = trace;
  const root = tree.rows[0]?.span;
  return (
    <Page
      fill
      title={
        <span class="trace-title">
          <Link to="/traces">Traces</Link>
          <span class="quiet" aria-hidden="true">/</span>
          <span class="cut">{root?.name ?? "Trace"}</span>
        </span>
      }
      count={root && <TraceFacts trace={trace} />}
      actions={
        <>
          <code class="code trace-id" title="Trace id">{trace_id}</code>
          <CopyButton text={() => trace_id} label="Copy the trace id" />
        </>
      }
    >
      {trace.status === "loading" && <Skeleton rows={12} />}
      {trace.status === "failed" && (
        <Failed what="The trace cannot be read" error={trace.error} retry={trace.retry} />
      )}
      {trace.status === "ready" && (root ? <Views trace={trace} trace_id={trace_id} /> : <Gone />)}
    </Page>
  );
}

function Gone(): VNode {
  return (
    <Empty
      icon="traces"
      title="The engine does not know this trace"
      action={<Link class="button" to="/traces">Show the newest traces</Link>}
    >
      It was not sampled, or newer ones have taken its place: traces are kept in a ring of bounded
      size (traces.memory_mb of engine-observability).
    </Empty>
  );
}

function TraceFacts({ trace: { tree, spans, total } }: { trace: TraceSpans }): VNode {
  const now = useNow();
  const { startMs, endMs, isPending, rows } = tree;
  const failed = rows.filter(({ span }) => span.failed).length;
  return (
    <span class="trace-facts">
      <span class="num" title="When it started">{formatDateTime(startMs, true)}</span>
      <b class="num">{formatDuration((isPending ? Math.max(now, endMs) : endMs) - startMs)}</b>
      <span class="num">
        {formatCount(rows.length)} {rows.length === 1 ? "span" : "spans"}
        {total > spans.length && ` of ${formatCount(total)}`}
      </span>
      {isPending && <Badge tone="info" dot>running</Badge>}
      {failed > 0 && <Badge tone="bad" dot>{`${formatCount(failed)} failed`}</Badge>}
    </span>
  );
}

function Views({ trace, trace_id }: { trace: TraceSpans; trace_id: string }): VNode {
  const { tree } = trace;
  const [tab, setTab] = useQueryMember("view");
  const [chosen, choose] = useQueryMember("span");
  const [zoom, setWindow] = useState<TimeWindow | null>(null);
  const now = useNow();
  const nowMs = tree.isPending ? Math.max(now, tree.endMs) : tree.endMs;
  const colours = useMemo(() => serviceColours(tree), [tree]);
  const window = useMemo(() => zoom ?? wholeWindow(tree, nowMs), [zoom, tree, nowMs]);
  const props = { tree, colours, nowMs, window, setWindow, chosen, choose };
  const index = useMemo(
    () => chosen === "" ? -1 : tree.rows.findIndex(({ span }) => span.id === chosen),
    [tree, chosen],
  );
  const row = tree.rows[index];
  return (
    <Split
      detail={row && (
        <SpanDetail
          key={chosen}
          tree={tree}
          row={row}
          nowMs={nowMs}
          onClose={() => choose("")}
        />
      )}
    >
      <Tabs label="Views of the trace" tabs={TABS} value={tab} onChange={setTab}>
        {tab === "flame" && <FlameView {...props} />}
        {tab === "path" && <PathView {...props} />}
        {tab === "map" && <TraceMap trace_id={trace_id} spans={trace.spans.length} />}
        {tab === "logs" && <TraceLogs trace_id={trace_id} />}
        {!TABS.some(({ id }) => id !== "" && id === tab) && <Waterfall {...props} />}
      </Tabs>
    </Split>
  );
}

/** The map of this trace, read anew when it has grown. */
function TraceMap({ trace_id, spans }: { trace_id: string; spans: number }): VNode {
  const payload = { trace_id };
  const query = useQuery({ function_id: "engine::traces::map", payload });
  const drawn = useRef(spans);
  useEffect(() => {
    if (drawn.current !== spans) query.retry();
    drawn.current = spans;
  }, [spans]);
  const map = useMemo(() => readServiceMap(query.value), [query.value]);
  if (query.status === "loading") return <Skeleton rows={6} />;
  if (query.status === "failed") {
    return <Failed what="The map cannot be made" error={query.error} retry={query.retry} />;
  }
  return <ServiceMapView map={map} empty={<Empty icon="flow" title="Nothing to draw" />} />;
}

function TraceLogs({ trace_id }: { trace_id: string }): VNode {
  const filter = useMemo(() => ({ ...ALL_LOGS, traceId: trace_id }), [trace_id]);
  const logs = useLogs(filter, false);
  return (
    <>
      <LogTable
        logs={logs}
        hideTrace
        empty={
          <Empty icon="logs" title="Nothing was logged">
            What the functions of this trace log or print appears here.
          </Empty>
        }
      />
      <p class="below">
        <Link to={link("/logs", { trace: trace_id })}>Show them on the Logs page</Link>
      </p>
    </>
  );
}
