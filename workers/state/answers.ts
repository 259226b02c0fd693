/**
 * The memory of answers: what `state::list` and large values take while they are read.
 *
 * A small answer is counted only. A larger one waits until the larger ones before it are sent, so
 * that a hundred of them do not each fill memory with a part, and is refused where the whole does
 * not fit. Once it is on its way the connection of its caller counts it.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Answers up to this size do not wait. */
export const SMALL_ANSWER_BYTES = 1024 * 1024;

/** Pause between two larger ones, for what waits in the engine meanwhile. */
export const ANSWER_PAUSE_MS = 100;

/** All answers that are being read. */
export class AnswerMemory {
  readonly #memory: MemoryBudget;
  readonly #clock: Pick<Clock, "after">;
  /** Settles when the large answers that began before have ended. */
  #last: Promise<void> = Promise.resolve();

  constructor(memory: MemoryBudget, clock: Pick<Clock, "after">) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /**
   * Runs `read`, which reports the bytes of each part to `add` before it keeps it.
   *
   * @throws {EngineError} `overloaded` when the answer does not fit. What `read` throws.
   */
  async hold<T>(read: (add: (bytes: number) => Promise<void>) => Promise<T>): Promise<T> {
    let bytes = 0;
    let taken = 0;
    let leave: (() => void) | undefined;
    const add = async (more: number): Promise<void> => {
      bytes += more;
      if (bytes > SMALL_ANSWER_BYTES) leave ??= await this.#enter();
      if (!this.#memory.take("queues", bytes - taken)) throw noMemory();
      taken = bytes;
    };
    try {
      return await read(add);
    } finally {
      this.#memory.release("queues", taken);
      leave?.();
    }
  }

  /** Waits for the large answers before; call the result to let the next one go on. */
  async #enter(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    return () => void this.#clock.after(ANSWER_PAUSE_MS, resolve);
  }
}

function noMemory(): EngineError {
  const message = "The memory of the engine has no room for the answer now; try again, or read " +
    "less with state::list_entries";
  return new EngineError("overloaded", message);
}
