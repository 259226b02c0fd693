/**
 * The memory of one request or connection, taken from the budget that all parts share.
 *
 * It is returned as a whole, once, whatever happens in between.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";

/**
 * So long a part waits for memory at most before it is refused; a third of it at least. By chance,
 * because parts that each hold some memory and gave up together would all be refused.
 */
export const MEMORY_WAIT_MS = 6_000;

/** Bytes of use `bodies` that belong together. */
export class HeldMemory {
  readonly #memory: MemoryBudget;
  readonly #clock: Clock;
  #bytes = 0;
  #isReleased = false;

  constructor(memory: MemoryBudget, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes more bytes; `false` when they do not fit, or all was returned already. */
  take(bytes: number): boolean {
    if (this.#isReleased || !this.#memory.take("bodies", bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Takes more bytes, after a wait of at most {@linkcode MEMORY_WAIT_MS}. */
  takeSoon(bytes: number): boolean | Promise<boolean> {
    if (this.take(bytes)) return true;
    if (this.#isReleased || bytes > this.#memory.limitBytes) return false;
    const waitMs = MEMORY_WAIT_MS * (1 + 2 * Math.random()) / 3;
    return new Promise<boolean>((resolve) => {
      const settle = (isTaken: boolean): void => {
        cancelTimer();
        cancelWait();
        resolve(isTaken);
      };
      let cancelWait = (): void => {};
      const cancelTimer = this.#clock.after(waitMs, () => settle(false));
      const wait = (): void => {
        cancelWait = this.#memory.whenRoom(bytes, () => {
          if (this.#isReleased || this.take(bytes)) settle(!this.#isReleased);
          else wait();
        });
      };
      wait();
    });
  }

  /** Returns some bytes; nothing happens after {@linkcode release}. */
  give(bytes: number): void {
    if (this.#isReleased || bytes === 0) return;
    this.#bytes -= bytes;
    this.#memory.release("bodies", bytes);
  }

  /** Returns all bytes; none can be taken any more. */
  release(): void {
    this.give(this.#bytes);
    this.#isReleased = true;
  }
}
