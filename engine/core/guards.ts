/**
 * Guards against misbehaving peers: rate limits, byte budgets, comparison of secrets.
 *
 * @module
 */

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

/** Limits the bytes per second; each second starts with a new budget. */
export class ByteBudget {
  readonly #perSecond: number;
  #since = -Infinity;
  #bytes = 0;

  constructor(bytesPerSecond: number) {
    this.#perSecond = bytesPerSecond;
  }

  /** Counts bytes; `false` when they exceed the budget of this second. They count in any case. */
  allow(bytes: number, now: number): boolean {
    if (now - this.#since >= SECOND_MS) {
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes <= this.#perSecond;
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
