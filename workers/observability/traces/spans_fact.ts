/**
 * The little that lists and maps need of a span, made quickly: they look at tens of thousands.
 *
 * @module
 */
import type { CallSpan } from "../../../engine/ports/telemetry.ts";
import { attributeText, type SpanKind, type StoredSpan } from "./spans_stored.ts";

/** See the top of this file; the members are those of {@linkcode StoredSpan}. */
export interface SpanFact {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly kind: SpanKind;
  readonly name: string;
  readonly service_name: string;
  readonly start_ms: number;
  readonly end_ms: number | null;
  readonly failed: boolean;
  readonly error_code: string | null;
  readonly namespace: string;
  /** The function that was called; `null`: it is about none. */
  readonly function_id: string | null;
  /** Name of who called; `null`: it is no call. */
  readonly caller: string | null;
  /** Name of who ran it; `null`: nobody. */
  readonly worker: string | null;
}

/** Of a call. */
export function factOfCall(call: CallSpan): SpanFact {
  const { trace_id, span_id, parent_span_id, function_id, namespace, error_code } = call;
  const worker = call.callee?.name ?? null;
  return {
    trace_id,
    span_id,
    parent_span_id,
    kind: "call",
    name: function_id,
    service_name: worker ?? "engine",
    start_ms: call.start_ms,
    end_ms: call.end_ms,
    failed: error_code !== null,
    error_code,
    namespace,
    function_id,
    caller: call.caller.name,
    worker,
  };
}

/** Of any other span. */
export function factOfSpan(span: StoredSpan): SpanFact {
  const { trace_id, span_id, parent_span_id, name, service_name, start_ms, end_ms, status } = span;
  const failed = status === "error";
  const text = (attribute: string): string | null => attributeText(span, attribute) ?? null;
  return {
    trace_id,
    span_id,
    parent_span_id,
    kind: (text("engine.kind") ?? "work") as SpanKind,
    name,
    service_name,
    start_ms,
    end_ms,
    failed,
    error_code: text("engine.error_code") ?? (failed ? "error" : null),
    namespace: text("engine.namespace") ?? "default",
    function_id: text("engine.function_id"),
    caller: text("engine.caller"),
    worker: text("engine.worker"),
  };
}
