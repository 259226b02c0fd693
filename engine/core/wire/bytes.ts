/**
 * UTF-8 text as bytes: comparing, copying and hashing it in place.
 *
 * The core works on frames without decoding them, because creating a string costs more than what is
 * done with it. Functions that take a `DataView` read four bytes at a time.
 *
 * @module
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The empty byte sequence, shared. */
export const NO_BYTES: Uint8Array = new Uint8Array();

/** Encodes a text as UTF-8, in newly allocated memory. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Bytes of one piece of memory that {@linkcode passingBytesOf} cuts up. */
const PIECE_BYTES = 64 * 1024;
/** Longest text that gets a part of one. */
const PASSING_CHARS_MAX = 4 * 1024;
/** UTF-8 needs at most three bytes per UTF-16 code unit. */
const BYTES_PER_CHAR_MAX = 3;

/**
 * Encodes texts into parts of larger memory, since an allocation costs four times what encoding
 * does. A piece is freed when none of its parts is in use.
 */
export class Pieces {
  readonly #bytes: number;
  readonly #charsMax: number;
  #piece: Uint8Array;
  #at = 0;

  /** Pieces of so many bytes; a text of more than `charsMax` characters gets memory of its own. */
  constructor(bytes: number, charsMax: number) {
    this.#bytes = bytes;
    this.#charsMax = charsMax;
    this.#piece = new Uint8Array(bytes);
  }

  encode(text: string): Uint8Array {
    if (text.length > this.#charsMax) return bytesOf(text);
    if (this.#at + text.length * BYTES_PER_CHAR_MAX > this.#bytes) {
      this.#piece = new Uint8Array(this.#bytes);
      this.#at = 0;
    }
    const start = this.#at;
    this.#at += encoder.encodeInto(text, this.#piece.subarray(start)).written;
    return this.#piece.subarray(start, this.#at);
  }
}

const pieces = new Pieces(PIECE_BYTES, PASSING_CHARS_MAX);

/** As {@linkcode bytesOf}, for bytes that nothing keeps: they share memory with others. */
export function passingBytesOf(text: string): Uint8Array {
  return pieces.encode(text);
}

/** A `DataView` of the same memory, for access by words. */
export function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** Decodes the bytes from `start` to `end`. */
export function textOf(memory: Uint8Array, start: number, end: number): string {
  return decoder.decode(memory.subarray(start, end));
}

/** Whether `text` is at offset `at` and ends at or before `end`. */
export function matchesAt(memory: Uint8Array, at: number, end: number, text: Uint8Array): boolean {
  const { length } = text;
  if (at + length > end) return false;
  for (let i = 0; i < length; i++) if (memory[at + i] !== text[i]) return false;
  return true;
}

/** Whether two ranges of `bytes` bytes have equal content. */
export function bytesEqual(
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
 * Copies `bytes` bytes; also towards the front within the same memory. For short ranges only: from
 * a few hundred bytes on, `TypedArray.set` is faster.
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

/** Hash of the bytes from `start` to `end`: a non-negative integer of 30 bits. */
export function hashOf(view: DataView, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) hash = mixed(hash ^ view.getInt32(at, true));
  for (; at < end; at++) hash = mixed(hash ^ view.getUint8(at));
  // Mixed once more, so that trailing counters reach the lower bits. 30 bits, because V8 allocates
  // an object for a larger integer.
  return mixed(hash) & 0x3fffffff;
}

/** The multiplication carries bits upwards, the shift brings them down again. */
function mixed(word: number): number {
  const spread = Math.imul(word ^ word >>> 15, 0x2c1b3c6d);
  return spread ^ spread >>> 14;
}

const WORD_BYTES = 4;

/**
 * A fixed text of at least four bytes, compared four bytes at a time. A frame has about a hundred
 * bytes that are the same in all frames of its kind; comparing them one by one took a sixth of the
 * core's time per call.
 */
export class Literal {
  readonly length: number;
  /** All words of the text except the last four bytes. */
  readonly #words: Int32Array;
  /** The last four bytes; they may overlap the word before. */
  readonly #last: number;

  constructor(text: string) {
    const view = viewOf(bytesOf(text));
    this.length = view.byteLength;
    const count = Math.ceil(this.length / WORD_BYTES) - 1;
    this.#words = Int32Array.from({ length: count }, (_, i) => view.getInt32(4 * i, true));
    this.#last = view.getInt32(this.length - WORD_BYTES, true);
  }

  /** Whether the text is at offset `at` and ends at or before `end`. */
  matchesAt(view: DataView, at: number, end: number): boolean {
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
 * Number of bytes from `at` on, in steps of four, that are plain characters of a JSON string: no
 * quote, no backslash, no control character. Reads nothing from `end` on.
 */
export function plainWordsAt(view: DataView, at: number, end: number): number {
  let place = at;
  for (; place + WORD_BYTES <= end; place += WORD_BYTES) {
    const word = view.getInt32(place, true);
    const [quotes, backslashes] = [word ^ QUOTES, word ^ BACKSLASHES];
    // Subtracting 1 from a byte sets its high bit if the byte was zero; subtracting 32 does so for
    // a byte below 32. A borrow from the next byte may report one byte too many, never one too few.
    const found = (quotes - ONES) & ~quotes | (backslashes - ONES) & ~backslashes |
      (word - SPACES) & ~word;
    if ((found & HIGHS) !== 0) break;
  }
  return place - at;
}
