/**
 * `engine::traces::explain`: what became of one call, and why, in sentences and in numbers.
 *
 * What is not known is said to be unknown: only the worker knows how long its handler ran, and
 * only an SDK with telemetry tells.
 *
 * @module
 */
import * as shape from "../../kit/mod.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { explainLines } from "./explain_lines.ts";
import { type LogRecord, wireLog } from "../logs/record.ts";
import type { LogRing } from "../logs/ring.ts";
import {
  attributeOf,
  attributeText,
  durationOf,
  type StoredSpan,
  wireSpan,
} from "../traces/spans_stored.ts";
import type { SpanStore } from "../traces/spans_store.ts";

/** Payload of `engine::traces::explain`. */
export const ExplainRequest = shape.object({
  invocation_id: shape.string().trim().min(1).max(200),
});

/** Log lines that an answer holds. */
const LOGS_MAX = 50;

/** Where to look. */
export interface ExplainSetup {
  readonly spans: SpanStore;
  readonly logs: LogRing;
  /** Whether calls are recorded at all, and whether all of them are. */
  readonly recording: "all" | "some" | "none";
  /** Whether a connection is that of a worker inside the engine. */
  isInEngine(worker_id: string): boolean;
}

/** A replica that could have run the call. */
export interface Replica {
  readonly worker_id: string;
  readonly name: string;
  readonly in_flight: number;
  readonly passed_over: string | null;
  readonly chosen: boolean;
}

/** Milliseconds; `null`: not known. */
export interface Timing {
  readonly queued_ms: number | null;
  readonly wire_ms: number | null;
  readonly handler_ms: number | null;
  readonly total_ms: number;
}

/** A call, and all that is known about it. */
export interface Explained {
  readonly span: StoredSpan;
  readonly replicas: readonly Replica[] | null;
  readonly timing: Timing;
  /** Calls that its handler made, in order. */
  readonly nested: readonly StoredSpan[];
  /** Calls of the same function by the same caller beside it, in order, itself included. */
  readonly attempts: readonly StoredSpan[];
  /** Whether the worker that ran it is one of the engine's own, as far as is known. */
  readonly inEngine: boolean;
  /** The HTTP request it answered. */
  readonly request: StoredSpan | undefined;
  readonly logs: readonly LogRecord[];
  readonly nowMs: number;
}

/**
 * Explains the call that an id names: the engine's id of the call, the caller's, the id of a span,
 * or a trace, which stands for its first call.
 *
 * @throws {EngineError} `NOT_FOUND`, saying what is recorded and how far back.
 */
export function explain(
  setup: ExplainSetup,
  id: string,
  withPayloads: boolean,
  nowMs: number,
): JsonObject {
  const call = findCall(setup.spans, id);
  if (!call) throw notFound(setup, id, nowMs);
  const explained = gather(setup, call, withPayloads, nowMs);
  const { span, replicas, timing, nested, logs } = explained;
  return {
    found: true,
    lines: explainLines(explained),
    span: wireSpan(span, withPayloads),
    replicas: replicas === null ? null : replicas.map((replica) => ({ ...replica })),
    timing: { ...timing },
    nested: nested.map((each) => ({
      function_id: each.name,
      duration_ms: durationOf(each, nowMs),
      error_code: attributeText(each, "engine.error_code") ?? null,
      span_id: each.span_id,
    })),
    logs: logs.map(wireLog),
    ended_by: attributeText(span, "engine.ended_by") ?? null,
    trace_id: span.trace_id,
  };
}

function findCall(spans: SpanStore, given: string): StoredSpan | undefined {
  const id = given.toLowerCase();
  if (/^[0-9a-f]{16}$/.test(id)) {
    const [span] = spans.find({ span_id: id }, 1);
    if (span) return isCall(span) ? span : callAround(spans, span);
  }
  if (/^[0-9a-f]{32}$/.test(id)) {
    const calls = callsIn(spans.trace(id, false));
    if (calls.length > 0) return calls.find((span) => !spans.isInternal(span)) ?? calls[0];
  }
  return callsIn(spans.find({ invocation_id: given }, 10))[0];
}

/** The call that a handler's span belongs to, or the first below a request. */
function callAround(spans: SpanStore, span: StoredSpan): StoredSpan | undefined {
  const calls = callsIn(spans.trace(span.trace_id, false));
  return calls.find(({ span_id }) => span_id === span.parent_span_id) ??
    calls.find(({ parent_span_id }) => parent_span_id === span.span_id);
}

