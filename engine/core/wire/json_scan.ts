/**
 * Looks for names in the bytes of a payload, without reading most of them.
 *
 * Of all places that are four bytes apart, at least one lies in a name in such a way that its next
 * three bytes are the name's, too. So it is enough to look at three bytes of every four: a table
 * says whether they are some of a name, and only then are names compared. The three bytes are the
 * lower ones of a word of memory, and four words are looked up before anything is decided: that
 * takes a third of the time.
 *
 * @module
 */
import { READ_BYTES_MAX } from "../../../sdk/typescript/wire/limits.ts";
import { bytesOf, NO_BYTES, standsAt } from "./bytes.ts";

/** Bytes that are looked at, of every {@linkcode STEP}. */
const WIDTH = 3;
const STEP = 4;
/** So many, and only then does every place of a name have its three bytes. */
const NAME_BYTES_MIN = WIDTH + STEP - 1;
/** In the table; other bytes than those of names share a place with them by one chance in 100. */
const PLACES_LOG2 = 12;
/** Spreads numbers: 2^32 by the golden ratio, as an integer with a sign. */
const SPREAD = -0x61c88647;
/** Larger memory is not kept for the next look. */
const KEPT_BYTES = READ_BYTES_MAX;

/** Three bytes of a name, and how far behind its start they lie. */
interface Part {
  readonly name: Uint8Array;
  readonly offset: number;
}

/** Some names, in quotes. */
export class LateNames {
  /** By place: 0, or where in `#parts` those stand whose bytes have this place. */
  readonly #stops = new Uint8Array(1 << PLACES_LOG2);
  readonly #parts: Part[][] = [[]];
  #memory: Uint8Array = NO_BYTES;
  #words: Int32Array = new Int32Array();

  /** Makes a search for these names of at least four letters of ASCII, given without quotes. */
  constructor(names: readonly string[]) {
    for (const name of names) {
      const bytes = bytesOf(`"${name}"`);
      if (bytes.length < NAME_BYTES_MIN) throw new Error(`${name} is too short to be found`);
      for (let first = 0; first < STEP; first++) this.#add(bytes, first);
    }
  }

  /** Whether one of them stands, in quotes, in `memory` between `start` and `end`. */
  isIn(memory: Uint8Array, start: number, end: number): boolean {
    const words = this.#wordsOf(memory);
    const { byteOffset } = memory;
    const to = byteOffset + end >> 2;
    for (let word = byteOffset + start >> 2; word < to; word++) {
      word = nextStop(this.#stops, words, word, to);
      if (word === to) break;
      const at = (word << 2) - byteOffset;
      if (this.#isAround(memory, start, end, at, placeOf(words[word]!))) return true;
    }
    const rest = (to << 2) - byteOffset;
    return end - rest === WIDTH &&
      this.#isAround(memory, start, end, rest, placeOf(threeAt(memory, rest)));
  }

  /** The same memory in words; frames that follow each other mostly lie in the same. */
  #wordsOf(memory: Uint8Array): Int32Array {
    if (memory === this.#memory) return this.#words;
    const { buffer } = memory;
    const words = new Int32Array(buffer, 0, buffer.byteLength >> 2);
    if (buffer.byteLength <= KEPT_BYTES) {
      this.#memory = memory;
      this.#words = words;
    }
    return words;
  }

  /** Whether a name lies around `at`, of those that have bytes of this place. */
  #isAround(
    memory: Uint8Array,
    start: number,
    end: number,
    at: number,
    place: number,
  ): boolean {
    for (const { name, offset } of this.#parts[this.#stops[place]!]!) {
      if (at - offset >= start && standsAt(memory, at - offset, end, name)) return true;
    }
    return false;
  }

  /** Of the parts at `first` and every step behind it, takes the one nearest to the middle. */
  #add(name: Uint8Array, first: number): void {
    const middle = (name.length - WIDTH) / 2;
    let offset = first;
    for (let at = first; at <= name.length - WIDTH; at += STEP) {
      if (Math.abs(at - middle) < Math.abs(offset - middle)) offset = at;
    }
    const place = placeOf(threeAt(name, offset));
    if (this.#stops[place] === 0) this.#stops[place] = this.#parts.push([]) - 1;
    this.#parts[this.#stops[place]!]!.push({ name, offset });
  }
}

/** The first word of those with a stop, from `from` on; `to` when there is none before it. */
function nextStop(stops: Uint8Array, words: Int32Array, from: number, to: number): number {
  let at = from;
  for (; at < to - 3; at += 4) {
    const any = stops[placeOf(words[at]!)]! | stops[placeOf(words[at + 1]!)]! |
      stops[placeOf(words[at + 2]!)]! | stops[placeOf(words[at + 3]!)]!;
    if (any !== 0) break;
  }
  while (at < to && stops[placeOf(words[at]!)] === 0) at++;
  return at;
}

function threeAt(memory: Uint8Array, at: number): number {
  return memory[at]! | memory[at + 1]! << 8 | memory[at + 2]! << 16;
}

/** By the lower three bytes of a word. */
function placeOf(word: number): number {
  return Math.imul(word << 8, SPREAD) >>> 32 - PLACES_LOG2;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Whether the value that begins at `start` goes on to `end`, so that no other field follows it. */
export function isWholeValue(memory: Uint8Array, start: number, end: number): boolean {
  let depth = 0;
  for (let at = start; at < end; at++) {
    switch (memory[at]) {
      case QUOTE:
        at = stringEnd(memory, at + 1, end);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth < 0) return false;
        break;
      case COMMA:
        if (depth === 0) return false;
    }
  }
  return depth === 0;
}

/** The quote that ends a string; `end` when there is none. */
function stringEnd(memory: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (memory[at] === QUOTE) return at;
    if (memory[at] === BACKSLASH) at++;
  }
  return end;
}

/**
 * The text of a field of a message that is known to be JSON, as it was written; `undefined` when
 * it is not there. Of a name that occurs twice the last one counts, as for `JSON.parse`.
 */
export function fieldText(text: string, name: string): string | undefined {
  let found: string | undefined;
  let at = text.indexOf("{") + 1;
  for (;;) {
    const keyStart = text.indexOf('"', at);
    if (keyStart < 0) return found;
    const keyEnd = textStringEnd(text, keyStart);
    const start = text.indexOf(":", keyEnd) + 1;
    const end = valueEnd(text, start);
    if (JSON.parse(text.slice(keyStart, keyEnd)) === name) found = text.slice(start, end).trim();
    if (text.charCodeAt(end) !== COMMA) return found;
    at = end + 1;
  }
}

/** Behind the quote that ends the string which starts here. */
function textStringEnd(text: string, start: number): number {
  for (let at = start + 1;;) {
    const quote = text.indexOf('"', at);
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    at = quote + 1;
    if ((quote - before) % 2 === 1) return at;
  }
}

/** The comma or brace that ends the value which starts here. */
function valueEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start;; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = textStringEnd(text, at) - 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth-- === 0) return at;
        break;
      case COMMA:
        if (depth === 0) return at;
    }
  }
}
