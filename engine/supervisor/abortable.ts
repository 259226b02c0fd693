/**
 * Waiting that an abort signal ends: for a promise, for some time, for a start slot.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** The result of a promise, or `undefined` once the signal aborts. Rejects like the promise. */
export function untilAborted<Result>(
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

/** Resolves after some time, or once the signal aborts. */
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

/** What a slot is taken for. */
export type SlotUse = "prepare" | "start";

/**
 * Bounds how many workers install or start at the same time, first come, first served.
 *
 * Starts come before preparations. Otherwise the first worker of a large project would become ready
 * after the last one is installed.
 */
export class StartSlots {
  #free: number;
  readonly #waiting: Readonly<Record<SlotUse, (() => void)[]>> = { start: [], prepare: [] };

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a slot and returns a function that gives it back, which may be called repeatedly.
   * `undefined` once the signal aborts.
   */
  async take(signal: AbortSignal, use: SlotUse): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free--;
    else if (!await this.#enqueue(signal, this.#waiting[use])) return undefined;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.start.shift() ?? this.#waiting.prepare.shift();
      if (next) next();
      else this.#free++;
    };
    if (!signal.aborted) return release;
    release(); // The slot was assigned in the moment in which the signal aborted.
    return undefined;
  }

  #enqueue(signal: AbortSignal, waiting: (() => void)[]): Promise<boolean> {
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
