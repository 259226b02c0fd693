/**
 * The engine's metrics as OTLP: the same numbers as on `/metrics`, and what SDKs sent of late.
 *
 * Names follow OpenTelemetry's conventions where there is one, such as `process.memory.usage`.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { MetricPoint } from "../metrics/frames.ts";
import { attributesOf, type Exporter, metricsRequest, nanoText } from "./requests.ts";
import { CoarseBuckets } from "../metrics/prometheus.ts";
import { type PageSources, type ShownMeter, shownMeters } from "../metrics/prometheus_page.ts";

/** Counts since the start of the engine. */
const CUMULATIVE = 2;

type Attributes = Readonly<Record<string, Json>>;

/** Makes metrics that all hold at the same time. */
class Reading {
  readonly #times: { readonly timeUnixNano: string; readonly startTimeUnixNano: string };

  constructor(nowMs: number, startedAtMs: number) {
    this.#times = {
      timeUnixNano: nanoText(nowMs),
      startTimeUnixNano: nanoText(startedAtMs),
    };
  }

  gauge(
    name: string,
    unit: string,
    points: Iterable<readonly [Attributes, number | null]>,
  ): JsonObject[] {
    const { timeUnixNano } = this.#times;
    const dataPoints = [...points].flatMap(([attributes, value]) =>
      value === null ? [] : [{ timeUnixNano, asDouble: value, ...attributesIn(attributes) }]
    );
    return dataPoints.length === 0 ? [] : [{ name, unit, gauge: { dataPoints } }];
  }

  sum(
    name: string,
    unit: string,
    points: Iterable<readonly [Attributes, number]>,
  ): JsonObject[] {
    const dataPoints = [...points].map(([attributes, value]) => ({
      ...this.#times,
      ...Number.isSafeInteger(value) ? { asInt: String(value) } : { asDouble: value },
      ...attributesIn(attributes),
    }));
    if (dataPoints.length === 0) return [];
    const sum = { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints };
    return [{ name, unit, sum }];
  }

  durations(name: string, meters: readonly ShownMeter[], buckets: CoarseBuckets): JsonObject[] {
    const dataPoints = meters.map((meter) => {
      const counts = buckets.countsOf(meter.durations);
      return {
        ...this.#times,
        count: String(counts.reduce((sum, count) => sum + count, 0)),
        sum: meter.duration_sum_ms / 1_000,
        bucketCounts: [...counts].map(String),
        explicitBounds: [...buckets.bounds],
        ...attributesIn(functionOf(meter)),
      };
    });
    if (dataPoints.length === 0) return [];
    return [{
      name,
      unit: "s",
      histogram: { aggregationTemporality: CUMULATIVE, dataPoints },
    }];
  }
}

/** A request with all metrics as they are now. */
export function allMetrics(
  sources: PageSources,
  points: readonly MetricPoint[],
  exporter: Exporter,
  nowMs: number,
): JsonObject {
  const reading = new Reading(nowMs, sources.started_at_ms);
  const engine = [
    ...callMetrics(reading, sources),
    ...engineMetrics(reading, sources),
    ...workerMetrics(reading, sources),
  ];
  const request = metricsRequest(engine, exporter) as { resourceMetrics: JsonObject[] };
  return { resourceMetrics: [...request.resourceMetrics, ...sdkMetrics(points)] };
}

function callMetrics(reading: Reading, { meters }: PageSources): JsonObject[] {
  const shown = shownMeters(meters);
  return [
    ...reading.sum("engine.calls", "{call}", shown.map((m) => [functionOf(m), m.calls])),
    ...reading.sum(
      "engine.call.errors",
      "{call}",
      shown.flatMap((meter) =>
        [...meter.errors].map(([code, count]) =>
          [{ ...functionOf(meter), "error.type": code }, count] as const
        )
      ),
    ),
    ...reading.gauge(
      "engine.calls.in_flight",
      "{call}",
      shown.map((meter) => [functionOf(meter), meter.in_flight]),
    ),
    ...reading.durations("engine.call.duration", shown, new CoarseBuckets(meters.bounds_ms)),
  ];
}

