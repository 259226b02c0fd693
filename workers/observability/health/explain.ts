/**
 * Answers `engine::traces::explain`: how one call went and why, in sentences and in numbers.
 *
 * Unknown values are stated as such: the duration of a handler, for example, is known only if the
 * worker's SDK sends telemetry.
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
  /** Asked by another engine: the call that came from there, whose span is the given one. */
  trace_id: v.nullish(v.pipe(v.string(), v.maxLength(200))),
  /** This engine alone is asked. */
  local: v.nullish(v.boolean()),
});

/** Log records in an answer. */
const LOGS_MAX = 50;

/** Sources of an explanation. */
export interface ExplainSetup {
  readonly spans: SpanStore;
  readonly logs: LogRing;
  /** Which calls are recorded. */
  readonly recording: "all" | "some" | "none";
  /** Whether a connection belongs to a built-in worker. */
  isInEngine(worker_id: string): boolean;
  /** Name of the other engine that a connection leads to; `undefined`: to none. */
  engineOf(worker_id: string): string | undefined;
}

/** A candidate replica of the call. */
export interface Replica {
  readonly worker_id: string;
  readonly name: string;
  readonly in_flight: number;
  readonly passed_over: string | null;
  readonly chosen: boolean;
  /** The connection leads to another engine, which has that name. */
  readonly isEngine: boolean;
}

/** Milliseconds; `null`: unknown. */
export interface Timing {
  readonly queued_ms: number | null;
  readonly wire_ms: number | null;
  readonly handler_ms: number | null;
  readonly total_ms: number;
}

/** A call and everything recorded about it. */
export interface Explained {
  readonly span: StoredSpan;
  readonly replicas: readonly Replica[] | null;
  readonly timing: Timing;
  /** Calls made by its handler, in order. */
  readonly nested: readonly StoredSpan[];
  /** Sibling calls of the same function by the same caller, in order, including this one. */
  readonly attempts: readonly StoredSpan[];
  /** Whether a built-in worker ran it. */
  readonly inEngine: boolean;
  /** Name of the other engine that it was sent to. */
  readonly engine: string | undefined;
  /** The HTTP request that it handled. */
  readonly request: StoredSpan | undefined;
  readonly logs: readonly LogRecord[];
  readonly nowMs: number;
}

/**
 * Explains the call that an id names: the engine's id of the call, the caller's, the id of a span,
 * or a trace, which stands for its first call. With `within`, the id of a trace, it explains the
 * call of that trace which was made by the span with the id.
 *
 * @throws {EngineError} `NOT_FOUND`, saying what is recorded and how far back.
 */
export function explain(
  setup: ExplainSetup,
  id: string,
  withPayloads: boolean,
  nowMs: number,
  within?: string,
): JsonObject {
  const { spans: all } = setup;
  const call = within === undefined ? findCall(all, id) : callBelow(all, within, id);
  if (!call) throw notFound(setup, id, nowMs);
  const explained = gather(setup, call, withPayloads, nowMs);
  const { span, replicas, timing, nested, logs } = explained;
  return {
    found: true,
    lines: explainLines(explained),
    span: wireSpan(span, withPayloads),
    replicas: replicas === null ? null : replicas.map(({ isEngine, ...replica }) => ({
      ...replica,
      ...isEngine && { engine: replica.name },
    })),
    timing: { ...timing },
    nested: nested.map((each) => ({
      function_id: each.name,
      duration_ms: durationOf(each, nowMs),
      error_code: attributeText(each, "engine.error_code") ?? null,
      span_id: each.span_id,
    })),
    logs: logs.map((record) => wireLog(record)),
    ended_by: attributeText(span, "engine.ended_by") ?? null,
    stacktrace: attributeText(span, "exception.stacktrace") ?? null,
    trace_id: span.trace_id,
    ...explained.engine !== undefined && { engine: explained.engine },
  };
}

