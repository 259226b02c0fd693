/**
 * What functions did in the last minutes, as one sum.
 *
 * Two halves take turns: the older one is thrown away when the younger one is full. So the sum is
 * of two and a half to five minutes, and nothing is kept per second.
 *
 * @module
 */
import type { Second } from "./samples.ts";
import { DeltaSum, type FunctionDelta } from "./samples_counts.ts";

const HALF_MS = 150_000;

/** Adds up seconds. */
export class RecentDeltas {
  #older = new DeltaSum();
  #younger = new DeltaSum();
  #filledMs = 0;

  /** Adds a second. */
  add({ functions, interval_ms }: Pick<Second, "functions" | "interval_ms">): void {
    if (this.#filledMs >= HALF_MS) {
      this.#older = this.#younger;
      this.#younger = new DeltaSum();
      this.#filledMs = 0;
    }
    this.#younger.add(functions);
    this.#filledMs += interval_ms;
  }

  /** The sum, one per function. */
  read(): FunctionDelta[] {
    const all = new DeltaSum();
    all.add(this.#older.functions);
    all.add(this.#younger.functions);
    return all.functions;
  }
}
