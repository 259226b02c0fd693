/**
 * Takes the mask off a payload, in place.
 *
 * A client hides every payload behind four bytes that repeat. Four bytes are done at a time, and
 * since every byte is touched anyway, it comes out of it whether all were ASCII: such a text needs
 * no check and no UTF-8 decoder, which is most of what reading a small message costs.
 *
 * @module
 */

/** Bytes, and the same memory in words; platforms that Deno runs on are little-endian. */
export interface Masked {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/**
 * Takes `mask` off the bytes from `start` to `end`; says whether all of them are ASCII.
 *
 * The first byte of the mask is the lowest of the number.
 */
export function unmask(
  { bytes, words }: Masked,
  start: number,
  end: number,
  mask: number,
): boolean {
  let seen = 0;
  let at = start;
  let key = mask;
  for (; at < end && (at & 3) !== 0; at++) {
    seen |= bytes[at] = bytes[at]! ^ (key & 255);
    key = key >>> 8 | key << 24;
  }
  const wordsEnd = end >> 2;
  let seenWords = 0;
  let word = at >> 2;
  for (; word < wordsEnd; word++) seenWords |= words[word] = words[word]! ^ key;
  for (at = Math.max(at, word << 2); at < end; at++) {
    seen |= bytes[at] = bytes[at]! ^ (key & 255);
    key = key >>> 8 | key << 24;
  }
  return (seen & 0x80) === 0 && (seenWords & 0x80808080) === 0;
}
