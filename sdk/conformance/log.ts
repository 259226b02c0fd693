/**
 * An append-only log that a script can wait on; every wait has a bound.
 *
 * @module
 */

/** How long a script waits for something that takes milliseconds on an idle machine. */
export const WAIT_MS = 45_000;
/** How long a script observes that nothing happens. */
export const QUIET_MS = 250;

/** Where a wait starts, and when it ends. */
export interface WaitOptions {
  /** Index of the first entry to consider. @default {0} */
  readonly from?: number;
  /** Bound of the wait. @default {WAIT_MS} */
  readonly withinMs?: number;
}

/** A duty that the SDK under test does not fulfil. */
export class DutyError extends Error {}

/** Entries in the order of their arrival. */
export class Log<T> {
  readonly entries: T[] = [];
  readonly #listeners = new Set<() => void>();

  /** Index of the next entry: a start for later waits. */
  get mark(): number {
    return this.entries.length;
  }

  /** Appends an entry. */
  add(entry: T): void {
    this.entries.push(entry);
    for (const listener of [...this.#listeners]) listener();
  }

  /** Entries from a mark on that match. */
  matching(match: (entry: T) => boolean, from = 0): T[] {
    return this.entries.slice(from).filter(match);
  }

  /**
   * The first entry from a mark on that matches, now or later.
   *
   * @throws {DutyError} When none arrives in time.
   */
  async first(
    what: string,
    match: (entry: T) => boolean,
    { from = 0, withinMs = WAIT_MS }: WaitOptions = {},
  ): Promise<T> {
    const find = () => this.entries.slice(from).find(match);
    const found = find();
    if (found !== undefined) return found;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const listener = () => {
      const later = find();
      if (later !== undefined) resolve(later);
    };
    const timer = setTimeout(() => {
      reject(new DutyError(`${what} did not arrive within ${withinMs} ms`));
    }, withinMs);
    this.#listeners.add(listener);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(listener);
    }
  }
}

/** Lets time pass, to observe that nothing happens. */
export function quiet(ms = QUIET_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
