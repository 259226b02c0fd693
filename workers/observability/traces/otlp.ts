/**
 * Spans in OTLP/JSON, as SDKs and other clients send them.
 *
 * What comes is a stranger's: a span that is broken is counted and left out, one that is too large
 * is cut. Names of the engine's own attributes mean nothing here, but for the few that tell which
 * call a span belongs to.
 *
 * @module
 */
import * as v from "../../kit/schema.ts";
import {
  TELEMETRY_ATTRIBUTES_MAX,
  TELEMETRY_NAME_CHARS_MAX,
  TELEMETRY_TEXT_CHARS_MAX,
} from "../../limits.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { type FrameItems, readItems } from "../intake.ts";
import { REDACTED, type Redactor } from "../redact.ts";
import type { SpanAttribute, StoredSpan } from "./span.ts";

type Scope = Pick<StoredSpan, "scope_name" | "scope_version">;

/** Events and links that a span keeps. */
const EVENTS_MAX = 32;

const List = v.nullish(v.array(v.unknown()), []);
const LISTS = ["resourceSpans", "scopeSpans", "spans"] as const;

const Id = (digits: number) =>
  v.pipe(v.string(), v.regex(new RegExp(`^(?!0+$)[0-9a-fA-F]{${digits}}$`)), v.toLowerCase());

const Span = v.object({
  traceId: Id(32),
  spanId: Id(16),
  parentSpanId: v.optional(v.union([Id(16), v.literal(""), v.null()])),
  name: v.string(),
  startTimeUnixNano: v.union([v.string(), v.number()]),
  endTimeUnixNano: v.union([v.string(), v.number()]),
  attributes: List,
  events: List,
  links: List,
  status: v.nullish(v.object({
    code: v.nullish(v.union([v.string(), v.number()])),
    message: v.nullish(v.string()),
  })),
});

/**
 * Reads a frame of spans.
 *
 * @throws {Error} When the whole is none.
 */
export function readSpans(frame: unknown, redactor: Redactor): FrameItems<StoredSpan> {
  let about: ReadonlyMap<string, Json> = new Map();
  let scope: Scope = { scope_name: null, scope_version: null };
  return readItems(frame, LISTS, ({ resource, scope_name, scope_version }) => {
    about = readAttributes(resource, redactor);
    scope = { scope_name: named(scope_name), scope_version: named(scope_version) };
  }, (raw) => {
    const read = v.safeParse(Span, raw);
    return read.success ? spanOf(read.output, about, scope, redactor) : undefined;
  });
}

/** What OTLP calls attributes, without secrets and in bounds. */
export function readAttributes(list: readonly unknown[], redactor: Redactor): Map<string, Json> {
  const attributes = new Map<string, Json>();
  for (const each of list) {
    if (attributes.size >= TELEMETRY_ATTRIBUTES_MAX) break;
    const { key, value } = (each ?? {}) as { key?: unknown; value?: unknown };
    if (typeof key !== "string" || key === "") continue;
    const name = cut(key, TELEMETRY_NAME_CHARS_MAX);
    attributes.set(name, redactor.hits(name) ? REDACTED : redactor.value(readValue(value, 0)));
  }
  return attributes;
}

/** A value of OTLP as JSON: one of `stringValue`, `intValue`, `arrayValue` and so on. */
export function readValue(value: unknown, depth: number): Json {
  if (value === null || typeof value !== "object" || depth > 16) return null;
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } =
    value as Record<string, unknown>;
  if (typeof stringValue === "string") return cut(stringValue, TELEMETRY_TEXT_CHARS_MAX);
  if (typeof boolValue === "boolean") return boolValue;
  if (intValue !== undefined) return readNumber(intValue);
  if (doubleValue !== undefined) return readNumber(doubleValue);
  if (typeof bytesValue === "string") return cut(bytesValue, TELEMETRY_TEXT_CHARS_MAX);
  const items = (arrayValue ?? kvlistValue) as { values?: unknown } | undefined;
  if (!Array.isArray(items?.values)) return null;
  const values = items.values.slice(0, TELEMETRY_ATTRIBUTES_MAX);
  if (arrayValue !== undefined) return values.map((item) => readValue(item, depth + 1));
  return Object.fromEntries(values.flatMap((item) => {
    const { key, value } = (item ?? {}) as { key?: unknown; value?: unknown };
    return typeof key === "string" ? [[key, readValue(value, depth + 1)] as const] : [];
  }));
}

