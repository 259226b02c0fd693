/**
 * `engine::traces::explain`: what became of one call, and why, in sentences and in numbers.
 *
 * What is not known is said to be unknown: only the worker knows how long its handler ran, and
 * only an SDK with telemetry tells.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import { type LogRecord, wireLog } from "../logs/record.ts";
import type { LogRing } from "../logs/store.ts";
import {
  attributeOf,
  attributeText,
  durationOf,
  type StoredSpan,
  wireSpan,
} from "../traces/span.ts";
import type { SpanStore } from "../traces/store.ts";

/** Payload of `engine::traces::explain`. */
export const ExplainRequest = v.object({
  invocation_id: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200)),
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

/** Names that one sentence lists. */
const NAMED_MAX = 5;

/** What took longer to be sent had to wait for somebody who could run it, in milliseconds. */
const HELD_MS = 1;

/** One sentence per line, without full stops. */
export function explainLines(explained: Explained): string[] {
  return [
    ...begin(explained),
    ...choice(explained),
    ...waiting(explained),
    ...work(explained),
    ...retries(explained),
    end(explained),
    ...said(explained),
  ];
}

function begin({ span, request }: Explained): string[] {
  const caller = attributeText(span, "engine.caller") ?? "somebody";
  const namespace = attributeText(span, "engine.namespace") ?? "default";
  const where = namespace === "default" ? "" : ` in namespace ${namespace}`;
  const isVoid = attributeText(span, "engine.caller_invocation_id") === undefined;
  const lines = [
    `${caller} called ${span.name}${where} at ${new Date(span.start_ms).toISOString()}` +
    `${isVoid ? " without waiting for a result" : ""}, in trace ${span.trace_id}`,
  ];
  if (request) lines.push(`It answered the HTTP request ${request.name}`);
  return lines;
}

function choice({ span, replicas }: Explained): string[] {
  const worker = attributeText(span, "engine.worker");
  if (worker === undefined && !replicas?.length) {
    const isUnknown = attributeText(span, "engine.error_code") === "function_not_found";
    return [isUnknown ? `No worker ran it: none offered ${span.name}` : "No worker ran it"];
  }
  if (replicas === null) {
    return [`${worker} ran it; which other replicas there were is not recorded of this call`];
  }
  const nameOf = naming(replicas);
  const chosen = replicas.find((replica) => replica.chosen);
  const able = replicas.filter(({ passed_over }) => passed_over === null);
  const unable = replicas.filter(({ passed_over }) => passed_over !== null);
  const ran = worker === undefined ? "No worker" : chosen ? nameOf(chosen) : worker;
  const lines = [`${ran} ran it${why(chosen, able, replicas.length)}`];
  const others = able.filter((replica) => !replica.chosen);
  if (others.length > 0) {
    const names = others.map((replica) => `${nameOf(replica)} (running ${replica.in_flight})`);
    lines.push(`It could also have gone to ${listed(names)}`);
  }
  if (unable.length > 0) {
    const names = unable.map((replica) => `${nameOf(replica)} (${replica.passed_over})`);
    lines.push(`Passed over: ${listed(names)}`);
  }
  return lines;
}

