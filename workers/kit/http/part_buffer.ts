/**
 * Bytes of a streamed body that wait to be sent, in one piece of memory with room around them for
 * the frame of a chunk, so that they are copied once and sent with one write.
 *
 * @module
 */

/** Memory of a buffer that was not used much. */
export const PART_BYTES_FIRST = 512;
/** Digits of the size of a chunk, and the end of their line. */
const CHUNK_HEAD_BYTES = 10;
/** The end of a chunk's line. */
const CHUNK_END_BYTES = 2;
const FRAME_BYTES = CHUNK_HEAD_BYTES + CHUNK_END_BYTES;

const CR = 13;
const LF = 10;
const DIGITS = new TextEncoder().encode("0123456789abcdef");
const NOTHING = new Uint8Array();

/** See the module. */
export class PartBuffer {
  #memory: Uint8Array<ArrayBuffer> = NOTHING;
  #length = 0;

  /** Bytes that wait. */
  get length(): number {
    return this.#length;
  }

  /** By how many bytes its memory has to grow before so many can be added. */
  growthFor(bytes: number): number {
    const needed = FRAME_BYTES + this.#length + bytes;
    const size = this.#memory.length;
    if (needed <= size) return 0;
    return Math.max(PART_BYTES_FIRST, needed, this.#length === 0 ? 0 : size * 2) - size;
  }

  /** Copies bytes behind those that wait. */
  add(bytes: Uint8Array): void {
    const growth = this.growthFor(bytes.length);
    if (growth > 0) this.#grow(growth);
    this.#memory.set(bytes, CHUNK_HEAD_BYTES + this.#length);
    this.#length += bytes.length;
  }

  /** What waits, as it is; valid until the buffer changes. */
  bytes(): Uint8Array {
    return this.#memory.subarray(CHUNK_HEAD_BYTES, CHUNK_HEAD_BYTES + this.#length);
  }

  /** What waits, at least a byte, as a chunk (RFC 9112, 7.1); valid until the buffer changes. */
  chunk(): Uint8Array {
    const memory = this.#memory;
    let at = CHUNK_HEAD_BYTES;
    memory[--at] = LF;
    memory[--at] = CR;
    for (let size = this.#length; size > 0; size >>>= 4) memory[--at] = DIGITS[size & 15]!;
    let end = CHUNK_HEAD_BYTES + this.#length;
    memory[end++] = CR;
    memory[end++] = LF;
    return memory.subarray(at, end);
  }

  /** Drops what waits; the memory stays. */
  clear(): void {
    this.#length = 0;
  }

  /** Drops everything; returns by how many bytes the memory has shrunk. */
  shrink(): number {
    const bytes = this.#memory.length;
    this.#memory = NOTHING;
    this.#length = 0;
    return bytes;
  }

  #grow(bytes: number): void {
    const larger = new Uint8Array(this.#memory.length + bytes);
    larger.set(this.bytes(), CHUNK_HEAD_BYTES);
    this.#memory = larger;
  }
}
