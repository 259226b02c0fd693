/**
 * What is exported as OTLP requests in their JSON form: spans, log records and metrics.
 *
 * Payloads of calls are never exported, redacted or not: they stay on this machine.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { LogRecord, Severity } from "../logs/record.ts";
import { attributeText, type StoredSpan } from "../traces/spans_stored.ts";

/** Who exports. */
export interface Exporter {
  /** `service.name` of what the engine itself does. */
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
const KEPT_BACK: ReadonlySet<string> = new Set(["engine.request", "engine.response"]);
/** Levels of nesting that are kept; below, JSON text stands for a value. */
const DEPTH_MAX = 8;

/** A request with spans, grouped by the service that made them. */
export function spansRequest(spans: readonly StoredSpan[], exporter: Exporter): JsonObject {
  const groups = groupBy(spans, (span) => madeByEngine(span) ? undefined : span.service_name);
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

/** A request with log records, grouped by the service that wrote them. */
export function logsRequest(records: readonly LogRecord[], exporter: Exporter): JsonObject {
  const groups = groupBy(
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

/** Attributes as OTLP writes them. */
export function attributesOf(values: Iterable<readonly [name: string, value: Json]>): JsonObject[] {
  return [...values].map(([key, value]) => ({ key, value: valueOf(value, 1) }));
}

/** Nanoseconds since 1970 as OTLP writes them. */
export function nanoText(ms: number): string {
  return `${Math.round(ms * 1_000)}000`; // As text, since a double cannot hold them.
}

/** Calls as the router saw them belong to the engine; handlers and the rest to their service. */
function madeByEngine(span: StoredSpan): boolean {
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
    attributes: attributesOf(span.attributes.filter(([key]) => !KEPT_BACK.has(key))),
    events: [...span.events],
    links: [...span.links],
    status: {
      code: STATUS[status],
      ...span.status_description !== null && { message: span.status_description },
    },
    flags: 1, // Only sampled spans are kept.
  };
}

/** A call is the engine's request to a worker, so that pairs of both make a map of services. */
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

/** The engine's own resource when no other service is named. */
function resourceOf(service: string | undefined, exporter: Exporter): JsonObject {
  const own: [string, Json][] = [
    ["service.name", exporter.service_name],
    ["service.version", exporter.version],
    ...Object.entries(exporter.attributes),
  ];
  // A worker is in the same deployment as the engine, but another service.
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

function groupBy<T>(
  items: readonly T[],
  keyOf: (item: T) => string | undefined,
): Map<string | undefined, T[]> {
  const groups = new Map<string | undefined, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
