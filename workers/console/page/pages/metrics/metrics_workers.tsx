/**
 * Workers by what they use: memory, processor, calls, and how late their event loops are.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { CHARTED_MAX } from "./engine_samples.ts";
import {
  Chart,
  Empty,
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  Panel,
} from "../../kit/mod.ts";
import type { WorkerField } from "./engine_samples.ts";
import type { SamplesState } from "./use_samples.ts";

const CHARTS: readonly {
  readonly field: WorkerField;
  readonly label: string;
  readonly format: (value: number | null) => string;
}[] = [
  { field: "memory_bytes", label: "Memory", format: formatBytes },
  { field: "cpu_percent", label: "Processor, of one", format: formatPercent },
  { field: "in_flight", label: "Calls in flight", format: formatCount },
  { field: "event_loop_lag_ms", label: "Event-loop lag (p99)", format: formatDuration },
];

/** See the module. */
export function MetricsWorkers({ state: { samples, version } }: { state: SamplesState }): VNode {
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
      {CHARTS.map(({ field, label, format }) => {
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

/** Replicas have one name; part of their ids tells them apart. */
function uniqueName(names: readonly string[], at: number, id: string): string {
  const name = names[at]!;
  return names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} ${id.slice(0, 6)}`;
}