function engineMetrics(reading: Reading, sources: PageSources): JsonObject[] {
  const { meters, sampler, store: { stats } } = sources;
  const { running, held, lines, queued_bytes } = meters.load();
  const { engine } = sampler.latest;
  const { memory_bytes, heap_bytes, cpu_seconds } = sources.process();
  const gauge = (name: string, unit: string, value: number | null): JsonObject[] =>
    reading.gauge(name, unit, [[{}, value]]);
  const sum = (name: string, unit: string, value: number): JsonObject[] =>
    reading.sum(name, unit, [[{}, value]]);
  return [
    ...gauge("engine.in_flight", "{call}", running),
    ...gauge("engine.held", "{call}", held),
    ...gauge("engine.lines", "{line}", lines),
    ...gauge("engine.queued", "By", queued_bytes),
    ...gauge("engine.event_loop.lag.max", "s", engine.event_loop_lag_ms / 1_000),
    ...gauge("engine.event_loop.lag.p99", "s", engine.event_loop_lag_p99_ms / 1_000),
    ...gauge("process.memory.usage", "By", memory_bytes),
    ...gauge("engine.heap.usage", "By", heap_bytes),
    ...sum("process.cpu.time", "s", cpu_seconds),
    ...sum("engine.state.commits", "{commit}", stats.commits),
    ...sum("engine.state.failed_commits", "{commit}", stats.failed),
    ...sum("engine.state.written", "By", stats.bytes),
  ];
}

function workerMetrics(reading: Reading, { workers }: PageSources): JsonObject[] {
  const samples = workers.samples();
  const of = (value: (sample: typeof samples[number]) => number | null) =>
    samples.map((sample): readonly [Attributes, number | null] => [
      { "engine.worker": sample.name, "engine.worker_id": sample.worker_id },
      value(sample),
    ]);
  return [
    ...reading.gauge("engine.worker.in_flight", "{call}", of(({ in_flight }) => in_flight)),
    ...reading.gauge("engine.worker.queued", "By", of(({ queued_bytes }) => queued_bytes)),
    ...reading.gauge("engine.worker.memory", "By", of(({ memory_bytes }) => memory_bytes)),
    ...reading.gauge(
      "engine.worker.cpu",
      "1",
      of(({ cpu_percent }) => cpu_percent === null ? null : cpu_percent / 100),
    ),
    ...reading.sum(
      "engine.worker.restarts",
      "{restart}",
      [...workers.restartsByName].map(([name, count]) => [{ "engine.worker": name }, count]),
    ),
  ];
}

/** What SDKs measured, each in the name of its process; sums and histograms as their value. */
function sdkMetrics(points: readonly MetricPoint[]): JsonObject[] {
  const groups = new Map<string, MetricPoint[]>();
  for (const point of points) {
    const key = `${point.service_name}\n${point.worker_id}`;
    const group = groups.get(key);
    if (group) group.push(point);
    else groups.set(key, [point]);
  }
  return [...groups.values()].map((group) => {
    const { service_name, worker_id } = group[0]!;
    const resource: [string, Json][] = [["service.name", service_name || "worker"]];
    if (worker_id !== null) resource.push(["service.instance.id", worker_id]);
    return {
      resource: { attributes: attributesOf(resource) },
      scopeMetrics: [{
        scope: { name: "engine-sdk" },
        metrics: group.map(({ name, unit, value, attributes, time_ms }) => ({
          name,
          unit,
          gauge: {
            dataPoints: [{
              timeUnixNano: nanoText(time_ms),
              asDouble: value,
              ...attributesIn(attributes),
            }],
          },
        })),
      }],
    };
  });
}

function functionOf({ function_id, namespace }: ShownMeter): Attributes {
  return { "engine.function_id": function_id, "engine.namespace": namespace };
}

function attributesIn(attributes: Attributes): JsonObject {
  const list = attributesOf(Object.entries(attributes));
  return list.length === 0 ? {} : { attributes: list };
}
