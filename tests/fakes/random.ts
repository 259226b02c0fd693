/**
 * Chance that can be repeated.
 *
 * @module
 */

/** Numbers that look random and are the same for the same seed. */
export class Random {
  #state: number;

  /** Any integer is a seed. */
  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) | 0;
  }

  /** An integer from 0 up to, not including, `below`. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  }

  /** One of them. @throws {RangeError} When there is none. */
  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new RangeError("nothing to pick from");
    return items[this.below(items.length)]!;
  }

  /** `true` once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }
}
