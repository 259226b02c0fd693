/**
 * Ids of traces, spans and calls, as text and as 32-bit words.
 *
 * A word holds eight hexadecimal digits, the first digits in the first word. A trace id has four
 * words and a span id two, so a W3C `traceparent` has six and a flag; a UUID has four. Random ids
 * are produced in blocks, because a call of the random generator costs microseconds.
 *
 * @module
 */
import { bytesOf, viewOf } from "../core/wire/bytes.ts";
import { TRACEPARENT_KEY } from "../core/wire/frame_parts.ts";
import type { TraceBytes } from "../ports/call_observer.ts";

/** Words of a trace id. */
export const TRACE_WORDS = 4;
/** Words of a trace id and a span id. */
export const PARENT_WORDS = 6;

/** Offset of the trace id. */
export const TRACE_ID_AT = 3;
/** Offset of the span id. */
export const SPAN_ID_AT = 36;

/** Offset of the flags. */
export const FLAGS_AT = 53;

const LENGTH = 55;
const DASH = 0x2d;
/** Values of the lower-case hexadecimal digits; -1 for all other bytes. */
const VALUES: Int8Array = new Int8Array(256).fill(-1);
bytesOf("0123456789abcdef").forEach((digit, value) => VALUES[digit] = value);

/**
 * Parses the `traceparent` in `memory` from `start` to `end` into six words from `to` on: 1 if its
 * trace is sampled, 0 if not, -1 if it is invalid and the words are meaningless.
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
  // Later versions may be longer, version 0 may not.
  if (length > LENGTH && (version === 0 || memory[start + LENGTH] !== DASH)) return -1;
  const flags = twoDigits(memory, start + FLAGS_AT);
  const isTrace = readWords(memory, start + TRACE_ID_AT, words, to, to + TRACE_WORDS);
  const spanAt = start + SPAN_ID_AT;
  const isSpan = readWords(memory, spanAt, words, to + TRACE_WORDS, to + PARENT_WORDS);
  return flags < 0 || !isTrace || !isSpan ? -1 : flags & 1;
}

/** Parses a lower-case id into the words from `from` to `to`; `false` if it is invalid. */
export function readId(text: string, words: Uint32Array, from: number, to: number): boolean {
  return text.length === (to - from) * 8 && readWords(bytesOf(text), 0, words, from, to);
}

/** A `traceparent` of version 0. */
export function traceparentOf(trace_id: string, span_id: string, isSampled: boolean): string {
  return `00-${trace_id}-${span_id}-0${isSampled ? 1 : 0}`;
}

/** The digits of the words from `from` to `to`. */
export function idText(words: Uint32Array, from: number, to: number): string {
  let text = "";
  for (let at = from; at < to; at++) text += words[at]!.toString(16).padStart(8, "0");
  return text;
}

/** `false` for anything but digits, and for all zeros. */
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
 * Value of four lower-case hexadecimal digits; negative if one is invalid, because its sign bit
 * remains. Unrolled, since it runs for every call.
 */
export function fourDigits(memory: Uint8Array, at: number): number {
  return VALUES[memory[at]!]! << 12 | VALUES[memory[at + 1]!]! << 8 |
    VALUES[memory[at + 2]!]! << 4 | VALUES[memory[at + 3]!]!;
}

/** Value of two digits; negative if one is invalid. */
function twoDigits(memory: Uint8Array, at: number): number {
  return VALUES[memory[at]!]! << 4 | VALUES[memory[at + 1]!]!;
}

/** Words of a UUID. */
export const UUID_WORDS = 4;

const CHARS = 36;
const GROUPS = [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]] as const;

/**
 * Parses a lower-case UUID in `memory` from `start` to `end` into the words from `to` on; zeros and
 * `false` if it is none.
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

/** The UUID of four words; `null` for zeros. */
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
/** The two digits of each byte value, the first one in the upper byte. */
const DIGITS = Uint16Array.from({ length: 256 }, (_, byte) => {
  const [first, second] = bytesOf(byte.toString(16).padStart(2, "0"));
  return first! << 8 | second!;
});
const START = TRACEPARENT_KEY.length;

/** A `traceparent` field of a frame, in a buffer that is reused for each span. */
export class TraceField implements TraceBytes {
  readonly memory: Uint8Array = bytesOf(
    `${TRACEPARENT_KEY}00-${"0".repeat(32)}-${"0".repeat(16)}-00"`,
  );
  readonly view: DataView = viewOf(this.memory);

  /**
   * The field of a span: its trace id is in four words from `from` on, its own id in the next two.
   */
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
    const { view } = this; // Writes four digits at once.
    view.setUint32(at, DIGITS[word >>> 24]! << 16 | DIGITS[word >>> 16 & 0xff]!);
    view.setUint32(at + 4, DIGITS[word >>> 8 & 0xff]! << 16 | DIGITS[word & 0xff]!);
  }
}

/** Fills bytes with random values, like `crypto.getRandomValues`. */
export type FillRandom = (bytes: Uint8Array<ArrayBuffer>) => void;

const BLOCK_BYTES = 4_096;

/** Provides random bytes from a block that is refilled when it is used up. */
export class IdSource {
  readonly #fill: FillRandom;
  readonly #bytes = new Uint8Array(BLOCK_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  /** The block as text, created when it is first requested: calls never need it. */
  #hex = "";
  #next = BLOCK_BYTES;

  constructor(fill: FillRandom) {
    this.#fill = fill;
  }

  /** Offset of `bytes` unused bytes; valid until the next call. */
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

  /** Four bytes at an offset, as the number of their eight hexadecimal digits. */
  word(at: number): number {
    return this.#view.getUint32(at);
  }

  /** Bytes at an offset as hexadecimal text. A slice of a larger text: copy it to keep it. */
  text(at: number, bytes: number): string {
    if (this.#hex === "") this.#hex = this.#bytes.toHex();
    return this.#hex.slice(2 * at, 2 * (at + bytes));
  }
}
