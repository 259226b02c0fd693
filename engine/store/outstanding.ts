/**
 * Waiting for all requests that were made so far, without a promise for each.
 *
 * Requests end in any order, and new ones may come without a pause: who waits does not wait for
 * those.
 *
 * @module
 */

interface Waiter {
  /** The last request that it waits for. */
  readonly upTo: number;
  /** Those that have not ended. */
  left: number;
  readonly done: () => void;
}

/** Requests by growing numbers, from their begin to their end. */
export class Outstanding {
  #count = 0;
  #latest = 0;
  #waiters: Waiter[] | undefined;

  /** A request begins; its number is larger than those before. */
  begin(number: number): void {
    this.#count++;
    this.#latest = number;
  }

  /** A request ends, once. */
  end(number: number): void {
    this.#count--;
    if (!this.#waiters) return;
    for (const waiter of this.#waiters) {
      if (number <= waiter.upTo && --waiter.left === 0) waiter.done();
    }
    this.#waiters = this.#waiters.filter(({ left }) => left > 0);
    if (this.#waiters.length === 0) this.#waiters = undefined;
  }

  /** Resolves when all requests have ended that have begun by now. */
  ended(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((done) => {
      (this.#waiters ??= []).push({ upTo: this.#latest, left: this.#count, done });
    });
  }
}
