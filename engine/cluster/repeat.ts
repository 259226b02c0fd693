/**
 * Repeating what a broker or database did not answer.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** How long the log is asked for the outcome of one write. */
export const APPEND_MS = 10_000;
const PAUSE_MS = 50;
const PAUSE_MS_MAX = 500;

/** Waits before an attempt, longer before later ones; an aborted signal ends the wait. */
export function pause(
  clock: Pick<Clock, "after">,
  attempt: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(Math.min(PAUSE_MS * attempt, PAUSE_MS_MAX), done);
    signal?.addEventListener("abort", done);
  });
}

/**
 * The result of a task that may run twice, which is repeated while it fails, for a while.
 *
 * @throws {EngineError} The task's own at once; `store_unavailable` with the last reason.
 */
export async function repeat<T>(clock: Clock, task: () => Promise<T>): Promise<T> {
  const until = clock.now() + APPEND_MS;
  for (let attempt = 1;; attempt++) {
    try {
      return await task();
    } catch (thrown) {
      if (thrown instanceof EngineError) throw thrown;
      if (clock.now() < until) {
        await pause(clock, attempt);
        continue;
      }
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw new EngineError("store_unavailable", `The log of the cluster fails (${reason})`, {
        cause: thrown,
      });
    }
  }
}
