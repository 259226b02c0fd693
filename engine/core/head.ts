/**
 * The beginning of a message that is passed on, put together in memory that is used again.
 *
 * @module
 */
import { bytesOf } from "./text_bytes.ts";

/** Room for the usual head: what all have in common, two ids, a `traceparent`. */
const BYTES_FIRST = 512;
/** Larger memory is not kept for the next head. */
const BYTES_KEPT = 64 * 1024;

/** A head. What is in it is valid until the next {@linkcode Head.restart}. */
export class Head {
  /** The head is its first {@linkcode Head.length} bytes. */
  memory: Uint8Array = new Uint8Array(BYTES_FIRST);
  length = 0;
  readonly #common: number;

  /** Makes one that always begins with this text of ASCII. */
  constructor(common: string) {
    this.add(bytesOf(common), 0, common.length);
    this.#common = this.length;
  }

  /** Begins anew. */
  restart(): void {
    if (this.memory.length > BYTES_KEPT) this.#resize(BYTES_FIRST, this.#common);
    this.length = this.#common;
  }

  /** Adds the bytes of `memory` from `start` to `end`. */
  add(memory: Uint8Array, start: number, end: number): void {
    const needed = this.length + end - start;
    if (needed > this.memory.length) this.#resize(needed * 2, this.length);
    const into = this.memory;
    let to = this.length;
    // A loop: such parts are so short that asking for a copy costs more than copying.
    for (let at = start; at < end; at++) into[to++] = memory[at]!;
    this.length = to;
  }

  #resize(bytes: number, kept: number): void {
    const { memory } = this;
    this.memory = new Uint8Array(bytes);
    this.memory.set(memory.subarray(0, kept));
  }
}
