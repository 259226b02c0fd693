/**
 * A stored span (PROTOCOL 5.8) as the pages use it.
 *
 * Whatever comes is read without complaint: spans are made by workers of any language, and one that
 * is odd has to be shown, not to break the page.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  type Attributes,
  attributesOf,
  isObject,
  msOf,
  numberOf,
  textOf,
} from "../../kit/stored_json.ts";

/** What a span tells of: a call, the handler that ran it, or any other work. */
export type SpanKind = "call" | "handler" | "work";

/** One span. Times are milliseconds since 1970, with fractions. */
export interface TraceSpan {
  readonly id: string;
  readonly trace_id: string;
  /** `null` when it began the trace. */
  readonly parentId: string | null;
  readonly name: string;
  /** Name of the worker that it is about. */
  readonly service: string;
  readonly kind: SpanKind;
  readonly startMs: number;
  /** `null` while it runs. */
  readonly endMs: number | null;
  readonly failed: boolean;
  /** Code of the error; `null` without one, also when it failed. */
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly attributes: Attributes;
}

/** Reads one span; missing members become empty. */
export function readSpan(raw: Json): TraceSpan {
  const span = isObject(raw) ? raw : {};
  const attributes = attributesOf(span.attributes);
  const name = textOf(span.name) || "(without a name)";
  const startMs = msOf(span.start_time_unix_nano);
  const endNano = span.end_time_unix_nano;
  const isPending = span.pending === true || endNano === null || endNano === undefined ||
    Number(endNano) === 0;
  const status = statusOf(span.status);
  const code = textOf(attributes["engine.error_code"]);
  const failed = status.text.includes("error") || code !== "";
  return {
    id: textOf(span.span_id),
    trace_id: textOf(span.trace_id),
    parentId: textOf(span.parent_span_id) || null,
    name,
    service: textOf(span.service_name) || textOf(attributes["engine.worker"]) || "?",
    kind: kindOf(name, attributes),
    startMs,
    endMs: isPending ? null : Math.max(msOf(endNano), startMs),
    failed,
    errorCode: failed && code !== "" ? code : null,
    errorMessage: failed ? textOf(span.status_description) || status.message || null : null,
    attributes,
  };
}

/** Milliseconds from start to end; to `nowMs` while it runs. */
export function durationOf(span: TraceSpan, nowMs: number): number {
  return Math.max(0, (span.endMs ?? nowMs) - span.startMs);
}

/** The text of an attribute; empty when it is missing. */
export function attributeText(span: TraceSpan, name: string): string {
  return textOf(span.attributes[name]);
}

/** The number of an attribute; 0 when it is missing or no number. */
export function attributeNumber(span: TraceSpan, name: string): number {
  return numberOf(span.attributes[name]);
}

/** Id of the function that was called; `null` for other work. */
export function functionOf(span: TraceSpan): string | null {
  return attributeText(span, "engine.function_id") ||
    attributeText(span, "engine.function.id") || null;
}

function kindOf(name: string, attributes: Attributes): SpanKind {
  const kind = attributes["engine.kind"];
  if (kind === "call" || kind === "handler") return kind;
  return name.startsWith("execute ") ? "handler" : "work";
}

function statusOf(raw: Json | undefined): { text: string; message: string } {
  if (isObject(raw)) return { text: textOf(raw.code).toLowerCase(), message: textOf(raw.message) };
  return { text: textOf(raw).toLowerCase(), message: "" };
}