function gather(
  { spans, logs, isInEngine }: ExplainSetup,
  call: StoredSpan,
  withPayloads: boolean,
  nowMs: number,
): Explained {
  const trace = spans.trace(call.trace_id, withPayloads);
  const span = trace.find(({ span_id }) => span_id === call.span_id) ?? call;
  const handler = trace.find((each) =>
    each.parent_span_id === span.span_id && attributeText(each, "engine.kind") === "handler"
  );
  const around = new Set([span.span_id, ...handler ? [handler.span_id] : []]);
  const said = logs.find({ trace_id: span.trace_id }, { offset: 0, limit: 1_000, order: "asc" });
  return {
    span,
    replicas: replicasOf(span),
    timing: timingOf(span, handler, nowMs),
    nested: callsIn(trace).filter(({ parent_span_id }) => around.has(parent_span_id ?? "")),
    attempts: callsIn(trace).filter((each) =>
      each.name === span.name && each.parent_span_id === span.parent_span_id &&
      attributeText(each, "engine.caller_id") === attributeText(span, "engine.caller_id")
    ),
    inEngine: isInEngine(attributeText(span, "engine.worker_id") ?? ""),
    request: trace.find((each) =>
      each.span_id === span.parent_span_id && attributeText(each, "engine.kind") === "http"
    ),
    logs: said.records.filter(({ span_id }) => span_id !== null && around.has(span_id))
      .slice(0, LOGS_MAX),
    nowMs,
  };
}

function timingOf(span: StoredSpan, handler: StoredSpan | undefined, nowMs: number): Timing {
  const total_ms = durationOf(span, nowMs);
  const queued = attributeOf(span, "engine.queued_ms");
  const queued_ms = typeof queued === "number" ? queued : null;
  const handler_ms = handler ? durationOf(handler, nowMs) : null;
  const wire_ms = wireOf(span, total_ms, queued_ms ?? 0, handler_ms);
  return { queued_ms, wire_ms, handler_ms, total_ms };
}

/** Only durations are compared: the clocks of worker and engine may differ. */
function wireOf(
  span: StoredSpan,
  total_ms: number,
  queued_ms: number,
  handler_ms: number | null,
): number | null {
  if (handler_ms === null || span.end_ms === null) return null;
  const wire_ms = total_ms - queued_ms - handler_ms;
  // A handler may go on after its call was ended, which says nothing about the wire.
  if (wire_ms < 0 && attributeText(span, "engine.ended_by") !== undefined) return null;
  return Math.max(0, wire_ms);
}

function replicasOf(span: StoredSpan): Replica[] | null {
  const replicas = attributeOf(span, "engine.replicas");
  if (!Array.isArray(replicas)) return null;
  const chosen = attributeText(span, "engine.worker_id");
  return replicas.map((each) => {
    const { worker_id = "", name = "", in_flight = 0, passed_over = null } = each as Record<
      string,
      Json
    >;
    return {
      worker_id: String(worker_id),
      name: String(name),
      in_flight: Number(in_flight),
      passed_over: passed_over === null ? null : String(passed_over),
      chosen: worker_id === chosen,
    };
  });
}

function callsIn(spans: readonly StoredSpan[]): StoredSpan[] {
  return spans.filter(isCall);
}

function isCall(span: StoredSpan): boolean {
  return attributeText(span, "engine.kind") === "call";
}

function notFound({ spans, recording }: ExplainSetup, id: string, nowMs: number): EngineError {
  const { oldestMs } = spans;
  const [stranger] = spans.trace(id.toLowerCase(), false);
  if (stranger) {
    const what = `${stranger.name} of ${stranger.service_name}`;
    const message = `Trace ${id} is known, but no call in it: it begins with ${what}`;
    return new EngineError("NOT_FOUND", message, { details: { oldest_ms: oldestMs } });
  }
  const reason = recording === "none"
    ? "tracing is off; turn it on with traces.enabled of engine-observability"
    : oldestMs === null
    ? "no call is recorded yet"
    : `what is recorded goes back ${secondsOf(nowMs - oldestMs)}; keep more with ` +
      "traces.memory_mb of engine-observability" +
      (recording === "some"
        ? ", and not every call is sampled"
        : "; what a caller's traceparent says not to sample is not recorded");
  return new EngineError("NOT_FOUND", `Nothing is known of ${id}: ${reason}`, {
    details: { oldest_ms: oldestMs },
  });
}

function secondsOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
