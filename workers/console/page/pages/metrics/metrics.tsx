/**
 * The Metrics page: charts of the engine, of its functions and of its workers.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import {
  Chart,
  type ConsolePage,
  Empty,
  Failed,
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatRate,
  Page,
  Panel,
  Segments,
  type Series,
  Skeleton,
  Stat,
  Tabs,
  useQueryMember,
} from "../../kit/mod.ts";
import { AlertsMark, MetricsAlerts } from "./alerts.tsx";
import { MetricsFunctions } from "./metrics_functions.tsx";
import {
  CHARTED_MAX,
  type EngineField,
  type EngineSamples,
  type SamplesState,
  useSamples,
  type WorkerField,
} from "./samples.ts";

/** A longer delay means that calls wait for the engine itself. */
const LAG_MS_HIGH = 100;

const SPANS = [
  { value: "60", label: "1 min" },
  { value: "", label: "5 min" },
  { value: "900", label: "15 min" },
];
const TABS = [
  { id: "engine", title: "Engine" },
  { id: "functions", title: "Functions" },
  { id: "workers", title: "Workers" },
  { id: "alerts", title: "Alerts" },
];

/** `/metrics`. */
export const metricsPage: ConsolePage = {
  path: "/metrics",
  title: "Metrics",
  icon: "metrics",
  group: "observe",
  key: "m",
  view: Metrics,
  mark: AlertsMark,
};

function Metrics(): VNode {
  const state = useSamples();
  const [span, setSpan] = useQueryMember("span");
  const [tab, setTab] = useQueryMember("tab", "engine");
  const { samples, status } = state;
  const newest = span === "60" || span === "900" ? Number(span) : 300;
  const isEmpty = samples.engine.at_ms.length === 0;
  return (
    <Page
      title="Metrics"
      actions={tab === "engine" && (
        <Segments label="How far back" value={span} choices={SPANS} onChange={setSpan} />
      )}
    >
      {status === "failed" && isEmpty
        ? <Failed what="There are no metrics" error={state.error} retry={state.retry} />
        : isEmpty
        ? (status === "loading" ? <Skeleton rows={10} /> : <NothingYet />)
        : (
          <div class="metrics">
            <Tabs label="What is measured" tabs={TABS} value={tab} onChange={setTab}>
              {tab === "functions"
                ? <MetricsFunctions state={state} />
                : tab === "workers"
                ? <MetricsWorkers state={state} />
                : tab === "alerts"
                ? <MetricsAlerts />
                : <MetricsEngine state={state} newest={newest} />}
            </Tabs>
          </div>
        )}
    </Page>
  );
}

function NothingYet(): VNode {
  return (
    <Empty icon="metrics" title="The first second is being measured">
      Charts show up here by themselves.
    </Empty>
  );
}

/** The content of a chart. */
interface ChartPlan {
  readonly label: string;
  readonly lines: readonly (Omit<Series, "values"> & { readonly field: EngineField })[];
  readonly format: (value: number | null) => string;
}

const ENGINE_CHARTS: readonly ChartPlan[] = [
  {
    label: "Calls per second",
    lines: [
      { label: "Calls", field: "calls_per_s", area: true },
      { label: "Errors", field: "errors_per_s", tone: "bad" },
    ],
    format: formatRate,
  },
  {
    label: "Latency",
    lines: [{ label: "p50", field: "p50_ms" }, { label: "p99", field: "p99_ms" }],
    format: formatDuration,
  },
  {
    label: "Calls that run or wait",
    lines: [{ label: "In flight", field: "in_flight" }, { label: "Queued", field: "held" }],
    format: formatCount,
  },
  {
    label: "Event-loop lag of the engine",
    lines: [{ label: "Most", field: "event_loop_lag_ms", area: true }],
    format: formatDuration,
  },
  {
    label: "Memory of the engine",
    lines: [{ label: "Resident", field: "memory_bytes" }, { label: "Heap", field: "heap_bytes" }],
    format: formatBytes,
  },
  {
    label: "CPU (1 core)",
    lines: [{ label: "CPU", field: "cpu_percent", area: true }],
    format: formatPercent,
  },
  {
    label: "State commits per second",
    lines: [{ label: "Commits", field: "state_commits_per_s", area: true }],
    format: formatRate,
  },
  {
    label: "Unsent to workers",
    lines: [{ label: "Queued", field: "queued_bytes", area: true }],
    format: formatBytes,
  },
];

