/**
 * Spans of the engine's own: of the calls that the router saw, and of what built-in workers did.
 *
 * @module
 */
import type { CallSpan, EndedSpan } from "../../engine/ports/telemetry.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import { readTraceparent } from "../../sdk/typescript/traceparent.ts";
import type { Redactor } from "./redact.ts";
import type { SpanAttribute, StoredSpan } from "./spans_stored.ts";

/** Nobody ran it. */
const NOBODY = "engine";

/** The span of a call; with its payloads, redacted, when a redactor is given. */
export function spanOfCall(call: CallSpan, redactor: Redactor | null): StoredSpan {
  return {
    trace_id: call.trace_id,
    span_id: call.span_id,
    parent_span_id: call.parent_span_id,
    name: call.function_id,
    service_name: call.callee?.name ?? NOBODY,
    start_ms: call.start_ms,
    end_ms: call.end_ms,
    status: call.error_code !== null ? "error" : call.end_ms === null ? "unset" : "ok",
    status_description: call.error_message,
    attributes: attributesOf(call, redactor),
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
  };
}

/** The span of what a built-in worker did; `undefined` when its traceparent is none. */
export function spanOfEnded(ended: EndedSpan, redactor: Redactor): StoredSpan | undefined {
  const own = readTraceparent(ended.traceparent);
  if (!own) return undefined;
  const parent = readTraceparent(ended.parent ?? undefined);
  const attributes: SpanAttribute[] = Object.entries(ended.attributes)
    .map(([name, value]) => [name, redactor.hits(name) ? "[redacted]" : value]);
  if (ended.attributes["engine.kind"] === undefined) attributes.unshift(["engine.kind", "work"]);
  if (ended.attributes["engine.worker"] === undefined) {
    attributes.push(["engine.worker", ended.service]);
  }
  return {
    trace_id: own.trace_id,
    span_id: own.span_id,
    parent_span_id: parent?.trace_id === own.trace_id ? parent.span_id : null,
    name: ended.name,
    service_name: ended.service,
    start_ms: ended.start_ms,
    end_ms: ended.end_ms,
    status: ended.error === null ? "ok" : "error",
    status_description: ended.error,
    attributes,
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
  };
}

function attributesOf(call: CallSpan, redactor: Redactor | null): SpanAttribute[] {
  const { caller, callee, sent_ms, start_ms } = call;
  const attributes: [name: string, value: Json | undefined][] = [
    ["engine.kind", "call"],
    ["engine.function_id", call.function_id],
    ["engine.namespace", call.namespace],
    ["engine.invocation_id", call.invocation_id || undefined],
    ["engine.caller_invocation_id", call.caller_invocation_id ?? undefined],
    ["engine.caller", caller.name],
    ["engine.caller_id", caller.worker_id],
    ["engine.worker", callee?.name],
    ["engine.worker_id", callee?.worker_id],
    ["engine.queued_ms", sent_ms === null ? undefined : Math.max(0, sent_ms - start_ms)],
    ["engine.timeout_ms", call.timeout_ms],
    ["engine.error_code", call.error_code ?? undefined],
    ["engine.ended_by", call.ended_by ?? undefined],
    ["engine.request_chars", call.request_chars ?? undefined],
    ["engine.response_chars", call.response_chars ?? undefined],
    ["engine.baggage", call.baggage ?? undefined],
    ["engine.replicas", call.candidates?.map((candidate) => ({ ...candidate }))],
  ];
  if (redactor) {
    attributes.push(["engine.request", textOf(call.request, redactor)]);
    attributes.push(["engine.response", textOf(call.response, redactor)]);
  }
  return attributes.filter((pair): pair is [string, Json] => pair[1] !== undefined);
}

function textOf(json: string | null, redactor: Redactor): string | undefined {
  return json === null ? undefined : redactor.text(json) ?? undefined;
}
