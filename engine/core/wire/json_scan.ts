/**
 * Scans JSON text without parsing it: reserved keys behind a payload, the end of a value, the text
 * of one field.
 *
 * The search for reserved keys reads three bytes of every four. Among all offsets that are four
 * apart, at least one lies inside a key such that the next three bytes belong to the key, too. A
 * table says whether these bytes occur in some key; only then are keys compared. The three bytes
 * are the lower ones of an aligned word, and four words are looked up before a branch, which takes
 * a third of the time.
 *
 * @module
 */
import { READ_BYTES_MAX } from "../../ports/connection.ts";
import { bytesOf, matchesAt, NO_BYTES } from "./bytes.ts";

/** Bytes compared at each step of {@linkcode STEP} bytes. */
const WIDTH = 3;
const STEP = 4;
/** A shorter key, quotes included, could fall between two steps. */
const NAME_BYTES_MIN = WIDTH + STEP - 1;
/** Size of the table. Bytes that belong to no key share an entry with a key in 1 of 100 cases. */
const PLACES_LOG2 = 12;
/** Multiplicative hashing: 2^32 divided by the golden ratio, as a signed integer. */
const SPREAD = -0x61c88647;
/** The `Int32Array` of a larger buffer is not cached. */
const KEPT_BYTES = READ_BYTES_MAX;

/** Three bytes of a key and their offset from its start. */
interface Part {
  readonly name: Uint8Array;
  readonly offset: number;
}

/** Searches bytes for any of a set of keys, each in quotes. */
export class ReservedKeySearch {
  /** By hash of three bytes: 0, or the index in `#parts` of the key parts with this hash. */
  readonly #stops = new Uint8Array(1 << PLACES_LOG2);
  readonly #parts: Part[][] = [[]];
  #memory: Uint8Array = NO_BYTES;
  #words: Int32Array = new Int32Array();

  /** The keys are ASCII without quotes, at least four letters each. */
  constructor(names: readonly string[]) {
    for (const name of names) {
      const bytes = bytesOf(`"${name}"`);
      if (bytes.length < NAME_BYTES_MIN) throw new Error(`${name} is too short to be found`);
      for (let first = 0; first < STEP; first++) this.#add(bytes, first);
    }
  }

  /** Whether one of the keys, in quotes, is in `memory` between `start` and `end`. */
  occursIn(memory: Uint8Array, start: number, end: number): boolean {
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

  /** The buffer as words, cached because consecutive frames mostly share one buffer. */
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

  /** Whether a key with this hash surrounds offset `at`. */
  #isAround(
    memory: Uint8Array,
    start: number,
    end: number,
    at: number,
    place: number,
  ): boolean {
    for (const { name, offset } of this.#parts[this.#stops[place]!]!) {
      if (at - offset >= start && matchesAt(memory, at - offset, end, name)) return true;
    }
    return false;
  }

  /**
   * Adds one part of a key: of the offsets `first`, `first + STEP` …, the one nearest to the
   * middle.
   */
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

/**
 * Index of the first word from `from` on that has an entry in the table; `to` when there is none.
 */
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

/** Hash of the lower three bytes of a word. */
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

/**
 * Whether exactly one JSON value lies between `start` and `end`, so that no other field follows it.
 * Checks strings, commas and brackets only: text that is not JSON may pass, and its receiver will
 * reject it.
 */
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

/** Offset of the closing quote; `end` when there is none. */
function stringEnd(memory: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (memory[at] === QUOTE) return at;
    if (memory[at] === BACKSLASH) at++;
  }
  return end;
}

/**
 * The raw text of a top-level field of `text`, which must be valid JSON; `undefined` when there is
 * no such field. The last one of duplicate keys counts, as in `JSON.parse`.
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

/** Offset behind the closing quote of the string that starts at `start`. */
function textStringEnd(text: string, start: number): number {
  for (let at = start + 1;;) {
    const quote = text.indexOf('"', at);
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    at = quote + 1;
    if ((quote - before) % 2 === 1) return at;
  }
}

/** Offset of the comma or brace behind the value that starts at `start`. */
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
