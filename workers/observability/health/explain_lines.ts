/**
 * What is known of a call as sentences, in the order in which it happened.
 *
 * @module
 */
import type { Explained, Replica } from "./explain.ts";
import { attributeOf, attributeText, durationOf, type StoredSpan } from "../traces/spans_stored.ts";

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
