/**
 * W3C `traceparent`, as bytes of text and as numbers.
 *
 * An id is kept as words of 32 bits: eight hexadecimal digits each, the first digits in the first
 * word. A trace id has four words and a span id two, so a `traceparent` is six, and a flag.
 *
 * @module
 */
import { bytesOf } from "../core/text_bytes.ts";

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
 * Reads the `traceparent` in `memory` from `start` to `end` into the first six words: 1 when it
 * says that its trace is sampled, 0 when not, and -1 when it is none; then the words mean nothing.
 */
export function readTraceparent(
  memory: Uint8Array,
  start: number,
  end: number,
  words: Uint32Array,
): number {
  const length = end - start;
  if (length < LENGTH || memory[start + 2] !== DASH) return -1;
  if (memory[start + SPAN_ID_AT - 1] !== DASH) return -1;
  if (memory[start + FLAGS_AT - 1] !== DASH) return -1;
  const version = hexAt(memory, start, 2);
  if (version < 0 || version === 0xff) return -1;
  // Later versions may go on; this one may not.
  if (length > LENGTH && (version === 0 || memory[start + LENGTH] !== DASH)) return -1;
  const flags = hexAt(memory, start + FLAGS_AT, 2);
  const isTrace = readWords(memory, start + TRACE_ID_AT, words, 0, TRACE_WORDS);
  const isSpan = readWords(memory, start + SPAN_ID_AT, words, TRACE_WORDS, PARENT_WORDS);
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
    const word = hexAt(memory, start + (at - from) * 8, 8);
    if (word < 0) return false;
    words[at] = word;
    any += word;
  }
  return any > 0;
}

/** What so many lower-case hexadecimal digits say, at most eight; -1 when they are none. */
export function hexAt(memory: Uint8Array, start: number, digits: number): number {
  const end = start + digits;
  if (end > memory.length) return -1;
  let number = 0;
  let all = 0;
  // Whether each was a digit is asked once, of the sign that they leave behind together.
  for (let at = start; at < end; at++) {
    const value = VALUES[memory[at]!]!;
    number = number << 4 | value;
    all |= value;
  }
  return all < 0 ? -1 : number >>> 0;
}
