/**
 * Lets a bounded number of workers install or start at the same time, in the order they asked.
 *
 * Who has everything that a start needs goes before those who have yet to prepare, or the first
 * worker of a large project would be ready after the last one is installed.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** What a place is for. */
export type SlotUse = "prepare" | "start";

/** A bounded number of places. */
export class StartSlots {
  #free: number;
  readonly #waiting: Readonly<Record<SlotUse, (() => void)[]>> = { start: [], prepare: [] };

  /** `places` can be held at once. */
  constructor(places: number) {
    this.#free = places;
  }

  /**
   * Waits for a place; call the result to give it back, once or more often. `undefined` when the
   * signal came first.
   */
  async take(signal: AbortSignal, use: SlotUse): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free--;
    else if (!await this.#turn(signal, this.#waiting[use])) return undefined;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.start.shift() ?? this.#waiting.prepare.shift();
      if (next) next();
      else this.#free++;
    };
    if (!signal.aborted) return release;
    release(); // It was given at the moment in which it was no longer wanted.
    return undefined;
  }

  #turn(signal: AbortSignal, waiting: (() => void)[]): Promise<boolean> {
    return new Promise((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      const leave = (): void => {
        waiting.splice(waiting.indexOf(go), 1);
        resolve(false);
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.push(go);
    });
  }
}

/** The result of a promise, or `undefined` when the signal came first. Rejects like the promise. */
export function whileWanted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

/** Resolves after some time, or at once when the signal comes. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const leave = (): void => {
      cancelTimer();
      resolve();
    };
    const cancelTimer = clock.after(ms, () => {
      signal.removeEventListener("abort", leave);
      resolve();
    });
    signal.addEventListener("abort", leave, { once: true });
  });
}
