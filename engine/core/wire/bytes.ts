/**
 * Bytes of text, where making strings of them would cost more than what is done with them.
 *
 * @module
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** No bytes. */
export const NO_BYTES: Uint8Array = new Uint8Array();

/** A text as UTF-8, in memory of its own. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The same memory, to be read in words. */
export function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** The text that the bytes from `start` to `end` say. */
export function textOf(memory: Uint8Array, start: number, end: number): string {
  return decoder.decode(memory.subarray(start, end));
}

/** Whether `text` stands at `at`, wholly before `end`. */
export function standsAt(memory: Uint8Array, at: number, end: number, text: Uint8Array): boolean {
  const { length } = text;
  if (at + length > end) return false;
  for (let i = 0; i < length; i++) if (memory[at + i] !== text[i]) return false;
  return true;
}

/** Whether the same bytes stand at both places, so many of them. */
export function isSame(
  view: DataView,
  at: number,
  other: DataView,
  otherAt: number,
  bytes: number,
): boolean {
  let i = 0;
  for (; i + 4 <= bytes; i += 4) {
    if (view.getInt32(at + i, true) !== other.getInt32(otherAt + i, true)) return false;
  }
  for (; i < bytes; i++) if (view.getUint8(at + i) !== other.getUint8(otherAt + i)) return false;
  return true;
}

/**
 * Copies so many bytes, also to the front within the same memory. Few: from some hundred on, asking
 * for a copy costs less than copying.
 */
export function copyWords(
  view: DataView,
  at: number,
  from: DataView,
  fromAt: number,
  bytes: number,
): void {
  let i = 0;
  for (; i + 4 <= bytes; i += 4) view.setInt32(at + i, from.getInt32(fromAt + i, true), true);
  for (; i < bytes; i++) view.setUint8(at + i, from.getUint8(fromAt + i));
}

/** By which a text, the bytes from `start` to `end`, is found in a table. */
export function hashOf(view: DataView, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) hash = mixed(hash ^ view.getInt32(at, true));
  for (; at < end; at++) hash = mixed(hash ^ view.getUint8(at));
  // Once more, so that digits which count show in the lower bits. Thirty bits: a larger number is
  // an object of its own to the runtime.
  return mixed(hash) & 0x3fffffff;
}

/** Multiplying carries what a bit says upwards, shifting brings it down again. */
function mixed(word: number): number {
  const spread = Math.imul(word ^ word >>> 15, 0x2c1b3c6d);
  return spread ^ spread >>> 14;
}

const WORD_BYTES = 4;

/** A text of at least four bytes. */
export class Literal {
  readonly length: number;
  /** The text, but for its last bytes, at most a word of them. */
  readonly #words: Int32Array;
  /** Its last four bytes, of which some may stand in the word before, too. */
  readonly #last: number;

  /** Makes one. */
  constructor(text: string) {
    const view = viewOf(bytesOf(text));
    this.length = view.byteLength;
    const count = Math.ceil(this.length / WORD_BYTES) - 1;
    this.#words = Int32Array.from({ length: count }, (_, i) => view.getInt32(4 * i, true));
    this.#last = view.getInt32(this.length - WORD_BYTES, true);
  }

  /** Whether it stands at `at`, wholly before `end`. */
  standsAt(view: DataView, at: number, end: number): boolean {
    const last = at + this.length - WORD_BYTES;
    if (last + WORD_BYTES > end) return false;
    const words = this.#words;
    for (let i = 0, place = at; i < words.length; i++, place += WORD_BYTES) {
      if (view.getInt32(place, true) !== words[i]) return false;
    }
    return view.getInt32(last, true) === this.#last;
  }
}

const ONES = 0x01010101;
const HIGHS = 0x80808080;
const QUOTES = 0x22222222;
const BACKSLASHES = 0x5c5c5c5c;
const SPACES = 0x20202020;

/**
 * How many bytes from `at` on, in steps of four, are plain characters of a string: neither its end
 * nor an escape nor what has to be escaped. Looks at nothing from `end` on.
 */
export function plainWordsAt(view: DataView, at: number, end: number): number {
  let place = at;
  for (; place + WORD_BYTES <= end; place += WORD_BYTES) {
    const word = view.getInt32(place, true);
    const [quotes, backslashes] = [word ^ QUOTES, word ^ BACKSLASHES];
    // Taking one from a byte makes its high bit appear where it was zero; so does taking 32 from
    // one below. A loan of the byte above may make one of those too many, never one too few.
    const found = (quotes - ONES) & ~quotes | (backslashes - ONES) & ~backslashes |
      (word - SPACES) & ~word;
    if ((found & HIGHS) !== 0) break;
  }
  return place - at;
}
