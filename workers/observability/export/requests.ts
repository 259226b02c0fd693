/**
 * Builds OTLP requests in JSON form: spans, log records and metrics.
 *
 * Payloads of calls are never exported, not even redacted.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { LogRecord, Severity } from "../logs/record.ts";
import type { MetricPoint } from "../metrics/otlp.ts";
import {
  CoarseBuckets,
  type PageSources,
  type ShownMeter,
  shownMeters,
} from "../metrics/prometheus.ts";
import { attributeText, type StoredSpan } from "../traces/span.ts";

/** The engine as the sender of telemetry. */
export interface Exporter {
  /** `service.name` of the engine's own telemetry. */
  readonly service_name: string;
  /** Further attributes of its resource. */
  readonly attributes: Readonly<Record<string, Json>>;
  readonly version: string;
}

const SEVERITY: Readonly<Record<Severity, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
};
const STATUS = { unset: 0, ok: 1, error: 2 } as const;
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3];
const WITHHELD: ReadonlySet<string> = new Set(["engine.request", "engine.response"]);
/** Nesting of attribute values; deeper values become JSON text. */
const DEPTH_MAX = 8;

/** A request with spans, grouped by service. */
export function spansRequest(spans: readonly StoredSpan[], exporter: Exporter): JsonObject {
  const groups = Map.groupBy(spans, (span) => isOfEngine(span) ? undefined : span.service_name);
  return {
    resourceSpans: [...groups].map(([service, members]) => ({
      resource: resourceOf(service, exporter),
      scopeSpans: [{
        scope: scopeOf(members[0]!.scope_name, exporter),
        spans: members.map(spanOf),
      }],
    })),
  };
}

/** A request with log records, grouped by service. */
export function logsRequest(records: readonly LogRecord[], exporter: Exporter): JsonObject {
  const groups = Map.groupBy(
    records,
    ({ source, service_name }) => source === "engine" ? undefined : service_name,
  );
  return {
    resourceLogs: [...groups].map(([service, members]) => ({
      resource: resourceOf(service, exporter),
      scopeLogs: [{
        scope: scopeOf(members[0]!.scope_name, exporter),
        logRecords: members.map(recordOf),
      }],
    })),
  };
}

/** A request with metrics of the engine. */
export function metricsRequest(metrics: readonly JsonObject[], exporter: Exporter): JsonObject {
  return {
    resourceMetrics: [{
      resource: resourceOf(undefined, exporter),
      scopeMetrics: [{ scope: scopeOf(null, exporter), metrics: [...metrics] }],
    }],
  };
}

/** Converts attributes to OTLP. */
export function attributesOf(values: Iterable<readonly [name: string, value: Json]>): JsonObject[] {
  return [...values].map(([key, value]) => ({ key, value: valueOf(value, 1) }));
}

/** Converts milliseconds since 1970 to OTLP nanoseconds. */
export function nanoText(ms: number): string {
  return `${Math.round(ms * 1_000)}000`; // As text, since a double cannot hold them.
}

/** Calls recorded by the router belong to the engine; all other spans to their service. */
function isOfEngine(span: StoredSpan): boolean {
  return span.scope_name === null;
}

function spanOf(span: StoredSpan): JsonObject {
  const { trace_id, span_id, parent_span_id, name, start_ms, end_ms, status } = span;
  return {
    traceId: trace_id,
    spanId: span_id,
    ...parent_span_id !== null && { parentSpanId: parent_span_id },
    name,
    kind: kindOf(span),
    startTimeUnixNano: nanoText(start_ms),
    endTimeUnixNano: nanoText(end_ms ?? start_ms),
    attributes: attributesOf(span.attributes.filter(([key]) => !WITHHELD.has(key))),
    events: [...span.events],
    links: [...span.links],
    status: {
      code: STATUS[status],
      ...span.status_description !== null && { message: span.status_description },
    },
    flags: 1, // Only sampled spans are stored.
  };
}

/**
 * A call is a client span and its handler a server span, so that receivers can draw service maps.
 */
function kindOf(span: StoredSpan): number {
  switch (attributeText(span, "engine.kind")) {
    case "call":
      return CLIENT;
    case "http":
    case "handler":
      return SERVER;
    default:
      return INTERNAL;
  }
}

function recordOf(record: LogRecord): JsonObject {
  const { at_ms, observed_ms, severity, body, attributes, trace_id, span_id } = record;
  const more = {
    "engine.source": record.source,
    ...record.worker !== null && { "engine.worker": record.worker },
    ...record.replica !== null && { "engine.replica": record.replica },
    ...record.function_id !== null && { "engine.function_id": record.function_id },
  };
  return {
    timeUnixNano: nanoText(at_ms),
    observedTimeUnixNano: nanoText(observed_ms),
    severityNumber: SEVERITY[severity],
    severityText: severity.toUpperCase(),
    body: { stringValue: body },
    attributes: attributesOf(Object.entries({ ...attributes, ...more })),
    ...trace_id !== null && { traceId: trace_id },
    ...span_id !== null && { spanId: span_id },
  };
}

/** The resource of a service; `undefined`: the engine. */
function resourceOf(service: string | undefined, exporter: Exporter): JsonObject {
  const own: [string, Json][] = [
    ["service.name", exporter.service_name],
    ["service.version", exporter.version],
    ...Object.entries(exporter.attributes),
  ];
  // A worker belongs to the engine's deployment but is another service.
  const theirs: [string, Json][] = Object.entries(exporter.attributes)
    .filter(([key]) => !key.startsWith("service.") && !key.startsWith("process."));
  return {
    attributes: attributesOf(
      service === undefined ? own : [["service.name", service], ...theirs],
    ),
  };
}

function scopeOf(name: string | null, { version }: Exporter): JsonObject {
  return name === null ? { name: "engine", version } : { name };
}

function valueOf(value: Json, depth: number): JsonObject {
  if (value === null) return {};
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  if (depth >= DEPTH_MAX) return { stringValue: JSON.stringify(value) };
  if (Array.isArray(value)) {
    return { arrayValue: { values: value.map((item) => valueOf(item, depth + 1)) } };
  }
  const values = Object.entries(value).map(([key, item]) => ({
    key,
    value: valueOf(item ?? null, depth + 1),
  }));
  return { kvlistValue: { values } };
}

/** OTLP's aggregation temporality of counts since the engine started. */
const CUMULATIVE = 2;

type Attributes = Readonly<Record<string, Json>>;

/** Builds metrics with a common timestamp. */
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

/** A request with the current value of all metrics. */
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
  const { running, parked, connections, queued_bytes } = meters.load();
  const { engine } = sampler.latest;
  const { memory_bytes, heap_bytes, cpu_seconds } = sources.process();
  const gauge = (name: string, unit: string, value: number | null): JsonObject[] =>
    reading.gauge(name, unit, [[{}, value]]);
  const sum = (name: string, unit: string, value: number): JsonObject[] =>
    reading.sum(name, unit, [[{}, value]]);
  return [
    ...gauge("engine.in_flight", "{call}", running),
    ...gauge("engine.held", "{call}", parked),
    ...gauge("engine.lines", "{line}", connections),
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

/** Metrics of SDKs under the resource of their process; sums and histograms as gauges. */
function sdkMetrics(points: readonly MetricPoint[]): JsonObject[] {
  const groups = Map.groupBy(
    points,
    ({ service_name, worker_id }) => `${service_name}\n${worker_id}`,
  );
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
