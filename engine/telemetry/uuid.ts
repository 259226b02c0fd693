/**
 * UUIDs as four words of 32 bits.
 *
 * @module
 */
import { hexAt, idText } from "./traceparent.ts";

/** Words of a UUID. */
export const UUID_WORDS = 4;

const CHARS = 36;
const DASH = 0x2d;
const GROUPS = [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]] as const;

/**
 * Writes the UUID in lower case that stands in a text from `start` to `end` as words from `to` on;
 * zeros and `false` when it is none.
 */
export function writeUuid(
  text: string,
  words: Uint32Array,
  to: number,
  start = 0,
  end: number = text.length,
): boolean {
  if (end - start === CHARS && hasDashes(text, start)) {
    const first = hexAt(text, start, 8);
    const [second, third] = [hexAt(text, start + 9, 4), hexAt(text, start + 14, 4)];
    const [fourth, fifth] = [hexAt(text, start + 19, 4), hexAt(text, start + 24, 4)];
    const last = hexAt(text, start + 28, 8);
    if (first >= 0 && second >= 0 && third >= 0 && fourth >= 0 && fifth >= 0 && last >= 0) {
      words[to] = first;
      words[to + 1] = second * 0x10000 + third;
      words[to + 2] = fourth * 0x10000 + fifth;
      words[to + 3] = last;
      return first + second + third + fourth + fifth + last > 0;
    }
  }
  words.fill(0, to, to + UUID_WORDS);
  return false;
}

/** The UUID that such words say; `null` for zeros. */
export function uuidText(words: Uint32Array, from: number): string | null {
  const text = idText(words, from, from + UUID_WORDS);
  if (/^0*$/.test(text)) return null;
  return GROUPS.map(([start, end]) => text.slice(start, end)).join("-");
}

function hasDashes(text: string, start: number): boolean {
  return text.charCodeAt(start + 8) === DASH && text.charCodeAt(start + 13) === DASH &&
    text.charCodeAt(start + 18) === DASH && text.charCodeAt(start + 23) === DASH;
}
