/**
 * What is known of a call as sentences, in the order in which it happened.
 *
 * @module
 */
import type { Explained, Replica } from "./explain.ts";
import { attributeOf, attributeText, durationOf, type StoredSpan } from "./spans_stored.ts";

/** Names that one sentence lists. */
const NAMED_MAX = 5;

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
  const lines = [
    `${caller} called ${span.name}${where} at ${new Date(span.start_ms).toISOString()}, ` +
    `in trace ${span.trace_id}`,
  ];
  if (request) lines.push(`It answered the HTTP request ${request.name}`);
  return lines;
}

function choice({ span, replicas }: Explained): string[] {
  const worker = attributeText(span, "engine.worker");
  const ran = worker === undefined ? "No worker ran it" : `${worker} ran it`;
  if (replicas === null) {
    if (worker === undefined) return [ran];
    return [`${ran}; which other replicas there were is not recorded of this call`];
  }
  if (replicas.length === 0) return [`${ran}: nobody offered the function`];
  const chosen = replicas.find((replica) => replica.chosen);
  const able = replicas.filter(({ passed_over }) => passed_over === null);
  const unable = replicas.filter(({ passed_over }) => passed_over !== null);
  const lines = [`${ran}${why(chosen, able, replicas.length)}`];
  const others = able.filter((replica) => !replica.chosen);
  if (others.length > 0) {
    const names = others.map(({ name, in_flight }) => `${name} (running ${in_flight})`);
    lines.push(`It could also have gone to ${listed(names)}`);
  }
  if (unable.length > 0) {
    const names = unable.map(({ name, passed_over }) => `${name} (${passed_over})`);
    lines.push(`Passed over: ${listed(names)}`);
  }
  return lines;
}

function why(chosen: Replica | undefined, able: readonly Replica[], count: number): string {
  if (!chosen) return able.length === 0 ? `: none of ${count} replicas could take it` : "";
  if (count === 1) return ", the only replica there was";
  if (able.length === 1) return `, the only one of ${count} replicas that could take it`;
  const busy = `running ${chosen.in_flight} calls`;
  const equal = able.filter(({ in_flight }) => in_flight === chosen.in_flight);
  if (able.some(({ in_flight }) => in_flight < chosen.in_flight)) {
    return `, one of ${count} replicas, ${busy}`;
  }
  return equal.length > 1
    ? `: ${equal.length} of ${count} replicas were equally idle (${busy}), and it was its turn`
    : `: of ${count} replicas it was the least busy (${busy})`;
}

function waiting({ timing: { queued_ms, wire_ms }, span }: Explained): string[] {
  if (queued_ms === null) return ["It was never sent to a worker"];
  const lines = queued_ms < 1
    ? ["It was sent at once"]
    : [`It waited ${ms(queued_ms)} in the engine before it was sent`];
  if (wire_ms !== null) {
    lines.push(`${ms(wire_ms)} went by on the wire and before and after its handler`);
  } else if (span.end_ms !== null) {
    lines.push("How long the wire took is not known, because the handler's own time is not");
  }
  return lines;
}

function work({ timing: { queued_ms, handler_ms }, nested, nowMs, span }: Explained): string[] {
  const lines: string[] = [];
  if (handler_ms !== null) lines.push(`Its handler ran for ${ms(handler_ms)}`);
  else if (queued_ms !== null && span.end_ms !== null) {
    lines.push("How long its handler ran is not known: the worker told nothing of it");
  }
  if (nested.length === 0) return lines;
  const total = nested.reduce((sum, each) => sum + durationOf(each, nowMs), 0);
  const slowest = nested.toSorted((a, b) => durationOf(b, nowMs) - durationOf(a, nowMs))
    .map((each) => nestedText(each, nowMs));
  lines.push(
    `It made ${nested.length === 1 ? "1 call" : `${nested.length} calls`} of its own, ` +
      `${ms(total)} together: ${listed(slowest)}`,
  );
  return lines;
}

function nestedText(span: StoredSpan, nowMs: number): string {
  const code = attributeText(span, "engine.error_code");
  const how = code !== undefined ? `, ${code}` : span.end_ms === null ? ", still running" : "";
  return `${span.name} (${ms(durationOf(span, nowMs))}${how})`;
}

function retries({ attempts, span }: Explained): string[] {
  if (attempts.length < 2) return [];
  const at = attempts.findIndex(({ span_id }) => span_id === span.span_id) + 1;
  const failed = attempts.filter(({ status }) => status === "error").length;
  return [
    `The same caller called ${span.name} ${attempts.length} times here; this was number ${at}, ` +
    `and ${failed} of them failed`,
  ];
}

function end({ span, timing: { total_ms } }: Explained): string {
  const timeout = attributeOf(span, "engine.timeout_ms");
  if (span.end_ms === null) {
    const limit = typeof timeout === "number" ? `, of ${ms(timeout)} at most` : "";
    return `It is still running, for ${ms(total_ms)}${limit}`;
  }
  const code = attributeText(span, "engine.error_code");
  const by = attributeText(span, "engine.ended_by");
  const cause = by === undefined ? "" : `, because ${by}`;
  if (code === undefined) return `It ended well after ${ms(total_ms)}${cause}`;
  const message = span.status_description === null ? "" : `: ${span.status_description}`;
  const limit = code === "timeout" && typeof timeout === "number"
    ? ` (the limit was ${ms(timeout)})`
    : "";
  return `It failed after ${ms(total_ms)} with ${code}${limit}${cause}${message}`;
}

function said({ logs }: Explained): string[] {
  if (logs.length === 0) return [];
  const worst = logs.find(({ severity }) => severity === "error") ?? logs.at(-1)!;
  const count = logs.length === 1 ? "1 line was" : `${logs.length} lines were`;
  return [`${count} logged; ${worst.severity}: ${firstLine(worst.body)}`];
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
