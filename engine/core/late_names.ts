/**
 * Looks for names in the bytes of a payload, without reading most of them.
 *
 * The names end in a quote, so the search looks at two bytes at a time, as far behind each other
 * as the shortest name allows: a pair that is in no name says how far it may jump. Each look has to
 * wait for the one before it, so a long payload is searched at four places at once, which takes
 * half the time.
 *
 * @module
 */
import { bytesOf } from "./text_bytes.ts";

const QUOTE = 0x22;
/** Pairs of bytes share a place when their low bits do; then the shorter jump holds for both. */
const PLACES = 4_096;
/** From so many bytes on it pays to search at four places. */
const LONG_BYTES = 512;

/** Some names, in quotes. */
export class LateNames {
  readonly #names: readonly Uint8Array[];
  /** By the place of a pair: how far the next pair to look at lies; 0: a name may end with it. */
  readonly #jumps: Uint8Array;
  /** How far behind the start a pair lies with which a name can end. */
  readonly #first: number;

  /** Makes a search for these names of plain ASCII, given without quotes. */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => bytesOf(`"${name}"`));
    const width = Math.min(...this.#names.map(({ length }) => length));
    this.#first = width - 2;
    this.#jumps = new Uint8Array(PLACES).fill(width - 1);
    for (const name of this.#names) {
      for (let at = name.length - width; at < name.length - 1; at++) {
        const place = placeOf(name[at]!, name[at + 1]!);
        this.#jumps[place] = Math.min(this.#jumps[place]!, name.length - 2 - at);
      }
    }
  }

  /** Whether one of them stands, in quotes, in `memory` between `start` and `end`. */
  isIn(memory: Uint8Array, start: number, end: number): boolean {
    const from = start + this.#first;
    return end - start < LONG_BYTES
      ? this.#endsIn(memory, start, from, end - 1)
      : this.#endsInQuarters(memory, start, from, end - 1);
  }

  /** Whether the last two bytes of one lie at `from` or behind, and before `to`. */
  #endsIn(memory: Uint8Array, start: number, from: number, to: number): boolean {
    const jumps = this.#jumps;
    for (let at = from; at < to;) {
      const jump = jumps[placeOf(memory[at]!, memory[at + 1]!)]!;
      if (jump === 0 && this.#endsAt(memory, start, at)) return true;
      at += jump === 0 ? 1 : jump;
    }
    return false;
  }

  #endsInQuarters(memory: Uint8Array, start: number, from: number, to: number): boolean {
    const jumps = this.#jumps;
    const quarter = to - from >> 2;
    const [second, third, fourth] = [from + quarter, from + 2 * quarter, from + 3 * quarter];
    let [a, b, c, d] = [from, second, third, fourth];
    while (a < second && b < third && c < fourth && d < to) {
      const jumpA = jumps[placeOf(memory[a]!, memory[a + 1]!)]!;
      const jumpB = jumps[placeOf(memory[b]!, memory[b + 1]!)]!;
      const jumpC = jumps[placeOf(memory[c]!, memory[c + 1]!)]!;
      const jumpD = jumps[placeOf(memory[d]!, memory[d + 1]!)]!;
      if (jumpA === 0 && this.#endsAt(memory, start, a)) return true;
      if (jumpB === 0 && this.#endsAt(memory, start, b)) return true;
      if (jumpC === 0 && this.#endsAt(memory, start, c)) return true;
      if (jumpD === 0 && this.#endsAt(memory, start, d)) return true;
      a += jumpA === 0 ? 1 : jumpA;
      b += jumpB === 0 ? 1 : jumpB;
      c += jumpC === 0 ? 1 : jumpC;
      d += jumpD === 0 ? 1 : jumpD;
    }
    return this.#endsIn(memory, start, a, second) || this.#endsIn(memory, start, b, third) ||
      this.#endsIn(memory, start, c, fourth) || this.#endsIn(memory, start, d, to);
  }

  /** Whether the last two bytes of one are those at `at`. */
  #endsAt(memory: Uint8Array, start: number, at: number): boolean {
    if (memory[at + 1] !== QUOTE) return false;
    const end = at + 2;
    for (const name of this.#names) {
      let from = end - name.length;
      if (from < start) continue;
      for (let i = 0; i < name.length && memory[from] === name[i]; i++) from++;
      if (from === end) return true;
    }
    return false;
  }
}

function placeOf(first: number, second: number): number {
  return (first << 5 ^ second) & (PLACES - 1);
}
