/**
 * Changes of configurations, a few at once: what waits is its payload alone.
 *
 * A change holds the entry with its history several times until it is on disk. Of a flood of them,
 * thousands would fill memory that the collector moves again and again, while all others wait for
 * it. Callers whose changes wait are served one after the other, however many each of them has.
 *
 * @module
 */
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Changes that are made at the same time, and share commits. */
export const CHANGES_AT_ONCE_MAX = 32;
/** Changes of one caller that wait. */
export const CHANGES_PER_CALLER_MAX = 1_000;
/** Changes of all callers that wait. */
export const CHANGES_WAITING_MAX = 8_000;

/** A change that waits. */
interface Waiting {
  readonly bytes: number;
  run(): void;
}

/** See the top of this file. */
export class WriteTurns {
  readonly #memory: MemoryBudget;
  /** By caller; the next one first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  #running = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /**
   * Makes a change now or when it is its turn; `bytes` is what it holds while it waits.
   *
   * @throws {EngineError} `overloaded` when too many wait; what `change` throws.
   */
  async run<Result>(
    caller: string,
    bytes: number,
    change: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#running >= CHANGES_AT_ONCE_MAX) await this.#wait(caller, bytes);
    else this.#running++;
    try {
      return await change();
    } finally {
      this.#next();
    }
  }

  async #wait(caller: string, bytes: number): Promise<void> {
    const own = this.#waiting.get(caller) ?? [];
    const isFull = own.length >= CHANGES_PER_CALLER_MAX ||
      this.#waitingCount >= CHANGES_WAITING_MAX;
    if (isFull || !this.#memory.take("queues", bytes)) {
      const message = "Too many changes of configurations wait; try again later";
      throw new EngineError("overloaded", message);
    }
    this.#waiting.set(caller, own);
    this.#waitingCount++;
    await new Promise<void>((resolve) => own.push({ bytes, run: resolve }));
  }

  /** Hands the place of a change that has ended to the next caller that waits. */
  #next(): void {
    const next = this.#waiting.entries().next();
    if (next.done) return void this.#running--;
    const [caller, own] = next.value;
    const { bytes, run } = own.shift()!;
    this.#waitingCount--;
    this.#memory.release("queues", bytes);
    this.#waiting.delete(caller);
    if (own.length > 0) this.#waiting.set(caller, own);
    run();
  }
}
