/**
 * Trace contexts that the console gives its calls.
 *
 * What a person asks for begins a trace that is recorded, so that the page can lead there. What the
 * console asks for itself, again and again, is marked as not to be recorded: it would fill the
 * traces with the looking at them, and each look would be a reason for the next.
 *
 * @module
 */

/** A W3C `traceparent`, and the trace it names. */
export interface TraceContext {
  readonly traceparent: string;
  /** 32 hexadecimal digits; `null` when nothing is recorded under it. */
  readonly trace_id: string | null;
}

/** Begins a trace; `recorded` says whether anybody shall find it. */
export function beginTrace(recorded: boolean): TraceContext {
  const id = randomHex(16);
  const traceparent = `00-${id}-${randomHex(8)}-${recorded ? "01" : "00"}`;
  return { traceparent, trace_id: recorded ? id : null };
}

/** The trace that a `traceparent` names; `null` for anything else. */
export function traceIdOf(traceparent: string | null): string | null {
  return /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "")?.[1] ?? null;
}

/** So many bytes of chance, in hexadecimal digits. */
export function randomHex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
