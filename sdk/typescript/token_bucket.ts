/**
 * So many things in a second, and a second's worth at once at most.
 *
 * @module
 */

/** Says whether one more is allowed. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** Full; `now` gives milliseconds. */
  constructor(perSecond: number, now: () => number) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = perSecond;
    this.#at = now();
  }

  /** Takes one, if there is one; `now` is for those who have just looked at the clock. */
  take(now?: number): boolean {
    if (this.#tokens < 1) this.#fill(now ?? this.#now());
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #fill(now: number): void {
    const gained = Math.max(0, now - this.#at) * this.#perSecond / 1_000;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + gained);
    this.#at = now;
  }
}
