/**
 * Reads spans in OTLP/JSON, as SDKs and other clients send them.
 *
 * The input is untrusted: malformed spans are counted and skipped, large ones are cut. Attributes
 * that begin with `engine.` are ignored, except those that name the call of a span.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import {
  cut,
  type FrameItems,
  readAttributes,
  readItems,
  readNanos,
  TELEMETRY_NAME_CHARS_MAX,
  TELEMETRY_TEXT_CHARS_MAX,
} from "../intake.ts";
import type { Redactor } from "../redact.ts";
import type { SpanAttribute, StoredSpan } from "./span.ts";

type Scope = Pick<StoredSpan, "scope_name" | "scope_version">;

/** Events and links per span. */
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

/** Reads an OTLP frame of spans. @throws {Error} The frame is malformed. */
export function readSpans(frame: unknown, redactor: Redactor): FrameItems<StoredSpan> {
  let resource: ReadonlyMap<string, Json> = new Map();
  let scope: Scope = { scope_name: null, scope_version: null };
  return readItems(frame, LISTS, ({ resource: list, scope_name, scope_version }) => {
    resource = readAttributes(list, redactor);
    scope = { scope_name: named(scope_name), scope_version: named(scope_version) };
  }, (raw) => {
    const read = v.safeParse(Span, raw);
    return read.success ? spanOf(read.output, resource, scope, redactor) : undefined;
  });
}

function spanOf(
  raw: v.InferOutput<typeof Span>,
  resource: ReadonlyMap<string, Json>,
  scope: Scope,
  redactor: Redactor,
): StoredSpan | undefined {
  const start_ms = readNanos(raw.startTimeUnixNano);
  const end_ms = readNanos(raw.endTimeUnixNano);
  if (start_ms === undefined || end_ms === undefined) return undefined;
  const service_name = nameOf(resource.get("service.name"));
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
    attributes: ownAttributes(raw, service_name, resource, redactor),
    events: raw.events.slice(0, EVENTS_MAX).map((event) => readEvent(event, redactor)),
    links: raw.links.slice(0, EVENTS_MAX).map((link) => readEvent(link, redactor)),
    ...scope,
  };
}

/** The span's attributes, preceded by those that name its worker and its call. */
function ownAttributes(
  raw: v.InferOutput<typeof Span>,
  service_name: string,
  resource: ReadonlyMap<string, Json>,
  redactor: Redactor,
): SpanAttribute[] {
  const attributes = readAttributes(raw.attributes, redactor);
  const function_id = attributes.get("engine.function.id");
  const invocation_id = attributes.get("engine.invocation.id");
  const isHandler = raw.name.startsWith("execute ");
  const own: [string, Json | undefined][] = [
    ["engine.kind", isHandler ? "handler" : "work"],
    ["engine.function_id", function_id ?? (isHandler ? raw.name.slice(8) : undefined)],
    ["engine.invocation_id", invocation_id],
    ["engine.worker", service_name],
    ["engine.worker_id", resource.get("service.instance.id")],
    [
      "engine.error_code",
      attributes.get("engine.error.code") ?? attributes.get("engine.error_code"),
    ],
  ];
  return [
    ...own.filter((pair): pair is [string, Json] => pair[1] !== undefined),
    ...[...attributes].filter(([name]) => !name.startsWith("engine.")),
  ];
}

function readEvent(raw: unknown, redactor: Redactor): JsonObject {
  const { name, timeUnixNano, traceId, spanId, attributes } = (raw ?? {}) as Record<
    string,
    unknown
  >;
  const read = Array.isArray(attributes) ? readAttributes(attributes, redactor) : [];
  const event: JsonObject = { attributes: [...read].map(([name, value]) => [name, value]) };
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
