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
