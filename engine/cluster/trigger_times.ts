/**
 * When triggers were registered at the engine that has them, so that all engines agree which of
 * several equal routes serves.
 *
 * @module
 */

/** Times of the triggers of this engine. */
export class TriggerTimes {
  readonly #times = new Map<string, number>();
  readonly #wall: () => number;

  /** `wall`: milliseconds since 1970. */
  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** When a trigger was registered; now, if it was not asked for before. */
  of(id: string): number {
    const known = this.#times.get(id);
    if (known !== undefined) return known;
    const now = this.#wall();
    this.#times.set(id, now);
    return now;
  }

  /** Forgets triggers that are not there any more. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of [...this.#times.keys()]) if (!ids.has(id)) this.#times.delete(id);
  }
}
