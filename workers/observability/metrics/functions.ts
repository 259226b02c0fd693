/**
 * Registers `engine::metrics::*`, `engine::rollups::list` and `engine::alerts::*`.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { Meters } from "../../../engine/ports/telemetry.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { fit } from "../../kit/fit.ts";
import * as v from "../../kit/schema.ts";
import type { Alerts } from "./alerts.ts";
import { engineTotals, functionTotals } from "./meters.ts";
import type { MetricPoint, SdkMetrics } from "./otlp.ts";
import type { Rollups } from "./rollups.ts";
import { type EngineSample, type Sampler, WINDOW_STEPS_MAX } from "./sampler.ts";
import { METRICS_SAMPLES_MAX, type SeriesStore } from "./series.ts";
import type { WorkerMonitor } from "./workers.ts";

/** Sources of the functions. */
export interface MetricsSources {
  readonly clock: Clock;
  readonly meters: Meters;
  readonly directory: Pick<Directory, "workers">;
  readonly sampler: Sampler;
  readonly series: SeriesStore;
  readonly rollups: Rollups;
  readonly alerts: Alerts;
  readonly sdk: SdkMetrics;
  readonly workers: Pick<WorkerMonitor, "loads">;
  /** Workers that connected and disconnected since the engine started. */
  readonly workerCounts: { readonly spawns: number; readonly deaths: number };
}

const Nothing = v.object({});
const Time = v.pipe(v.nullish(v.number()), v.transform((value) => value ?? undefined));
const Text = v.pipe(v.nullish(v.string()), v.transform((value) => value ?? undefined));
const Series = v.object({
  seconds: v.optional(v.int(1, METRICS_SAMPLES_MAX), 300),
  function_id: Text,
  worker_id: Text,
  top: v.optional(v.int(0, 500), 50),
});
const Sample = v.object({ window_s: v.optional(v.int(1, WINDOW_STEPS_MAX), 1) });
const List = v.object({
  start_time: Time,
  end_time: Time,
  metric_name: Text,
  /** Seconds. */
  aggregate_interval: v.nullish(v.int(1, METRICS_SAMPLES_MAX)),
});
const RollupList = v.object({
  start_time: Time,
  end_time: Time,
  level: v.optional(v.int(0, 2), 0),
  metric_name: Text,
});

/** Registers the functions. */
export function registerMetricsFunctions(
  worker: Pick<Worker, "registerFunction">,
  sources: MetricsSources,
): void {
  const add = <Of>(
    id: string,
    description: string,
    of: v.Schema<Of>,
    run: (payload: Of) => unknown,
  ): void => {
    worker.registerFunction(id, (payload) => {
      sources.sampler.markRead();
      return run(fit(id, of, payload ?? {})) as Json;
    }, { description });
  };
  const { sampler, series, meters } = sources;
  const what = "Calls and resource usage of the last second, or of up to 10 (window_s)";
  add("engine::metrics::sample", what, Sample, ({ window_s }) => sampler.window(window_s));
  add("engine::metrics::handlers", "Threads, waiting calls and late handlers", Nothing, () => {
    return { workers: sources.workers.loads() };
  });
  add("engine::metrics::series", "The last minutes, per second", Series, (query) => {
    return series.read(query);
  });
  add(
    "engine::metrics::functions",
    "Calls, errors and durations of every function",
    Nothing,
    () => {
      return { functions: functionTotals(meters) };
    },
  );
  add("engine::metrics::list", "Counts since the engine started", List, (query) => {
    return listMetrics(sources, query);
  });
  add("engine::rollups::list", "Values by minute, five minutes or hour", RollupList, (query) => {
    return listRollups(sources, query);
  });
  registerAlertFunctions(add, sources);
}

/** Registers a function with a payload schema. */
type Add = <Of>(
  id: string,
  description: string,
  of: v.Schema<Of>,
  run: (payload: Of) => unknown,
) => void;

