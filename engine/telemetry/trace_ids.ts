/**
 * W3C `traceparent`, as bytes of text and as numbers.
 *
 * An id is kept as words of 32 bits: eight hexadecimal digits each, the first digits in the first
 * word. A trace id has four words and a span id two, so a `traceparent` is six, and a flag.
 *
 * @module
 */
import { bytesOf, viewOf } from "../core/wire/bytes.ts";
import { TRACEPARENT_KEY } from "../core/wire/frame_parts.ts";
import type { TraceBytes } from "../ports/call_observer.ts";

/** Words of a trace id. */
export const TRACE_WORDS = 4;
/** Words of a trace id and the id of its span. */
export const PARENT_WORDS = 6;

/** Where the trace id begins. */
export const TRACE_ID_AT = 3;
/** Where the id of the span begins. */
export const SPAN_ID_AT = 36;

/** Where the flags begin. */
export const FLAGS_AT = 53;

const LENGTH = 55;
const DASH = 0x2d;
/** The value of each hexadecimal digit in lower case; -1 for all other bytes. */
const VALUES: Int8Array = new Int8Array(256).fill(-1);
bytesOf("0123456789abcdef").forEach((digit, value) => VALUES[digit] = value);

/**
 * Reads the `traceparent` in `memory` from `start` to `end` into six words from `to` on: 1 when it
 * says that its trace is sampled, 0 when not, and -1 when it is none; then the words mean nothing.
 */
export function readTraceparent(
  memory: Uint8Array,
  start: number,
  end: number,
  words: Uint32Array,
  to: number,
): number {
  const length = end - start;
  if (length < LENGTH || memory[start + 2] !== DASH) return -1;
  if (memory[start + SPAN_ID_AT - 1] !== DASH) return -1;
  if (memory[start + FLAGS_AT - 1] !== DASH) return -1;
  const version = twoDigits(memory, start);
  if (version < 0 || version === 0xff) return -1;
  // Later versions may go on; this one may not.
  if (length > LENGTH && (version === 0 || memory[start + LENGTH] !== DASH)) return -1;
  const flags = twoDigits(memory, start + FLAGS_AT);
  const isTrace = readWords(memory, start + TRACE_ID_AT, words, to, to + TRACE_WORDS);
  const spanAt = start + SPAN_ID_AT;
  const isSpan = readWords(memory, spanAt, words, to + TRACE_WORDS, to + PARENT_WORDS);
  return flags < 0 || !isTrace || !isSpan ? -1 : flags & 1;
}

/** Reads an id by itself, lower case, into the words from `from` to `to`; `false`: it is none. */
export function readId(text: string, words: Uint32Array, from: number, to: number): boolean {
  return text.length === (to - from) * 8 && readWords(bytesOf(text), 0, words, from, to);
}

/** A `traceparent` of this version. */
export function traceparentOf(trace_id: string, span_id: string, isSampled: boolean): string {
  return `00-${trace_id}-${span_id}-0${isSampled ? 1 : 0}`;
}

/** The digits of the words from `from` to `to`. */
export function idText(words: Uint32Array, from: number, to: number): string {
  let text = "";
  for (let at = from; at < to; at++) text += words[at]!.toString(16).padStart(8, "0");
  return text;
}

/** `false` when there is something else than digits, or only zeros. */
function readWords(
  memory: Uint8Array,
  start: number,
  words: Uint32Array,
  from: number,
  to: number,
): boolean {
  let any = 0;
  for (let at = from; at < to; at++) {
    const digits = start + (at - from) * 8;
    const high = fourDigits(memory, digits);
    const low = fourDigits(memory, digits + 4);
    if ((high | low) < 0) return false;
    words[at] = high << 16 | low;
    any |= high | low;
  }
  return any > 0;
}

/**
 * What four lower-case hexadecimal digits say, all of which lie in the memory; below zero when they
 * are none: one that is no digit leaves its sign. Without a loop, since every call has some.
 */
export function fourDigits(memory: Uint8Array, at: number): number {
  return VALUES[memory[at]!]! << 12 | VALUES[memory[at + 1]!]! << 8 |
    VALUES[memory[at + 2]!]! << 4 | VALUES[memory[at + 3]!]!;
}

/** What two of them say; below zero when they are none. */
function twoDigits(memory: Uint8Array, at: number): number {
  return VALUES[memory[at]!]! << 4 | VALUES[memory[at + 1]!]!;
}

/** Words of a UUID. */
export const UUID_WORDS = 4;

const CHARS = 36;
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

const DIGITS_PER_WORD = 8;
const DIGIT_ZERO = 0x30;
/** The two digits of each number from 0 to 255, the first one in the upper byte. */
const DIGITS = Uint16Array.from({ length: 256 }, (_, byte) => {
  const [first, second] = bytesOf(byte.toString(16).padStart(2, "0"));
  return first! << 8 | second!;
});
const START = TRACEPARENT_KEY.length;

/** A field that is written anew for each span. */
export class TraceField implements TraceBytes {
  readonly memory: Uint8Array = bytesOf(
    `${TRACEPARENT_KEY}00-${"0".repeat(32)}-${"0".repeat(16)}-00"`,
  );
  readonly view: DataView = viewOf(this.memory);

  /** The field of a span: four words from `from` on are its trace, the next two its own. */
  of(words: Uint32Array, from: number, isSampled: boolean): this {
    for (let at = 0; at < TRACE_WORDS; at++) {
      this.#write(words[from + at]!, START + TRACE_ID_AT + at * DIGITS_PER_WORD);
    }
    this.#write(words[from + TRACE_WORDS]!, START + SPAN_ID_AT);
    this.#write(words[from + TRACE_WORDS + 1]!, START + SPAN_ID_AT + DIGITS_PER_WORD);
    this.memory[START + FLAGS_AT + 1] = DIGIT_ZERO + (isSampled ? 1 : 0);
    return this;
  }

  #write(word: number, at: number): void {
    const { view } = this; // Four digits at a time.
    view.setUint32(at, DIGITS[word >>> 24]! << 16 | DIGITS[word >>> 16 & 0xff]!);
    view.setUint32(at + 4, DIGITS[word >>> 8 & 0xff]! << 16 | DIGITS[word & 0xff]!);
  }
}

/** Fills bytes with chance, as `crypto.getRandomValues` does. */
export type FillRandom = (bytes: Uint8Array<ArrayBuffer>) => void;

const BLOCK_BYTES = 4_096;

/** Gives out random bytes. */
export class IdSource {
  readonly #fill: FillRandom;
  readonly #bytes = new Uint8Array(BLOCK_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  /** The block as text, from when somebody first asks for some of it: calls never do. */
  #hex = "";
  #next = BLOCK_BYTES;

  /** Makes one; nothing is asked of `fill` yet. */
  constructor(fill: FillRandom) {
    this.#fill = fill;
  }

  /** Where so many bytes lie that nobody had yet; valid until the next call. */
  take(bytes: number): number {
    if (this.#next + bytes > BLOCK_BYTES) {
      this.#fill(this.#bytes);
      this.#hex = "";
      this.#next = 0;
    }
    const at = this.#next;
    this.#next += bytes;
    return at;
  }

  /** Four bytes from there, as eight hexadecimal digits say it. */
  word(at: number): number {
    return this.#view.getUint32(at);
  }

  /** So many bytes from there, in hexadecimal. A view into a larger text: not to be kept. */
  text(at: number, bytes: number): string {
    if (this.#hex === "") this.#hex = this.#bytes.toHex();
    return this.#hex.slice(2 * at, 2 * (at + bytes));
  }
}