/** Charts of the engine over the `newest` seconds. */
function MetricsEngine(
  { state: { samples, version }, newest }: { state: SamplesState; newest: number },
): VNode {
  const at_ms = useMemo(() => samples.engine.at_ms.slice(-newest), [version, newest]);
  return (
    <>
      <Now samples={samples} />
      <div class="metrics-grid">
        {ENGINE_CHARTS.map((plan) => (
          <Panel key={plan.label}>
            <Chart
              label={plan.label}
              at_ms={at_ms}
              series={plan.lines.map(({ field, ...line }) => ({
                ...line,
                values: samples.engineSeries(field).slice(-newest),
              }))}
              format={plan.format}
              sync="engine"
            />
          </Panel>
        ))}
      </div>
    </>
  );
}

/** The engine in the last minute and now. */
function Now({ samples }: { samples: EngineSamples }): VNode {
  const now = (field: EngineField) => samples.engineLatest(field);
  const minute = (field: EngineField) => samples.engineMinute(field);
  const errors = minute("errors_per_s");
  const lag = minute("event_loop_lag_ms");
  const restarts = now("restarts");
  return (
    <div class="stats">
      <Stat label="Calls, last minute" value={formatRate(minute("calls_per_s"))} />
      <Stat
        label="Errors, last minute"
        value={formatRate(errors)}
        {...(errors ?? 0) > 0 && { tone: "bad" as const }}
      />
      <Stat label="p99, last minute" value={formatDuration(minute("p99_ms"))} />
      <Stat label="In flight" value={formatCount(now("in_flight"))} />
      <Stat
        label="Lag, last minute"
        value={formatDuration(lag)}
        {...(lag ?? 0) > LAG_MS_HIGH && { tone: "warn" as const }}
      />
      <Stat label="Connections" value={formatCount(now("lines"))} />
      <Stat
        label="Restarts"
        value={formatCount(restarts)}
        {...(restarts ?? 0) > 0 && { tone: "warn" as const }}
      />
    </div>
  );
}

const WORKER_CHARTS: readonly {
  readonly field: WorkerField;
  readonly label: string;
  readonly format: (value: number | null) => string;
}[] = [
  { field: "memory_bytes", label: "Memory", format: formatBytes },
  { field: "cpu_percent", label: "CPU (1 core)", format: formatPercent },
  { field: "in_flight", label: "Calls in flight", format: formatCount },
  { field: "event_loop_lag_ms", label: "Event-loop lag (p99)", format: formatDuration },
];

/** Charts of the workers with the largest values. */
function MetricsWorkers({ state: { samples, version } }: { state: SamplesState }): VNode {
  const { workers } = samples;
  const at_ms = useMemo(() => workers.at_ms, [version]);
  if (workers.keys.length === 0) {
    return (
      <Empty icon="workers" title="No worker was measured yet">
        Workers with an SDK say themselves what they use, every few seconds.
      </Empty>
    );
  }
  return (
    <div class="metrics-grid">
      {WORKER_CHARTS.map(({ field, label, format }) => {
        const keys = workers.largest(field, CHARTED_MAX)
          .filter((key) => workers.last(key, field) !== null);
        if (keys.length === 0) return null;
        const names = keys.map((key) => samples.workerName(key));
        return (
          <Panel key={field}>
            <Chart
              label={label}
              at_ms={at_ms}
              series={keys.map((key, i) => ({
                label: uniqueName(names, i, key),
                values: workers.series(key, field),
              }))}
              format={format}
              sync="workers"
            />
          </Panel>
        );
      })}
    </div>
  );
}

/** Replicas share a name, so part of their id is added. */
function uniqueName(names: readonly string[], at: number, id: string): string {
  const name = names[at]!;
  return names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} ${id.slice(0, 6)}`;
}
