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
 * Writes the UUID in lower case that stands in `memory` from `start` to `end` as words from `to`
 * on; zeros and `false` when it is none.
 */
export function writeUuid(
  memory: Uint8Array,
  start: number,
  end: number,
  words: Uint32Array,
  to: number,
): boolean {
  if (end - start === CHARS && hasDashes(memory, start)) {
    const first = hexAt(memory, start, 8);
    const second = hexAt(memory, start + 9, 4);
    const third = hexAt(memory, start + 14, 4);
    const fourth = hexAt(memory, start + 19, 4);
    const fifth = hexAt(memory, start + 24, 4);
    const last = hexAt(memory, start + 28, 8);
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

function hasDashes(memory: Uint8Array, start: number): boolean {
  return memory[start + 8] === DASH && memory[start + 13] === DASH &&
    memory[start + 18] === DASH && memory[start + 23] === DASH;
}
