/**
 * Metrics of functions: charts of the busiest ones, and totals since the engine started.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { bucketed, type Combine, OTHER, topAndOther } from "./buckets.ts";
import {
  CHARTED_MAX,
  type EngineSamples,
  type FunctionField,
  type SamplesState,
} from "./samples.ts";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Chart,
  type Column,
  Empty,
  Failed,
  formatCount,
  formatDuration,
  formatRate,
  Panel,
  type Series,
  Skeleton,
  Table,
  useQuery,
  useShell,
} from "../../kit/mod.ts";
import {
  EngineOwnToggle,
  functionAddress,
  functionKey,
  isOwnFunction,
  useEngineOwn,
} from "../references.tsx";

const BY_CALLS = { column: "calls", descending: true } as const;

/** An item of `engine::metrics::functions`. */
interface FunctionTotals {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly in_flight: number;
  readonly p50_ms: number | null;
  readonly p90_ms: number | null;
  readonly p99_ms: number | null;
  readonly max_ms: number | null;
}

const QUERY: WatchedQuery = {
  function_id: "engine::metrics::functions",
  items: "functions",
  key: ["namespace", "function_id"],
};
const ON: readonly WatchedTrigger[] = [
  { type: "engine::metrics-sampled", config: { interval_ms: 5_000 } },
];
/** Calls of this time become one point of a chart. */
const POINT_MS = 10_000;
/** Metrics of functions. */
export function MetricsFunctions({ state }: { state: SamplesState }): VNode {
  const [all] = useEngineOwn();
  return (
    <>
      <FunctionCharts state={state} all={all} />
      <Panel
        title="Since the engine started"
        flush
        actions={<EngineOwnToggle />}
      >
        <Totals all={all} />
      </Panel>
    </>
  );
}

const CHARTS: readonly {
  readonly field: FunctionField;
  readonly label: string;
  readonly format: (value: number | null) => string;
  /** How the samples of a point, and the functions beyond the first ones, become one value. */
  readonly samples: Combine;
  readonly others: "sum" | "max";
}[] = [
  {
    field: "calls_per_s",
    label: "Calls per second",
    format: formatRate,
    samples: "mean",
    others: "sum",
  },
  {
    field: "errors_per_s",
    label: "Errors per second",
    format: formatRate,
    samples: "mean",
    others: "sum",
  },
  {
    field: "p99_ms",
    label: "Slowest (p99)",
    format: formatDuration,
    samples: "max",
    others: "max",
  },
];

/** Charts of the functions with the largest values, and one line for all others. */
function FunctionCharts(
  { state: { samples, version }, all }: { state: SamplesState; all: boolean },
): VNode {
  // A point changes every ten seconds, but the newest one with each sample.
  const charts = useMemo(
    () => CHARTS.map((plan) => ({ ...plan, ...linesOf(samples, plan, all) })),
    [version, all],
  );
  const shown = charts.filter(({ series }) => series.length > 0);
  if (shown.length === 0) {
    return (
      <Panel title="Functions">
        <Empty icon="metrics" title="No calls in the last five minutes">
          Charts show up here within a second of the first one.
        </Empty>
      </Panel>
    );
  }
  return (
    <div class="metrics-grid">
      {shown.map(({ label, format, at_ms, series }) => (
        <Panel key={label}>
          <Chart label={label} at_ms={at_ms} series={series} format={format} sync="functions" />
        </Panel>
      ))}
    </div>
  );
}

function linesOf(
  { functions }: EngineSamples,
  plan: (typeof CHARTS)[number],
  all: boolean,
): { at_ms: readonly number[]; series: Series[] } {
  const times = functions.at_ms;
  const own = functions.keys.filter((key) =>
    all || !isOwnFunction(key.slice(key.indexOf("/") + 1))
  );
  const lines = own.map((key) => ({
    key,
    values: bucketed(times, functions.series(key, plan.field), POINT_MS, plan.samples).values,
  })).filter(({ values }) => values.some((value) => (value ?? 0) > 0));
  const { at_ms } = bucketed(times, [], POINT_MS, "mean");
  const series = topAndOther(lines, CHARTED_MAX, plan.others).map(({ key, values }): Series => ({
    label: key === OTHER ? `${lines.length - CHARTED_MAX} others` : shortKey(key),
    values,
    ...key === OTHER && { tone: "neutral" as const },
  }));
  return { at_ms, series };
}

function shortKey(key: string): string {
  // Their calls are counted together, beside the functions that are summed up as others.
  if (key === "/(other)") return "absent functions";
  return key.replace(/^(?:default)?\//, "");
}

function Totals({ all }: { all: boolean }): VNode {
  const { router } = useShell();
  const found = useQuery<FunctionTotals>(QUERY, ON);
  const shown = useMemo(
    () => all ? found.items : found.items.filter(({ function_id }) => !isOwnFunction(function_id)),
    [all, found.items],
  );
  if (found.status === "failed") {
    return <Failed what="The totals cannot be read" error={found.error} retry={found.retry} />;
  }
  if (found.status === "loading") return <Skeleton rows={6} />;
  return (
    <div class="metrics-table">
      <Table<FunctionTotals>
        label="Functions since the engine started"
        kind="figures"
        columns={COLUMNS}
        items={shown}
        keyOf={({ namespace, function_id }) => functionKey(namespace, function_id)}
        order={BY_CALLS}
        onOpen={({ function_id, namespace }) => router.go(functionAddress(function_id, namespace))}
        empty={<Empty icon="functions" title="Nothing was called yet">Call something first.</Empty>}
      />
    </div>
  );
}

const COLUMNS: readonly Column<FunctionTotals>[] = [
  {
    id: "function",
    title: "Function",
    width: "minmax(120px, 3fr)",
    sort: ({ function_id }) => function_id,
    cell: ({ function_id }) => <code class="cut">{function_id}</code>,
  },
  number("calls", "Calls", ({ calls }) => calls, formatCount),
  {
    id: "errors",
    title: "Errors",
    width: "76px",
    align: "end",
    sort: errorsOf,
    cell: (each) => <Errors each={each} />,
  },
  { ...number("flight", "In flight", ({ in_flight }) => in_flight, formatCount), hide: "tablet" },
  { ...number("p50", "p50", ({ p50_ms }) => p50_ms, formatDuration), hide: "phone" },
  { ...number("p90", "p90", ({ p90_ms }) => p90_ms, formatDuration), hide: "tablet" },
  number("p99", "p99", ({ p99_ms }) => p99_ms, formatDuration),
  { ...number("max", "Longest", ({ max_ms }) => max_ms, formatDuration), hide: "phone" },
];

function number(
  id: string,
  title: string,
  value: (each: FunctionTotals) => number | null,
  format: (value: number | null) => string,
): Column<FunctionTotals> {
  return {
    id,
    title,
    width: "76px",
    align: "end",
    sort: value,
    cell: (each) => <span class="num">{format(value(each))}</span>,
  };
}

function Errors({ each }: { each: FunctionTotals }): VNode {
  const count = errorsOf(each);
  const codes = Object.entries(each.errors).map(([code, count]) => `${code}: ${count}`);
  return (
    <span class={`num ${count === 0 ? "faint" : "bad-text"}`} title={codes.join("\n")}>
      {formatCount(count)}
    </span>
  );
}

function errorsOf({ errors }: FunctionTotals): number {
  return Object.values(errors).reduce((sum, count) => sum + count, 0);
}
