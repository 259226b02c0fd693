/**
 * W3C `traceparent`, as bytes of text and as numbers.
 *
 * An id is kept as words of 32 bits: eight hexadecimal digits each, the first digits in the first
 * word. A trace id has four words and a span id two, so a `traceparent` is six, and a flag.
 *
 * @module
 */
import { bytesOf } from "../core/wire/bytes.ts";

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
