/**
 * The share of the process's memory that one direction of a connection holds.
 *
 * The first {@linkcode FREE_BYTES}, or fewer where the owner says so, are free: so every connection
 * can receive and send small messages, however full the budget is. Beyond them bytes are taken in
 * steps, so that the budget is not asked for every message.
 *
 * @module
 */
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";

/** Bytes of a buffer that are not taken from the budget, unless its owner says otherwise. */
export const FREE_BYTES = 64 * 1024;
/** Bytes are taken and returned in multiples of this. */
const STEP_BYTES = 64 * 1024;

/** What one buffer or queue holds of a {@linkcode MemoryBudget}. */
export class BufferLease {
  readonly #memory: MemoryBudget;
  readonly #freeBytes: number;
  #heldBytes = 0;
  /** Sizes from above `#least` up to `#most` need what is held: nothing changes for them. */
  #least = -1;
  #most: number;

  constructor(memory: MemoryBudget = UNLIMITED_MEMORY, freeBytes: number = FREE_BYTES) {
    this.#memory = memory;
    this.#most = this.#freeBytes = freeBytes;
  }

  /** Bytes that are taken now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Whether large holders are asked to hurry. */
  get isTight(): boolean {
    return this.#memory.isTight;
  }

  /**
   * Holds what a buffer of this size needs, more or less than before; `false`, and nothing changes,
   * when more is needed and does not fit.
   */
  fit(bytes: number): boolean {
    if (bytes <= this.#most && bytes > this.#least) return true;
    const wanted = bytes <= this.#freeBytes ? 0 : Math.ceil(bytes / STEP_BYTES) * STEP_BYTES;
    const more = wanted - this.#heldBytes;
    if (more > 0 && !this.#memory.take("buffers", more)) return false;
    if (more < 0) this.#memory.release("buffers", -more);
    this.#heldBytes = wanted;
    this.#most = wanted === 0 ? this.#freeBytes : wanted;
    this.#least = wanted === 0 ? -1 : Math.max(this.#freeBytes, wanted - STEP_BYTES);
    return true;
  }

  /** Whether a buffer of this size can never fit. */
  exceeds(bytes: number): boolean {
    return bytes > this.#freeBytes && bytes + STEP_BYTES > this.#memory.limitBytes;
  }
}
