/**
 * Waiting that ends when what is waited for is no longer wanted.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

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
