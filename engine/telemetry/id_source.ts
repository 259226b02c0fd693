/**
 * Random ids, many at a time: the same bytes as numbers, to be kept, and as text, to be sent.
 *
 * Asking for random bytes and writing them as text costs microseconds, whether for one id or for
 * five hundred; so both are done for a block.
 *
 * @module
 */

/** Fills bytes with chance, as `crypto.getRandomValues` does. */
export type FillRandom = (bytes: Uint8Array<ArrayBuffer>) => void;

const BLOCK_BYTES = 4_096;

/** Gives out random bytes. */
export class IdSource {
  readonly #fill: FillRandom;
  readonly #bytes = new Uint8Array(BLOCK_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  /** The block as text, from when somebody first asks for some of it: calls never do. */
  #hex = "";
  #next = BLOCK_BYTES;

  /** Makes one; nothing is asked of `fill` yet. */
  constructor(fill: FillRandom) {
    this.#fill = fill;
  }

  /** Where so many bytes lie that nobody had yet; valid until the next call. */
  take(bytes: number): number {
    if (this.#next + bytes > BLOCK_BYTES) {
      this.#fill(this.#bytes);
      this.#hex = "";
      this.#next = 0;
    }
    const at = this.#next;
    this.#next += bytes;
    return at;
  }

  /** Four bytes from there, as eight hexadecimal digits say it. */
  word(at: number): number {
    return this.#view.getUint32(at);
  }

  /** So many bytes from there, in hexadecimal. A view into a larger text: not to be kept. */
  text(at: number, bytes: number): string {
    if (this.#hex === "") this.#hex = this.#bytes.toHex();
    return this.#hex.slice(2 * at, 2 * (at + bytes));
  }
}
