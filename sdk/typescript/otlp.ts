/**
 * Telemetry as OTLP/JSON: log records, spans and gauges, and the frames that carry them.
 *
 * Pure text: nothing here knows of lines or time. A record is written when it is made, so that what
 * waits is a string whose size is known; the frame around it is written when it leaves.
 *
 * @module
 */
import { TELEMETRY_VALUE_CHARS_MAX } from "./wire/limits.ts";
import { attempt } from "./platform.ts";
import type { Json } from "./wire/protocol.ts";
import type { TraceIds } from "./trace_context.ts";

/** What a frame carries: logs, traces or metrics. */
export type Signal = "LOGS" | "OTLP" | "MTRC";

/** Who speaks, as attributes such as `service.name`. */
export type Resource = Readonly<Record<string, Json | undefined>>;

/** From the most talkative to the one that wakes somebody up. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** A log line before it is written. */
export interface LogRecord {
  readonly level: LogLevel;
  readonly message: string;
  /** What goes with it; the members of an object become attributes, anything else is `data`. */
  readonly data?: Json | undefined;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  /** The call in which it was said. */
  readonly trace?: TraceIds | undefined;
}

/** A span before it is written. */
export interface SpanRecord {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string;
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly start_ms: number;
  readonly end_ms: number;
  readonly attributes: Resource;
  /** Why it failed; `undefined` when it did not. */
  readonly error: string | undefined;
}

/** One measured value. */
export interface Gauge {
  /** Such as `process.memory.usage`. */
  readonly name: string;
  /** Such as `By`, `s` or `1`. */
  readonly unit: string;
  readonly value: number;
}

/** Levels of nesting that are kept as they are; below, JSON text stands for a value. */
const DEPTH_MAX = 8;

const SEVERITIES: Readonly<Record<LogLevel, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
};

/** How each signal wraps its records: outer list, inner list, records. */
const WRAPPINGS: Readonly<Record<Signal, readonly [string, string, string]>> = {
  LOGS: ["resourceLogs", "scopeLogs", "logRecords"],
  OTLP: ["resourceSpans", "scopeSpans", "spans"],
  MTRC: ["resourceMetrics", "scopeMetrics", "metrics"],
};

const utf8 = new TextEncoder();

/** Writes a log record; a text that is too long is cut. */
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

/** Writes the span of something that served a call. */
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

/** Writes a gauge as it was at a time, in milliseconds since 1970. */
export function encodeGauge({ name, unit, value }: Gauge, at_ms: number): string {
  const dataPoints = [{ timeUnixNano: nanos(at_ms), asDouble: value }];
  return JSON.stringify({ name, unit, gauge: { dataPoints } });
}

/** A frame: four letters, then the records of each resource. */
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

/** A list of attributes; what is `undefined` is left out. */
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

/** What is kept of something that is shown as `text`: what it means as JSON, else its start. */
export function parseShown(text: string): Json {
  if (text.length > TELEMETRY_VALUE_CHARS_MAX) return cut(text);
  const parsed = attempt(() => ({ value: JSON.parse(text) as Json }));
  return parsed ? parsed.value : text;
}

function isObject(data: Json): data is { [key: string]: Json } {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}

function cut(text: string): string {
  if (text.length <= TELEMETRY_VALUE_CHARS_MAX) return text;
  return `${text.slice(0, TELEMETRY_VALUE_CHARS_MAX)}…`;
}

/** As OTLP writes times: nanoseconds since 1970, as text since a double cannot hold them. */
function nanos(ms: number): string {
  return `${Math.round(ms * 1_000)}000`;
}
