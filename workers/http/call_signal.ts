/**
 * What cancels the calls of one HTTP request: as much of an `AbortSignal` as a call listens to.
 *
 * A real one with its controller, and a listener put on it and taken off, cost more than all else
 * that a request without middleware does here (7 % of its way through the engine). Most requests
 * end without anybody being cancelled.
 *
 * @module
 */

/** Aborted at most once; listeners are called in the order they came. */
export class CallSignal {
  /** Whether it was aborted. */
  aborted = false;
  /** What it was aborted with. */
  reason: unknown = undefined;
  #listeners: (() => void)[] = [];

  /** A call hears of the abort, unless that was before. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  /** A call has ended. */
  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** Cancels the calls; only the first time counts. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = []; // Each takes itself off as it is called.
    for (const listener of listeners) listener();
  }
}
