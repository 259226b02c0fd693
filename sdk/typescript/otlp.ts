/**
 * Encodes telemetry as OTLP/JSON: log records, spans and gauges, and the frames that contain them.
 *
 * A record is encoded when it is created, so that queues hold strings of known size; a frame is
 * encoded when it is sent.
 *
 * @module
 */
import { attempt } from "./platform.ts";
import type { TraceIds } from "./trace_context.ts";
import type { Json } from "./wire/protocol.ts";

/** What a frame contains: logs, spans or metrics. */
export type Signal = "LOGS" | "OTLP" | "MTRC";

/** The source of telemetry, as attributes such as `service.name`. */
export type Resource = Readonly<Record<string, Json | undefined>>;

/** From the most verbose to the most severe. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** A log record. */
export interface LogRecord {
  readonly level: LogLevel;
  readonly message: string;
  /** The members of an object become attributes; any other value becomes the attribute `data`. */
  readonly data?: Json | undefined;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  /** The call during which it was logged. */
  readonly trace?: TraceIds | undefined;
}

/** A span. */
export interface SpanRecord {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string;
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly start_ms: number;
  readonly end_ms: number;
  readonly attributes: Resource;
  /** Message of the error; `undefined` if it succeeded. */
  readonly error: string | undefined;
}

/** One measured value. */
export interface Gauge {
  /** Such as `process.memory.usage`. */
  readonly name: string;
  /** Such as `By`, `s` or `1`. */
  readonly unit: string;
  readonly value: number;
  /** The function that it is about, if it is about one. */
  readonly functionId?: string;
}

/** Deepest nesting of an attribute; deeper values become JSON text. */
const DEPTH_MAX = 8;
/** Longest text in telemetry, in characters; the rest is cut off. */
const VALUE_CHARS_MAX = 32 * 1024;

const SEVERITIES: Readonly<Record<LogLevel, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
};

/** The names around the records of each signal: outer list, inner list, records. */
const WRAPPINGS: Readonly<Record<Signal, readonly [string, string, string]>> = {
  LOGS: ["resourceLogs", "scopeLogs", "logRecords"],
  OTLP: ["resourceSpans", "scopeSpans", "spans"],
  MTRC: ["resourceMetrics", "scopeMetrics", "metrics"],
};

const utf8 = new TextEncoder();

/** Encodes a log record; long texts are cut. */
export function encodeLog({ level, message, data, at_ms, trace }: LogRecord): string {
  const time = nanos(at_ms);
  return JSON.stringify({
    timeUnixNano: time,
    observedTimeUnixNano: time,
    severityNumber: SEVERITIES[level],
    severityText: level.toUpperCase(),
    body: { stringValue: cut(message) },
    ...data !== undefined && { attributes: attributesOf(isObject(data) ? data : { data }) },
    ...trace && { traceId: trace.trace_id, spanId: trace.span_id, flags: trace.isSampled ? 1 : 0 },
  });
}

/** Encodes a span of kind `server`. */
export function encodeSpan(span: SpanRecord): string {
  return JSON.stringify({
    traceId: span.trace_id,
    spanId: span.span_id,
    parentSpanId: span.parent_span_id,
    name: span.name,
    kind: 2,
    startTimeUnixNano: nanos(span.start_ms),
    endTimeUnixNano: nanos(span.end_ms),
    attributes: attributesOf(span.attributes),
    status: span.error === undefined ? { code: 1 } : { code: 2, message: cut(span.error) },
  });
}

/** Encodes the value of a gauge at `at_ms`, in milliseconds since 1970. */
export function encodeGauge({ name, unit, value, functionId }: Gauge, at_ms: number): string {
  const attributes = functionId === undefined
    ? {}
    : { attributes: attributesOf({ "engine.function.id": functionId }) };
  const dataPoints = [{ timeUnixNano: nanos(at_ms), asDouble: value, ...attributes }];
  return JSON.stringify({ name, unit, gauge: { dataPoints } });
}

/** Encodes a frame: the name of the signal, then the records of each resource. */
export function encodeFrame(
  signal: Signal,
  groups: ReadonlyArray<{ readonly resource: Resource; readonly records: readonly string[] }>,
  version: string,
): Uint8Array {
  const [outer, inner, list] = WRAPPINGS[signal];
  const scope = JSON.stringify({ name: "engine-sdk", version });
  const parts = groups.map(({ resource, records }) =>
    `{"resource":${JSON.stringify({ attributes: attributesOf(resource) })},` +
    `"${inner}":[{"scope":${scope},"${list}":[${records.join(",")}]}]}`
  );
  return utf8.encode(`${signal}{"${outer}":[${parts.join(",")}]}`);
}

/** A list of attributes; `undefined` ones are omitted. */
function attributesOf(values: Resource): Json[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key: cut(key), value: valueOf(value, 1) }]
  );
}

function valueOf(value: Json, depth: number): Json {
  if (value === null) return {};
  if (typeof value === "string") return { stringValue: cut(value) };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  if (depth >= DEPTH_MAX) return { stringValue: cut(JSON.stringify(value)) };
  if (Array.isArray(value)) {
    return { arrayValue: { values: value.map((item) => valueOf(item, depth + 1)) } };
  }
  const values = Object.entries(value).map(([key, item]) => ({
    key,
    value: valueOf(item!, depth + 1),
  }));
  return { kvlistValue: { values } };
}

/** The value of a `text` that may be JSON; a long text is cut and not parsed. */
export function parseShown(text: string): Json {
  if (text.length > VALUE_CHARS_MAX) return cut(text);
  const parsed = attempt(() => ({ value: JSON.parse(text) as Json }));
  return parsed ? parsed.value : text;
}

function isObject(data: Json): data is { [key: string]: Json } {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}

function cut(text: string): string {
  if (text.length <= VALUE_CHARS_MAX) return text;
  return `${text.slice(0, VALUE_CHARS_MAX)}…`;
}

/** A time in OTLP/JSON: nanoseconds since 1970 as text, because a double is not exact enough. */
function nanos(ms: number): string {
  return `${Math.round(ms * 1_000)}000`;
}
