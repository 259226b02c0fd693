/**
 * How often something may happen within a time.
 *
 * @module
 */

/** Counts what happened in the last `windowMs` and says when it is more than `max`. */
export class RateWindow {
  readonly #max: number;
  readonly #windowMs: number;
  /** When each of the last ones happened, oldest first; at most `max`. */
  readonly #times: number[] = [];

  /** Makes an empty one. */
  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** It happens now: `false` when that is one too many, which is then not counted. */
  allow(now: number): boolean {
    while (this.#times.length > 0 && this.#times[0]! <= now - this.#windowMs) this.#times.shift();
    if (this.#times.length >= this.#max) return false;
    this.#times.push(now);
    return true;
  }
}

const SECOND_MS = 1_000;

/** Counts the bytes of each second and says when they are too many. */
export class ByteBudget {
  readonly #perSecond: number;
  #since = -Infinity;
  #bytes = 0;

  /** Makes one that has counted nothing. */
  constructor(bytesPerSecond: number) {
    this.#perSecond = bytesPerSecond;
  }

  /** So many come now: `false` when that is too many, which then count all the same. */
  allow(bytes: number, now: number): boolean {
    if (now - this.#since >= SECOND_MS) {
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes <= this.#perSecond;
  }
}

/** Compares in a time that does not tell how much was right. */
export function isEqualSecret(known: string, said: string): boolean {
  let difference = known.length ^ said.length;
  for (let at = 0; at < known.length; at++) {
    difference |= known.charCodeAt(at) ^ said.charCodeAt(at % said.length);
  }
  return difference === 0;
}
