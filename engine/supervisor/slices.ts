/**
 * Long work in short turns, so that calls are routed in between.
 *
 * The work is a generator that yields where it may be interrupted. As long as it is quick it ends
 * in the turn in which it began.
 *
 * @module
 */

/** Work that may be interrupted where it yields; a promise is waited for. */
export type Steps<T> = Generator<Promise<unknown> | undefined, T, void>;

/** Work goes on for so long before others have their turn, in milliseconds. */
const SLICE_MS = 8;
/** Work of fewer steps ends in one turn, also on a machine that is busy. */
const STEPS_AT_LEAST = 32;

/** Does the work. `undefined`: it was no longer wanted when its turn came again. */
export async function inSlices<T>(
  steps: Steps<T>,
  isWanted: () => boolean,
): Promise<T | undefined> {
  let began = performance.now();
  for (let count = 1;; count++) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value !== undefined) await value;
    else if (count < STEPS_AT_LEAST || performance.now() - began < SLICE_MS) continue;
    else await new Promise((resolve) => setTimeout(resolve, 0));
    if (!isWanted()) return void steps.return(undefined as T);
    [began, count] = [performance.now(), 0];
  }
}
