/**
 * Takes the mask off a payload, in place.
 *
 * A client hides every payload behind four bytes that repeat. Four bytes are done at a time, and
 * since every byte is touched anyway, it comes out of it what kinds of bytes there are: a text of
 * ASCII needs no check of its UTF-8, and one without backslashes nobody has to search for escapes.
 *
 * @module
 */

/** Bytes, and the same memory in words; platforms that Deno runs on are little-endian. */
export interface Masked {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/** A byte beyond ASCII was there; one bit of what {@linkcode unmask} says. */
export const BEYOND_ASCII = 1;
/** A backslash was there; the other bit. */
export const NOT_PLAIN = 2;

const BACKSLASH = 0x5c;
const BACKSLASHES = 0x5c5c5c5c;
const ONES = 0x01010101;
const HIGH_BITS = 0x80808080;

/**
 * Takes `mask` off the bytes from `start` to `end`; says what was among them.
 *
 * The first byte of the mask is the lowest of the number.
 */
export function unmask(
  { bytes, words }: Masked,
  start: number,
  end: number,
  mask: number,
): number {
  let seen = 0;
  let special = 0;
  let at = start;
  let key = mask;
  for (; at < end && (at & 3) !== 0; at++) {
    const byte = bytes[at] = bytes[at]! ^ (key & 255);
    seen |= byte;
    if (byte === BACKSLASH) special = HIGH_BITS;
    key = key >>> 8 | key << 24;
  }
  const wordsEnd = end >> 2;
  for (let word = at >> 2; word < wordsEnd; word++) {
    const four = words[word] = words[word]! ^ key;
    const slashes = four ^ BACKSLASHES;
    seen |= four;
    // Subtracting borrows from the high bit of a byte that is zero, and only if there is one.
    special |= (slashes - ONES) & ~slashes;
  }
  for (at = Math.max(at, wordsEnd << 2); at < end; at++) {
    const byte = bytes[at] = bytes[at]! ^ (key & 255);
    seen |= byte;
    if (byte === BACKSLASH) special = HIGH_BITS;
    key = key >>> 8 | key << 24;
  }
  return ((seen & HIGH_BITS) === 0 ? 0 : BEYOND_ASCII) |
    ((special & HIGH_BITS) === 0 ? 0 : NOT_PLAIN);
}
