/**
 * Charts of the engine as a whole.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import {
  Chart,
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatRate,
  Panel,
  type Series,
  Stat,
} from "../../kit/mod.ts";
import type { EngineField, EngineSamples } from "./engine_samples.ts";
import type { SamplesState } from "./use_samples.ts";

/** What one chart shows. */
interface ChartPlan {
  readonly label: string;
  readonly lines: readonly (Omit<Series, "values"> & { readonly field: EngineField })[];
  readonly format: (value: number | null) => string;
}

const CHARTS: readonly ChartPlan[] = [
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
    lines: [{ label: "In flight", field: "in_flight" }, { label: "Held", field: "held" }],
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
    label: "Processor, of one",
    lines: [{ label: "CPU", field: "cpu_percent", area: true }],
    format: formatPercent,
  },
  {
    label: "State commits per second",
    lines: [{ label: "Commits", field: "state_commits_per_s", area: true }],
    format: formatRate,
  },
  {
    label: "Unsent on lines to workers",
    lines: [{ label: "Queued", field: "queued_bytes", area: true }],
    format: formatBytes,
  },
];

/** Everything about the engine; `newest` seconds of it. */
export function MetricsEngine(
  { state: { samples, version }, newest }: { state: SamplesState; newest: number },
): VNode {
  const at_ms = useMemo(() => samples.engine.at_ms.slice(-newest), [version, newest]);
  return (
    <>
      <Now samples={samples} />
      <div class="metrics-grid">
        {CHARTS.map((plan) => (
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

/** The numbers of this second. */
function Now({ samples }: { samples: EngineSamples }): VNode {
  const now = (field: EngineField) => samples.engineLatest(field);
  const errors = now("errors_per_s");
  const lag = now("event_loop_lag_ms");
  const restarts = now("restarts");
  return (
    <div class="stats">
      <Stat label="Calls" value={formatRate(now("calls_per_s"))} />
      <Stat
        label="Errors"
        value={formatRate(errors)}
        {...(errors ?? 0) > 0 && { tone: "bad" as const }}
      />
      <Stat label="p99" value={formatDuration(now("p99_ms"))} />
      <Stat label="In flight" value={formatCount(now("in_flight"))} />
      <Stat
        label="Event-loop lag"
        value={formatDuration(lag)}
        {...(lag ?? 0) > LAG_MS_HIGH && { tone: "warn" as const }}
      />
      <Stat label="Lines" value={formatCount(now("lines"))} />
      <Stat
        label="Restarts"
        value={formatCount(restarts)}
        {...(restarts ?? 0) > 0 && { tone: "warn" as const }}
      />
    </div>
  );
}

/** Above this, calls wait for the engine itself. */
const LAG_MS_HIGH = 100;
