/**
 * Guards against misbehaving peers: rate limits, telemetry, comparison of secrets.
 *
 * @module
 */
import type { TelemetryFrame } from "../ports/telemetry.ts";

/** Telemetry that one connection may send per second, in bytes; more is dropped. */
export const TELEMETRY_BYTES_PER_SECOND = 4 * 1024 * 1024;

/** Allows at most `max` events within any `windowMs` milliseconds. */
export class RateWindow {
  readonly #max: number;
  readonly #windowMs: number;
  /** Times of the counted events, oldest first; at most `max`. */
  readonly #times: number[] = [];

  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Counts an event; `false`, and not counted, when it exceeds the limit. */
  allow(now: number): boolean {
    while (this.#times.length > 0 && this.#times[0]! <= now - this.#windowMs) this.#times.shift();
    if (this.#times.length >= this.#max) return false;
    this.#times.push(now);
    return true;
  }
}

const SECOND_MS = 1_000;

const TELEMETRY_KINDS: readonly string[] = ["OTLP", "MTRC", "LOGS"];
const TELEMETRY_MARK_BYTES = 4;

/** The kind and the content of a telemetry frame; `undefined` for any other binary message. */
export function readTelemetry(
  message: Uint8Array,
): Pick<TelemetryFrame, "kind" | "bytes"> | undefined {
  const mark = String.fromCharCode(...message.subarray(0, TELEMETRY_MARK_BYTES));
  if (!TELEMETRY_KINDS.includes(mark)) return undefined;
  return { kind: mark as TelemetryFrame["kind"], bytes: message.subarray(TELEMETRY_MARK_BYTES) };
}

/**
 * Limits the telemetry of one connection to {@linkcode TELEMETRY_BYTES_PER_SECOND}, because reading
 * it takes the engine's only thread. Each second starts with a new budget.
 */
export class TelemetryBudget {
  #since = -Infinity;
  #bytes = 0;
  #hasWarned = false;

  /**
   * Counts a frame, which counts in any case. `drop`: it exceeds the budget of this second; `warn`:
   * the same, for the first time.
   */
  admit(bytes: number, now: number): "pass" | "warn" | "drop" {
    if (now - this.#since >= SECOND_MS) {
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    if (this.#bytes <= TELEMETRY_BYTES_PER_SECOND) return "pass";
    const isFirst = !this.#hasWarned;
    this.#hasWarned = true;
    return isFirst ? "warn" : "drop";
  }
}

/** Compares secrets in constant time. */
export function isEqualSecret(known: string, said: string): boolean {
  let difference = known.length ^ said.length;
  for (let at = 0; at < known.length; at++) {
    difference |= known.charCodeAt(at) ^ said.charCodeAt(at % said.length);
  }
  return difference === 0;
}
