/**
 * Spans and calls with everything in them, of which a test changes what it is about.
 *
 * @module
 */
import type { CallSpan } from "../../engine/ports/telemetry.ts";
import type { NewLog } from "../../workers/observability/logs/record.ts";
import type { SpanAttribute, StoredSpan } from "../../workers/observability/traces/span.ts";

/** 2025-11-21T12:00:00Z. */
export const NOON = Date.UTC(2025, 10, 21, 12);

/** An id of so many hexadecimal digits that ends with a number. */
export function idOf(number: number, digits: number): string {
  return (number + 1).toString(16).padStart(digits, "0");
}

/** A call of `orders::create` that ended well after 10 ms. */
export function callSpan(changes: Partial<CallSpan> = {}): CallSpan {
  return {
    seq: 1,
    trace_id: idOf(1, 32),
    span_id: idOf(1, 16),
    parent_span_id: null,
    function_id: "orders::create",
    namespace: "default",
    invocation_id: "i-1",
    caller_invocation_id: "c-1",
    caller: { worker_id: "w-1", name: "shop" },
    callee: { worker_id: "w-2", name: "orders" },
    start_ms: NOON,
    sent_ms: NOON + 1,
    end_ms: NOON + 10,
    error_code: null,
    error_message: null,
    ended_by: null,
    timeout_ms: 30_000,
    request_chars: 7,
    response_chars: 8,
    request: '{"a":1}',
    response: '{"id":7}',
    baggage: null,
    candidates: null,
    ...changes,
  };
}

/** A span that ended well after 10 ms, with its attributes by name. */
export function storedSpan(
  changes: Partial<Omit<StoredSpan, "attributes">> = {},
  attributes: Record<string, SpanAttribute[1]> = {},
): StoredSpan {
  return {
    trace_id: idOf(1, 32),
    span_id: idOf(1, 16),
    parent_span_id: null,
    name: "work",
    service_name: "shop",
    start_ms: NOON,
    end_ms: NOON + 10,
    status: "ok",
    status_description: null,
    attributes: Object.entries(attributes),
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
    ...changes,
  };
}

/** A line that a worker's logger said. */
export function newLog(changes: Partial<NewLog> = {}): NewLog {
  return {
    at_ms: NOON,
    observed_ms: NOON,
    severity: "info",
    body: "hello",
    attributes: {},
    trace_id: null,
    span_id: null,
    service_name: "shop",
    worker: "shop",
    replica: null,
    source: "logger",
    function_id: null,
    scope_name: null,
    ...changes,
  };
}
