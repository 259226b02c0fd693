/**
 * Unmasks payloads of WebSocket frames in place (RFC 6455, 5.3), and says what a text is made of
 * while it passes over it.
 *
 * @module
 */

/** Bytes, and the same memory in words; platforms that Deno runs on are little-endian. */
export interface Masked {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/** Bit of the result of {@linkcode unmask}: the payload has bytes beyond ASCII. */
export const BEYOND_ASCII = 1;
/** Bit of the result of {@linkcode unmask}: the payload has a backslash. */
export const NOT_PLAIN = 2;

const BACKSLASH = 0x5c;
const BACKSLASHES = 0x5c5c5c5c;
const ONES = 0x01010101;
const HIGH_BITS = 0x80808080;

/**
 * Unmasks the bytes from `start` to `end` in place, four at a time, and returns which kinds of
 * bytes they are, so that ASCII needs no check of its UTF-8 and text without backslashes no search
 * for escapes. The first byte of the mask is the lowest of the number.
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

/**
 * Unmasks the bytes from `start` to `end` of a binary message, whose kinds of bytes do not matter.
 * Clients on loopback may use a mask of zero, which costs nothing here.
 */
export function unmaskBinary(
  { bytes, words }: Masked,
  start: number,
  end: number,
  mask: number,
): number {
  if (mask === 0) return 0;
  let at = start;
  let key = mask;
  for (; at < end && (at & 3) !== 0; at++) {
    bytes[at]! ^= key & 255;
    key = key >>> 8 | key << 24;
  }
  const wordsEnd = end >> 2;
  for (let word = at >> 2; word < wordsEnd; word++) words[word]! ^= key;
  for (at = Math.max(at, wordsEnd << 2); at < end; at++) {
    bytes[at]! ^= key & 255;
    key = key >>> 8 | key << 24;
  }
  return 0;
}