/** Milliseconds since 1970 of nanoseconds, which come as text or number; `undefined`: neither. */
export function readNanos(nanos: string | number | null | undefined): number | undefined {
  if (nanos === null || nanos === undefined || nanos === "") return undefined;
  const ms = Number(nanos) / 1e6;
  return Number.isFinite(ms) && ms > 0 && ms < 8.64e15 ? ms : undefined;
}

/**
 * Text that is no longer than `max` characters, and a copy: what is cut from a larger one would
 * keep all of that alive, such as the whole of what a process printed at once.
 */
export function cut(text: string, max: number): string {
  const whole = text.length <= max ? ` ${text}` : ` ${text.slice(0, max - 1)}…`;
  return whole.slice(1); // Which writes the pieces into one text first.
}

function readNumber(value: unknown): Json {
  const number = Number(value);
  const isExact = !Number.isInteger(number) || Number.isSafeInteger(number);
  if (typeof value === "string" && !isExact) return value;
  return Number.isFinite(number) ? number : null;
}

function spanOf(
  raw: v.InferOutput<typeof Span>,
  about: ReadonlyMap<string, Json>,
  scope: Scope,
  redactor: Redactor,
): StoredSpan | undefined {
  const start_ms = readNanos(raw.startTimeUnixNano);
  const end_ms = readNanos(raw.endTimeUnixNano);
  if (start_ms === undefined || end_ms === undefined) return undefined;
  const service_name = nameOf(about.get("service.name"));
  const code = String(raw.status?.code ?? "");
  const isError = code === "2" || code === "STATUS_CODE_ERROR";
  return {
    trace_id: raw.traceId,
    span_id: raw.spanId,
    parent_span_id: raw.parentSpanId || null,
    name: cut(raw.name, TELEMETRY_NAME_CHARS_MAX),
    service_name,
    start_ms,
    end_ms: Math.max(start_ms, end_ms),
    status: isError ? "error" : code === "1" || code === "STATUS_CODE_OK" ? "ok" : "unset",
    status_description: raw.status?.message
      ? cut(raw.status.message, TELEMETRY_TEXT_CHARS_MAX)
      : null,
    attributes: ownAttributes(raw, service_name, about, redactor),
    events: raw.events.slice(0, EVENTS_MAX).map((event) => readEvent(event, redactor)),
    links: raw.links.slice(0, EVENTS_MAX).map((link) => readEvent(link, redactor)),
    ...scope,
  };
}

/** What the span says itself, and which worker and call it is about. */
function ownAttributes(
  raw: v.InferOutput<typeof Span>,
  service_name: string,
  about: ReadonlyMap<string, Json>,
  redactor: Redactor,
): SpanAttribute[] {
  const said = readAttributes(raw.attributes, redactor);
  const function_id = said.get("engine.function.id");
  const invocation_id = said.get("engine.invocation.id");
  const isHandler = raw.name.startsWith("execute ");
  const own: [string, Json | undefined][] = [
    ["engine.kind", isHandler ? "handler" : "work"],
    ["engine.function_id", function_id ?? (isHandler ? raw.name.slice(8) : undefined)],
    ["engine.invocation_id", invocation_id],
    ["engine.worker", service_name],
    ["engine.worker_id", about.get("service.instance.id")],
    ["engine.error_code", said.get("engine.error.code") ?? said.get("engine.error_code")],
  ];
  return [
    ...own.filter((pair): pair is [string, Json] => pair[1] !== undefined),
    ...[...said].filter(([name]) => !name.startsWith("engine.")),
  ];
}

function readEvent(raw: unknown, redactor: Redactor): JsonObject {
  const { name, timeUnixNano, traceId, spanId, attributes } = (raw ?? {}) as Record<
    string,
    unknown
  >;
  const about = Array.isArray(attributes) ? readAttributes(attributes, redactor) : [];
  const event: JsonObject = { attributes: [...about].map(([name, value]) => [name, value]) };
  if (typeof name === "string") event.name = cut(name, TELEMETRY_NAME_CHARS_MAX);
  const at_ms = readNanos(timeUnixNano as string | number | undefined);
  if (at_ms !== undefined) event.time_unix_nano = Math.round(at_ms * 1e3) * 1e3;
  if (typeof traceId === "string") event.trace_id = cut(traceId, 32);
  if (typeof spanId === "string") event.span_id = cut(spanId, 16);
  return event;
}

function named(text: string | null): string | null {
  return text === null ? null : cut(text, TELEMETRY_NAME_CHARS_MAX);
}

function nameOf(value: Json | undefined): string {
  return typeof value === "string" && value !== ""
    ? cut(value, TELEMETRY_NAME_CHARS_MAX)
    : "unknown";
}