/** Copies of one worker have one name: the beginning of the id of their line tells them apart. */
function naming(replicas: readonly Replica[]): (replica: Replica) => string {
  const names = replicas.map(({ name }) => name);
  return ({ name, worker_id }) =>
    names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} ${worker_id.slice(0, 8)}`;
}

function why(chosen: Replica | undefined, able: readonly Replica[], count: number): string {
  if (!chosen) return able.length === 0 ? `: none of ${count} replicas could take it` : "";
  if (count === 1) return ", the only replica there was";
  if (able.length === 1) return `, the only one of ${count} replicas that could take it`;
  const busy = chosen.in_flight === 0 ? "idle" : `running ${counted(chosen.in_flight, "call")}`;
  const equal = able.filter(({ in_flight }) => in_flight === chosen.in_flight);
  if (able.some(({ in_flight }) => in_flight < chosen.in_flight)) {
    return `, one of ${count} replicas, ${busy}`;
  }
  return equal.length > 1
    ? `: ${equal.length} of ${count} replicas were ${busy}, and it was its turn`
    : `: of ${count} replicas it was the least busy (${busy})`;
}

function waiting({ timing: { queued_ms, total_ms }, span }: Explained): string[] {
  const restart = "the workers that offer it were being restarted";
  if (queued_ms === null) {
    if (span.end_ms === null) return [`It is waiting in the engine, because ${restart}`];
    return total_ms < HELD_MS ? [] : [`It waited ${ms(total_ms)} and was never sent: ${restart}`];
  }
  if (queued_ms < HELD_MS) return ["It was sent at once"];
  return [`It waited ${ms(queued_ms)} in the engine before it was sent, because ${restart}`];
}

function work(explained: Explained): string[] {
  const lines = handling(explained);
  const { nested, nowMs } = explained;
  if (nested.length === 0) return lines;
  const total = nested.reduce((sum, each) => sum + durationOf(each, nowMs), 0);
  const slowest = nested.toSorted((a, b) => durationOf(b, nowMs) - durationOf(a, nowMs))
    .map((each) => nestedText(each, nowMs));
  lines.push(
    `It made ${counted(nested.length, "call")} of its own, ` +
      `${ms(total)} together: ${listed(slowest)}`,
  );
  return lines;
}

/** Where the time went after it was sent. */
function handling({ timing, inEngine, span }: Explained): string[] {
  const { queued_ms, wire_ms, handler_ms, total_ms } = timing;
  if (queued_ms === null) return [];
  if (handler_ms === null) {
    if (inEngine) return ["It ran inside the engine, without a wire between"];
    if (span.end_ms === null) return [];
    return [
      "How much of its time the handler took, and how much the wire, is not known: " +
      "its worker told nothing of it",
    ];
  }
  if (wire_ms !== null) {
    return [
      `${ms(wire_ms)} went by on the wire and before and after its handler`,
      `Its handler ran for ${ms(handler_ms)}`,
    ];
  }
  const beyond = span.end_ms === null ? 0 : queued_ms + handler_ms - total_ms;
  const late = beyond > 0 ? `, ${ms(beyond)} longer than anybody waited for it` : "";
  return [`Its handler ran for ${ms(handler_ms)}${late}`];
}

function nestedText(span: StoredSpan, nowMs: number): string {
  const code = attributeText(span, "engine.error_code");
  const how = code !== undefined ? `, ${code}` : span.end_ms === null ? ", still running" : "";
  return `${span.name} (${ms(durationOf(span, nowMs))}${how})`;
}

function retries({ attempts, span }: Explained): string[] {
  const count = attempts.length;
  if (count < 2) return [];
  const at = attempts.findIndex(({ span_id }) => span_id === span.span_id) + 1;
  const failed = attempts.filter(({ status }) => status === "error").length;
  const some = failed === 0 ? "none" : failed === count ? "all" : failed;
  return [
    `The same caller called ${span.name} ${count} times here; this was number ${at}, ` +
    `and ${some} of them failed`,
  ];
}

function end(explained: Explained): string {
  const { span, timing: { total_ms } } = explained;
  const timeout = attributeOf(span, "engine.timeout_ms");
  const limit = typeof timeout === "number" ? ms(timeout) : undefined;
  if (span.end_ms === null) {
    return `It is still running, for ${ms(total_ms)}${limit ? `, of ${limit} at most` : ""}`;
  }
  const after = total_ms === 0 ? "at once" : `after ${ms(total_ms)}`;
  const code = attributeText(span, "engine.error_code");
  if (code === undefined) return `It ended well ${after}`;
  if (attributeText(span, "engine.ended_by") !== undefined) {
    return `It failed ${after} with ${code}, because ${causeOf(explained, limit)}`;
  }
  const message = span.status_description === null ? "" : `: ${span.status_description}`;
  return `It failed ${after} with ${code}${message}${originOf(explained, code)}`;
}

/** Who ended it before its time; the engine's own message would only say so again. */
function causeOf({ span, request }: Explained, limit: string | undefined): string {
  const by = attributeText(span, "engine.ended_by")!;
  const code = attributeText(span, "engine.error_code");
  if (code === "timeout" && limit) return `its time-out of ${limit} passed`;
  const status = request && attributeOf(request, "http.response.status_code");
  if (code === "cancelled" && status === 499) return "the HTTP client went away";
  return by;
}

/** The call of its own whose error it handed on. */
function originOf({ nested, span }: Explained, code: string): string {
  const origin = nested.findLast((each) =>
    attributeText(each, "engine.error_code") === code &&
    each.status_description === span.status_description
  );
  return origin ? `; it was ${origin.name}, which it had called, that failed so` : "";
}

function said({ logs }: Explained): string[] {
  if (logs.length === 0) return [];
  const worst = logs.find(({ severity }) => severity === "error") ?? logs.at(-1)!;
  const count = logs.length === 1 ? "1 line was" : `${logs.length} lines were`;
  return [`${count} logged; ${worst.severity}: ${firstLine(worst.body)}`];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n", 1);
  return line.length <= 200 ? line : `${line.slice(0, 199)}…`;
}

function listed(names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  const shown = names.slice(0, NAMED_MAX).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** `0.04 ms`, `12 ms`, `2.8 s`, `10 min`. */
function ms(value: number): string {
  if (value < 10) return `${Number(value.toFixed(2))} ms`;
  if (value < 1_000) return `${Math.round(value)} ms`;
  if (value < 120_000) return `${Number((value / 1_000).toFixed(1))} s`;
  return `${Math.round(value / 60_000)} min`;
}
