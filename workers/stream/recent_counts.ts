/**
 * Counts by name for as many names as were counted last, without work that grows with all of them.
 *
 * @module
 */

/** Counts of the names that were counted last: `namesMax` of them, at most twice as many. */
export class RecentCounts {
  readonly #namesMax: number;
  #newer = new Map<string, number>();
  /** Names that were not counted since `newer` was begun; dropped when that is full. */
  #older = new Map<string, number>();

  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  /** Adds one to the count of a name. */
  add(name: string): void {
    const count = this.get(name) + 1;
    if (!this.#newer.has(name) && this.#newer.size >= this.#namesMax) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(name, count);
  }

  /** The count of a name; 0 also for one that was forgotten. */
  get(name: string): number {
    return this.#newer.get(name) ?? this.#older.get(name) ?? 0;
  }

  /** All names. */
  names(): Set<string> {
    return new Set([...this.#newer.keys(), ...this.#older.keys()]);
  }
}