function registerAlertFunctions(add: Add, { alerts, sampler, clock }: MetricsSources): void {
  const none = "There are no rules; add some under metrics.alerts of engine-observability";
  add("engine::alerts::list", "Alert rules and their state", Nothing, () => {
    const rules = alerts.list();
    const firing = rules.filter(({ state }) => state === "firing");
    return {
      alerts: firing,
      rules,
      firing_count: firing.length,
      ...rules.length === 0 && { message: none },
      timestamp: clock.wall(),
    };
  });
  add("engine::alerts::evaluate", "Evaluates all alert rules now", Nothing, () => {
    const triggered = alerts.evaluate(sampler.latest.engine, clock.wall());
    const evaluated = alerts.list().length;
    return {
      evaluated,
      triggered_alerts: triggered.filter(({ state }) => state === "firing"),
      ...evaluated === 0 && { message: none },
      timestamp: clock.wall(),
    };
  });
}

function listMetrics(sources: MetricsSources, query: v.InferOutput<typeof List>): JsonObject {
  const { meters, directory, workerCounts, sdk, clock } = sources;
  const { start_time = -Infinity, end_time = Infinity, metric_name } = query;
  const points = sdk.points().filter(({ name, time_ms }) =>
    time_ms >= start_time && time_ms <= end_time &&
    (metric_name === undefined || name === metric_name)
  );
  const interval = query.aggregate_interval;
  return {
    engine_metrics: {
      ...engineTotals(meters),
      workers: { ...workerCounts, active: directory.workers().length },
    },
    sdk_metrics: points.map(pointView),
    ...interval && { aggregated_metrics: aggregate(sources.series, interval, query) },
    query: queryView(query),
    timestamp: clock.wall(),
  };
}

function pointView(point: MetricPoint): JsonObject {
  const { name, unit, kind, value, count, attributes, time_ms, worker_id, service_name } = point;
  return { name, unit, type: kind, value, count, attributes, time_ms, worker_id, service_name };
}

/** Means of the engine's values per `interval` seconds, the oldest first. */
function aggregate(
  series: SeriesStore,
  interval: number,
  { start_time = -Infinity, end_time = Infinity, metric_name }: v.InferOutput<typeof List>,
): JsonObject[] {
  const { at_ms, engine } = series.read({ seconds: METRICS_SAMPLES_MAX, top: 0 });
  const intervals = new Map<number, number[]>();
  for (const [i, at] of at_ms.entries()) {
    if (at < start_time || at > end_time) continue;
    const start = Math.floor(at / (interval * 1_000)) * interval * 1_000;
    const samples = intervals.get(start);
    if (samples) samples.push(i);
    else intervals.set(start, [i]);
  }
  const names = (Object.keys(engine) as (keyof EngineSample)[])
    .filter((name) => metric_name === undefined || `engine.${name}` === metric_name);
  return [...intervals].map(([start, samples]) => {
    const means = names.map((name) => [`engine.${name}`, meanOf(engine[name], samples)] as const);
    return {
      start_time: start,
      end_time: start + interval * 1_000,
      count: samples.length,
      metrics: Object.fromEntries(means),
    };
  });
}

function meanOf(values: readonly (number | null)[], samples: readonly number[]): number | null {
  const known = samples.map((i) => values[i]!).filter((value) => value !== null);
  if (known.length === 0) return null;
  return Math.round(known.reduce((sum, value) => sum + value, 0) / known.length * 1_000) / 1_000;
}

function listRollups(
  { rollups, clock }: MetricsSources,
  query: v.InferOutput<typeof RollupList>,
): JsonObject {
  const { level, start_time: start_ms, end_time: end_ms, metric_name } = query;
  const range = { start_ms, end_ms, metric_name };
  return {
    rollups: rollups.values(level, range) as unknown as Json,
    histogram_rollups: rollups.histograms(level, range) as unknown as Json,
    level,
    source: "memory",
    query: queryView(query),
    timestamp: clock.wall(),
  };
}

function queryView(query: object): JsonObject {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as JsonObject;
}
