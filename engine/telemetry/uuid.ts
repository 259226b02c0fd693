/**
 * UUIDs as four words of 32 bits.
 *
 * @module
 */
import { fourDigits, idText } from "./traceparent.ts";

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
  if (end - start === CHARS && end <= memory.length && hasDashes(memory, start)) {
    const first = fourDigits(memory, start);
    const second = fourDigits(memory, start + 4);
    const third = fourDigits(memory, start + 9);
    const fourth = fourDigits(memory, start + 14);
    const fifth = fourDigits(memory, start + 19);
    const sixth = fourDigits(memory, start + 24);
    const seventh = fourDigits(memory, start + 28);
    const last = fourDigits(memory, start + 32);
    const all = first | second | third | fourth | fifth | sixth | seventh | last;
    if (all >= 0) {
      words[to] = first << 16 | second;
      words[to + 1] = third << 16 | fourth;
      words[to + 2] = fifth << 16 | sixth;
      words[to + 3] = seventh << 16 | last;
      return all > 0;
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