/** The call that another engine made of one there. */
function callBelow(spans: SpanStore, trace_id: string, span_id: string): StoredSpan | undefined {
  return callsIn(spans.trace(trace_id, false)).find((span) => span.parent_span_id === span_id);
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

/** The call of a handler's span, or the first call below a request. */
function callAround(spans: SpanStore, span: StoredSpan): StoredSpan | undefined {
  const calls = callsIn(spans.trace(span.trace_id, false));
  return calls.find(({ span_id }) => span_id === span.parent_span_id) ??
    calls.find(({ parent_span_id }) => parent_span_id === span.span_id);
}

function gather(
  { spans, logs, isInEngine, engineOf }: ExplainSetup,
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
  const found = logs.find({ trace_id: span.trace_id }, { offset: 0, limit: 1_000, order: "asc" });
  return {
    span,
    replicas: replicasOf(span, engineOf),
    timing: timingOf(span, handler, nowMs),
    nested: callsIn(trace).filter(({ parent_span_id }) => around.has(parent_span_id ?? "")),
    attempts: callsIn(trace).filter((each) =>
      each.name === span.name && each.parent_span_id === span.parent_span_id &&
      attributeText(each, "engine.caller_id") === attributeText(span, "engine.caller_id")
    ),
    inEngine: isInEngine(attributeText(span, "engine.worker_id") ?? ""),
    engine: engineOf(attributeText(span, "engine.worker_id") ?? ""),
    request: trace.find((each) =>
      each.span_id === span.parent_span_id && attributeText(each, "engine.kind") === "http"
    ),
    logs: found.records.filter(({ span_id }) => span_id !== null && around.has(span_id))
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

/** Compares durations only, since the clocks of worker and engine may differ. */
function wireOf(
  span: StoredSpan,
  total_ms: number,
  queued_ms: number,
  handler_ms: number | null,
): number | null {
  if (handler_ms === null || span.end_ms === null) return null;
  const wire_ms = total_ms - queued_ms - handler_ms;
  // The handler may have continued after the call was ended early.
  if (wire_ms < 0 && attributeText(span, "engine.ended_by") !== undefined) return null;
  return Math.max(0, wire_ms);
}

function replicasOf(
  span: StoredSpan,
  engineOf: ExplainSetup["engineOf"],
): Replica[] | null {
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
      isEngine: engineOf(String(worker_id)) !== undefined,
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
    const message = `Trace ${id} contains no call; it begins with ${what}`;
    return new EngineError("NOT_FOUND", message, { details: { oldest_ms: oldestMs } });
  }
  const reason = recording === "none"
    ? "tracing is off; turn it on with traces.enabled of engine-observability"
    : oldestMs === null
    ? "no calls are recorded yet"
    : `recorded calls go back ${secondsOf(nowMs - oldestMs)}; increase ` +
      "traces.memory_mb of engine-observability" +
      (recording === "some"
        ? ", and not every call is sampled"
        : "; calls whose traceparent is not sampled are not recorded");
  return new EngineError("NOT_FOUND", `Nothing is recorded about ${id}: ${reason}`, {
    details: { oldest_ms: oldestMs },
  });
}

function secondsOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/** Names listed in one sentence. */
const NAMED_MAX = 5;

/** A longer queueing time means that no replica was available. */
const QUEUED_MS = 1;

/** The explanation in chronological order: one sentence per line, without full stops. */
export function explainLines(explained: Explained): string[] {
  return [
    ...begin(explained),
    ...choice(explained),
    ...waiting(explained),
    ...work(explained),
    ...retries(explained),
    end(explained),
    ...logged(explained),
  ];
}

function begin({ span, request }: Explained): string[] {
  const caller = attributeText(span, "engine.caller") ?? "An unknown caller";
  const namespace = attributeText(span, "engine.namespace") ?? "default";
  const where = namespace === "default" ? "" : ` in namespace ${namespace}`;
  const isVoid = attributeText(span, "engine.caller_invocation_id") === undefined;
  const lines = [
    `${caller} called ${span.name}${where} at ${new Date(span.start_ms).toISOString()}` +
    `${isVoid ? " without waiting for a result" : ""}, in trace ${span.trace_id}`,
  ];
  if (request) lines.push(requestText(request));
  return lines;
}

/** The request takes longer than its call, and the console lists the request. */
function requestText(request: StoredSpan): string {
  const status = attributeOf(request, "http.response.status_code");
  if (request.end_ms === null || status === undefined) {
    return `It handled the HTTP request ${request.name}`;
  }
  const took = ms(request.end_ms - request.start_ms);
  return `It handled the HTTP request ${request.name}, which got ${status} after ${took}`;
}

function choice(explained: Explained): string[] {
  const { span, replicas } = explained;
  const worker = attributeText(span, "engine.worker");
  if (worker === undefined && !replicas?.length) {
    const isUnknown = attributeText(span, "engine.error_code") === "function_not_found";
    return [isUnknown ? `No worker ran it: none offered ${span.name}` : "No worker ran it"];
  }
  if (replicas === null) {
    const ran = explained.engine === undefined ? worker : `engine ${worker}`;
    return [`${ran} ran it; the other replicas are not recorded for this call`];
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
    lines.push(`Other candidates: ${listed(names)}`);
  }
  if (unable.length > 0) {
    const names = unable.map((replica) => `${nameOf(replica)} (${replica.passed_over})`);
    lines.push(`Passed over: ${listed(names)}`);
  }
  return lines;
}

/** Distinguishes replicas with the same name by the start of their connection's id. */
function naming(replicas: readonly Replica[]): (replica: Replica) => string {
  const names = replicas.map(({ name }) => name);
  return ({ name, worker_id, isEngine }) => {
    const shown = isEngine ? `engine ${name}` : name;
    return names.indexOf(name) === names.lastIndexOf(name)
      ? shown
      : `${shown} ${worker_id.slice(0, 8)}`;
  };
}

function why(chosen: Replica | undefined, able: readonly Replica[], count: number): string {
  if (!chosen) return able.length === 0 ? `: none of ${count} replicas was available` : "";
  if (count === 1) return ", the only replica";
  if (able.length === 1) return `, the only available one of ${count} replicas`;
  const busy = chosen.in_flight === 0 ? "idle" : `running ${counted(chosen.in_flight, "call")}`;
  const equal = able.filter(({ in_flight }) => in_flight === chosen.in_flight);
  if (able.some(({ in_flight }) => in_flight < chosen.in_flight)) {
    return `, one of ${count} replicas, ${busy}`;
  }
  return equal.length > 1
    ? `: ${equal.length} of ${count} replicas were ${busy}, and it was next`
    : `: of ${count} replicas it was the least busy (${busy})`;
}

function waiting({ timing: { queued_ms, total_ms }, span }: Explained): string[] {
  const restart = "its workers were being restarted";
  if (queued_ms === null) {
    if (span.end_ms === null) return [`It is waiting in the engine, because ${restart}`];
    return total_ms < QUEUED_MS ? [] : [`It waited ${ms(total_ms)} and was never sent: ${restart}`];
  }
  if (queued_ms < QUEUED_MS) return ["It was sent immediately"];
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
    `Its handler made ${counted(nested.length, "call")}, ` +
      `${ms(total)} in total: ${listed(slowest)}`,
  );
  return lines;
}

/** How the time after sending was spent. */
function handling({ timing, inEngine, engine, span }: Explained): string[] {
  const { queued_ms, wire_ms, handler_ms, total_ms } = timing;
  if (queued_ms === null || engine !== undefined) return [];
  if (handler_ms === null) {
    if (inEngine) return ["It ran inside the engine, without a network connection"];
    if (span.end_ms === null) return [];
    return [
      "How much of the time its handler and the connection took is unknown: " +
      "its worker sent no telemetry about it",
    ];
  }
  if (wire_ms !== null) {
    return [
      `${ms(wire_ms)} passed on the connection and before and after its handler`,
      `Its handler ran for ${ms(handler_ms)}`,
    ];
  }
  const beyond = span.end_ms === null ? 0 : queued_ms + handler_ms - total_ms;
  const late = beyond > 0 ? `, ${ms(beyond)} longer than its caller waited` : "";
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
    return `It has been running for ${ms(total_ms)}${limit ? `, of at most ${limit}` : ""}`;
  }
  const after = total_ms === 0 ? "immediately" : `after ${ms(total_ms)}`;
  const code = attributeText(span, "engine.error_code");
  if (code === undefined) return `It succeeded ${after}`;
  if (attributeText(span, "engine.ended_by") !== undefined) {
    return `It failed ${after} with ${code}, because ${causeOf(explained, limit)}`;
  }
  const message = span.status_description === null ? "" : `: ${span.status_description}`;
  return `It failed ${after} with ${code}${message}${originOf(explained, code)}`;
}

/** Why it was ended early, in place of the engine's equivalent error message. */
function causeOf({ span, request }: Explained, limit: string | undefined): string {
  const by = attributeText(span, "engine.ended_by")!;
  const code = attributeText(span, "engine.error_code");
  if (code === "timeout" && limit) return `its timeout of ${limit} passed`;
  const status = request && attributeOf(request, "http.response.status_code");
  if (code === "cancelled" && status === 499) return "the HTTP client disconnected";
  return by;
}

/** The nested call whose error it passed on. */
function originOf({ nested, span }: Explained, code: string): string {
  const origin = nested.findLast((each) =>
    attributeText(each, "engine.error_code") === code &&
    each.status_description === span.status_description
  );
  return origin ? `, an error of ${origin.name}, which it called` : "";
}

function logged({ logs }: Explained): string[] {
  if (logs.length === 0) return [];
  // Indented lines, such as those of a stack trace, go on with what a line before them says.
  const worst = logs.find(({ severity }) => severity === "error") ??
    logs.findLast(({ body }) => /^\S/.test(body)) ?? logs.at(-1)!;
  const count = logs.length === 1 ? "1 record was" : `${logs.length} records were`;
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
