/**
 * How many bytes something may bring in a second.
 *
 * @module
 */

const SECOND_MS = 1_000;

/** Counts the bytes of each second and says when they are too many. */
export class ByteShare {
  readonly #perSecond: number;
  #since = -Infinity;
  #bytes = 0;

  /** Makes one that has counted nothing. */
  constructor(bytesPerSecond: number) {
    this.#perSecond = bytesPerSecond;
  }

  /** So many come now: `false` when that is too many, which then count all the same. */
  allow(bytes: number, now: number): boolean {
    if (now - this.#since >= SECOND_MS) {
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes <= this.#perSecond;
  }
}
