/**
 * The Workers page: every worker with its state and gauges, and the detail view
 * of one.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import {
  Badge,
  Button,
  type Column,
  type ConsolePage,
  Dot,
  Empty,
  Failed,
  formatBytes,
  formatCount,
  formatPercent,
  type Found,
  Link,
  link,
  NONE,
  Page,
  type PageProps,
  Search,
  Segments,
  Since,
  Skeleton,
  Sparkline,
  Split,
  Table,
  useQuery,
  useQueryMember,
  useShell,
} from "../../kit/mod.ts";
import { type Gauge, useWorkerGauges, type WorkerGauges } from "./worker_gauges.ts";
import { WorkerDetail } from "./worker_detail.tsx";
import {
  type ConnectedWorker,
  gaugeIds,
  isolationText,
  matchesSearch,
  stateTone,
  upCount,
  type WorkerRow,
  workerRows,
} from "./worker_rows.ts";

/** The workers that the engine runs, built-in ones included. */
export const SUPERVISED = {
  function_id: "engine::supervisor::list",
  items: "workers",
  key: ["name"],
};
/** All connected workers. */
export const CONNECTIONS = { function_id: "engine::workers::list", items: "workers", key: ["id"] };
/** What changes both lists. */
export const WORKER_CHANGES = [{ type: "engine::supervisor-changed" }, {
  type: "engine::workers-available",
}];
const SPARK_SAMPLES = 60;

const SHOWN = [
  { value: "", label: "All" },
  { value: "managed", label: "Managed" },
  { value: "builtin", label: "Built in" },
  { value: "external", label: "External" },
  { value: "trouble", label: "Trouble" },
];

/** `/workers`, `/workers/<name>`. */
export const workersPage: ConsolePage = {
  path: "/workers",
  title: "Workers",
  icon: "workers",
  group: "build",
  key: "w",
  view: Workers,
  onPhones: true,
  finders: [
    { kind: "Worker", query: SUPERVISED, on: WORKER_CHANGES, find: (item) => found(item as never) },
  ],
};

function Workers({ rest }: PageProps): VNode {
  const { router } = useShell();
  const supervised = useQuery<WorkerStatus>(SUPERVISED, WORKER_CHANGES);
  const connections = useQuery<ConnectedWorker>(CONNECTIONS, WORKER_CHANGES);
  const [search, setSearch] = useQueryMember("q");
  const [shown, setShown] = useQueryMember("show");
  const gauges = useWorkerGauges();
  const all = useMemo(
    () => workerRows(supervised.items, connections.items),
    [supervised.items, connections.items],
  );
  const rows = useMemo(
    () => all.filter((row) => isShown(row, shown) && matchesSearch(row, search)),
    [all, shown, search],
  );
  const key = rest[0] ?? null;
  const open = key === null ? undefined : all.find((row) => row.key === key);
  const go = (to: string | null) => {
    const query = { q: search, show: shown, sort: router.route.value.query.get("sort") };
    router.go(to === null ? link("/workers", query) : link("/workers", to, query));
  };
  const failed = [supervised, connections].find(({ status }) => status === "failed");
  const isLoading = supervised.status === "loading" || connections.status === "loading";
  return (
    <Page
      fill
      title="Workers"
      count={isLoading ? undefined : countWords(all)}
      filters={
        <>
          <Search label="Search workers" value={search} onChange={setSearch} />
          <Segments label="Show" value={shown} choices={SHOWN} onChange={setShown} />
        </>
      }
    >
      <Split
        detail={key !== null && !isLoading && (
          <WorkerDetail
            name={key}
            row={open}
            gauges={gauges}
            onClose={() => go(null)}
          />
        )}
      >
        {failed && all.length === 0
          ? <Failed what="The workers cannot be listed" error={failed.error} retry={failed.retry} />
          : isLoading
          ? <Skeleton rows={9} />
          : (
            <WorkerTable
              rows={rows}
              gauges={gauges.gauges}
              open={key}
              onOpen={(row) => go(row.key)}
              empty={<NoWorkers count={all.length} shown={search === "" ? shown : ""} />}
            />
          )}
      </Split>
    </Page>
  );
}

