/**
 * When a worker that ended unasked starts again, and when it is given up.
 *
 * Pure: it counts ends and answers with a wait. A worker that stayed ready for a while has earned
 * a fresh start; one that ends quickly again and again is left alone until somebody looks at it.
 *
 * @module
 */
import {
  QUICK_END_MS,
  QUICK_ENDS_MAX,
  RESTART_FIRST_MS,
  RESTART_MAX_MS,
  RESTART_RESET_MS,
} from "../../sdk/typescript/limits.ts";

/** What to do after an unasked end. */
export type AfterEnd =
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "give_up"; readonly ends: number };

/** Counts the ends of one worker. */
export class RestartPolicy {
  #ends = 0;
  #quickEnds = 0;

  /** Forgets all ends: somebody started the worker by hand or changed it. */
  reset(): void {
    this.#ends = 0;
    this.#quickEnds = 0;
  }

  /** The worker ended after it had been ready for `readyForMs` (0: never). */
  ended(readyForMs: number): AfterEnd {
    if (readyForMs >= RESTART_RESET_MS) this.reset();
    this.#quickEnds = readyForMs < QUICK_END_MS ? this.#quickEnds + 1 : 0;
    if (this.#quickEnds >= QUICK_ENDS_MAX) return { type: "give_up", ends: this.#quickEnds };
    const ms = Math.min(RESTART_FIRST_MS * 2 ** this.#ends, RESTART_MAX_MS);
    this.#ends++;
    return { type: "wait", ms };
  }
}