/** `shown`: what is shown of them, if that alone left nothing. */
function NoWorkers({ count, shown }: { count: number; shown: string }): VNode {
  const { router } = useShell();
  const showAll = <Button onPress={() => router.go("/workers")}>Show all workers</Button>;
  if (count > 0 && shown === "trouble") {
    return (
      <Empty icon="check" title="All workers healthy" action={showAll}>
        <p>{`Of ${count}, none has failed, waits or was restarted after a failure.`}</p>
      </Empty>
    );
  }
  if (count > 0) {
    return (
      <Empty icon="filter" title="No worker fits" action={showAll}>
        <p>Search for less, or show all of them.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="workers" title="No workers yet">
      <p>Add a directory with a worker in it, or start a program that uses the SDK.</p>
      <pre>engine worker add ./workers/math</pre>
    </Empty>
  );
}

function isShown(row: WorkerRow, shown: string): boolean {
  if (shown === "trouble") return isTrouble(row);
  return shown === "" || row.kind === shown;
}

function isTrouble({ state, restarts, reason, kind }: WorkerRow): boolean {
  if (["failed", "waiting", "draining", "suspect"].includes(state)) return true;
  return restarts > 0 || (kind === "managed" && reason !== null && state !== "stopped");
}

function countWords(rows: readonly WorkerRow[]): string {
  const { up, all, elsewhere } = upCount(rows);
  const failed = rows.filter(({ state }) => state === "failed").length;
  return `${up} of ${all} up${failed > 0 ? `, ${failed} failed` : ""}` +
    (elsewhere > 0 ? `, ${elsewhere} elsewhere` : "");
}

function found({ name, state, kind }: WorkerStatus): Found {
  return { text: name, hint: kind === "builtin" ? "built in" : state, to: link("/workers", name) };
}

/** The table of workers. */
function WorkerTable(
  { rows, gauges, open, onOpen, empty }: {
    rows: readonly WorkerRow[];
    gauges: WorkerGauges;
    /** Key of the row that is open. */
    open: string | null;
    onOpen: (row: WorkerRow) => void;
    empty: ComponentChildren;
  },
): VNode {
  const columns = useMemo(() => columnsFor(gauges), [gauges]);
  return (
    <Table
      label="Workers"
      columns={columns}
      items={rows}
      keyOf={({ key }) => key}
      order={{ column: "name", descending: false }}
      kind="things"
      open={open}
      onOpen={onOpen}
      empty={empty}
    />
  );
}

function columnsFor(gauges: WorkerGauges): readonly Column<WorkerRow>[] {
  return [
    {
      id: "name",
      title: "Name",
      width: "minmax(150px, 1fr)",
      sort: ({ name }) => name,
      cell: (row) => <Name row={row} />,
    },
    {
      id: "state",
      title: "State",
      width: "92px",
      sort: ({ state }) => state,
      cell: (row) => <State row={row} />,
    },
    {
      id: "isolation",
      title: "Isolation",
      width: "72px",
      hide: "tablet",
      sort: isolationText,
      cell: (row) => <span class="quiet">{isolationText(row)}</span>,
    },
    {
      id: "runtime",
      title: "Runtime",
      width: "64px",
      hide: "tablet",
      sort: ({ runtime }) => runtime,
      cell: ({ runtime }) => <span class="cut quiet">{runtime ?? NONE}</span>,
    },
    {
      id: "version",
      title: "SDK",
      width: "56px",
      hide: "tablet",
      sort: ({ version }) => version,
      cell: ({ version }) => (
        <span class="cut quiet" title="Version of the SDK that it uses">{version ?? NONE}</span>
      ),
    },
    {
      id: "pid",
      title: "Pid",
      width: "60px",
      align: "end",
      hide: "tablet",
      sort: ({ pid }) => pid,
      cell: ({ pid }) => <span class="quiet">{pid ?? NONE}</span>,
    },
    {
      id: "up",
      title: "Up",
      width: "64px",
      align: "end",
      hide: "phone",
      sort: ({ started_at_ms }) => started_at_ms === null ? null : -started_at_ms,
      cell: ({ started_at_ms }) => started_at_ms === null ? NONE : <Since ms={started_at_ms} />,
    },
    {
      id: "functions",
      title: "Functions",
      width: "76px",
      align: "end",
      hide: "tablet",
      sort: ({ functions }) => functions,
      cell: ({ functions }) => formatCount(functions),
    },
    {
      id: "flight",
      title: "In flight",
      width: "68px",
      align: "end",
      sort: (row) => inFlight(row, gauges),
      cell: (row) => formatCount(inFlight(row, gauges)),
    },
    usage(gauges, "memory_bytes", "Memory", formatBytes, "info"),
    usage(gauges, "cpu_percent", "CPU", formatPercent, "accent"),
  ];
}

function usage(
  gauges: WorkerGauges,
  gauge: Gauge & ("memory_bytes" | "cpu_percent"),
  title: string,
  format: (value: number | null) => string,
  tone: "info" | "accent",
): Column<WorkerRow> {
  const now = (row: WorkerRow) => gauges.now(gaugeIds(row), gauge) ?? row.status?.[gauge] ?? null;
  return {
    id: gauge,
    title,
    width: "132px",
    align: "end",
    hide: "phone",
    sort: now,
    cell: (row) => {
      const value = now(row);
      if (value === null) return <span class="quiet">{NONE}</span>;
      return (
        <>
          <Sparkline
            values={gauges.history(gaugeIds(row), gauge).slice(-SPARK_SAMPLES)}
            label={`${title} of ${row.name} in the last minute`}
            tone={tone}
            width={56}
            height={20}
            {...gauge === "cpu_percent" && { max: Math.max(20, value) }}
          />
          <span class="gauge-value">{format(value)}</span>
        </>
      );
    },
  };
}

function Name({ row }: { row: WorkerRow }): VNode {
  const about = row.reason ?? row.connections[0]?.description ?? null;
  return (
    <>
      <Dot
        tone={stateTone(row.state)}
        label={row.state}
        pulse={stateTone(row.state) === "accent"}
      />
      <span class="two-lines">
        <span class="row-flex">
          <Link to={link("/workers", row.key)} class="cut row-name">{row.name}</Link>
          {row.replicas > 1 && <span class="quiet">×{row.replicas}</span>}
          {row.engine !== null && (
            <Badge tone="neutral" title={`It is connected to engine ${row.engine}`}>
              at {row.engine}
            </Badge>
          )}
        </span>
        {about !== null && <span class="two-lines-more cut quiet" title={about}>{about}</span>}
      </span>
    </>
  );
}

function State({ row }: { row: WorkerRow }): VNode {
  return (
    <Badge tone={stateTone(row.state)} {...row.reason !== null && { title: row.reason }}>
      {row.state}
    </Badge>
  );
}

function inFlight({ ids, in_flight }: WorkerRow, gauges: WorkerGauges): number {
  return gauges.now(ids, "in_flight") ?? in_flight;
}
