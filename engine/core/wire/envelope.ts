/**
 * Where a frame is going, without parsing what it carries.
 *
 * Calls and results written in canonical order are recognised by their first bytes; everything
 * else is left to the codec. The idea: a frame that goes on is a new head, up to the id, and the
 * *tail* of the old one, from the closing quote of that id on. So a payload is never made a value
 * nor even a string, and large integers and odd spacing survive.
 *
 * Some clients write `action`, `namespace` or `timeout_ms` behind the payload, and a forger might
 * write `type` there, which would make the engine seem to say something else. So where such a name
 * occurs anywhere behind the payload's start, it is made sure that nothing follows the payload.
 *
 * @module
 */
import { TIMEOUT_MS_MAX } from "../../../sdk/typescript/wire/limits.ts";
import { bytesOf, Literal, NO_BYTES, plainWordsAt, standsAt, viewOf } from "./bytes.ts";
import {
  BAGGAGE_KEY,
  CALL_HEAD,
  type CallerId,
  callHashOf,
  type CallTail,
  DATA_KEY,
  FUNCTION_KEY,
  RESULT_HEAD,
  RESULT_KEY,
  type ResultTail,
  TIMEOUT_KEY,
  TRACEPARENT_KEY,
} from "./frame_parts.ts";
import { isWholeValue, LateNames } from "./json_scan.ts";

const ID_BYTES_MAX = 128;
/** From here on the platform finds a byte in two thirds of the time; below, asking costs more. */
const LONG_BYTES = 4_096;
const BAGGAGE_BYTES_MAX = 8_192;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const CLOSE_BRACE = 0x7d;
const ZERO = 0x30;
const SMALL_N = 0x6e;

const CALL_START = new Literal(CALL_HEAD);
const RESULT_START = new Literal(RESULT_HEAD);
const FUNCTION = new Literal(FUNCTION_KEY);
const TIMEOUT = new Literal(TIMEOUT_KEY);
const TRACEPARENT = new Literal(TRACEPARENT_KEY);
const BAGGAGE = new Literal(BAGGAGE_KEY);
const DATA = new Literal(DATA_KEY);
const RESULT = new Literal(RESULT_KEY);
/** The first place at which calls and results differ, and what calls have there. */
const KIND_AT = '{"type":"invo'.length;
const KIND_OF_CALLS = CALL_HEAD.charCodeAt(KIND_AT);

/** Names that, behind a payload, change what a call means or whose it is, or may not fit. */
const LATE_IN_CALL = new LateNames([
  "type",
  "action",
  "namespace",
  "timeout_ms",
  "invocation_id",
  "function_id",
  "caller",
  "traceparent",
  "baggage",
]);
/** The same for a result. */
const LATE_IN_RESULT = new LateNames([
  "type",
  "error",
  "invocation_id",
  "function_id",
  "traceparent",
  "baggage",
]);
/** Every letter of those names can only be escaped this way: `\u00`. */
const ESCAPED_LETTER = bytesOf("\\u00");

/**
 * A call or a result, as far as one need know it to pass it on.
 *
 * Reads one frame after the other: what it found is valid until the next one, and as long as the
 * memory that the frame lies in.
 */
export class Envelope implements CallTail, CallerId, ResultTail {
  kind: "call" | "result" = "call";
  memory: Uint8Array = NO_BYTES;
  view: DataView = viewOf(NO_BYTES);
  /** The id: the engine's own in a result, the caller's in a call. */
  idStart = 0;
  idEnd = 0;
  /** Of the id of a call; see `callHashOf()`. */
  hash = 0;
  functionStart = 0;
  functionEnd = 0;
  /** `undefined`: the call names none. */
  timeout_ms: number | undefined;
  traceStart = 0;
  traceEnd = 0;
  dataStart = -1;
  end = 0;

  /**
   * Reads the frame that lies in `memory` from `start` to `end`; `false` when somebody has to parse
   * it. `isPlain`: it is known that there is no backslash in it.
   */
  read(memory: Uint8Array, start: number, end: number, isPlain: boolean): boolean {
    if (memory !== this.memory) {
      this.memory = memory;
      this.view = viewOf(memory);
    }
    const isCall = memory[start + KIND_AT] === KIND_OF_CALLS;
    const head = isCall ? CALL_START : RESULT_START;
    if (memory[end - 1] !== CLOSE_BRACE || !head.standsAt(this.view, start, end)) return false;
    this.idStart = start + head.length;
    this.end = end;
    return this.#readIds() && (isCall ? this.#readCall(isPlain) : this.#readResult(isPlain));
  }

  #readIds(): boolean {
    const { view, end } = this;
    this.idEnd = closingQuote(view, this.idStart, end, ID_BYTES_MAX);
    if (this.idEnd < 0 || !FUNCTION.standsAt(view, this.idEnd, end)) return false;
    this.functionStart = this.idEnd + FUNCTION.length;
    this.functionEnd = closingQuote(view, this.functionStart, end, ID_BYTES_MAX);
    return this.functionEnd >= 0;
  }

  #readCall(isPlain: boolean): boolean {
    this.kind = "call";
    this.hash = callHashOf(this.view, this.idStart, this.idEnd);
    this.timeout_ms = undefined;
    const at = this.#readTimeout(this.functionEnd + 1);
    return at >= 0 && this.#readRest(at, DATA, LATE_IN_CALL, isPlain);
  }

  #readResult(isPlain: boolean): boolean {
    this.kind = "result";
    if (!this.#readRest(this.functionEnd + 1, RESULT, LATE_IN_RESULT, isPlain)) return false;
    if (this.dataStart < 0) return true;
    // `null` is to be left out, and white space may stand before one.
    const first = this.memory[this.dataStart]!;
    return first !== SMALL_N && first > SPACE;
  }

  /** Behind a time-out, if it is there; -1 when it is none that may be. */
  #readTimeout(from: number): number {
    const { memory, view, end } = this;
    if (!TIMEOUT.standsAt(view, from, end)) return from;
    let at = from + TIMEOUT.length;
    if (memory[at] === ZERO) return -1; // No JSON, or no time.
    let timeout_ms = 0;
    for (; memory[at]! >= ZERO && memory[at]! <= ZERO + 9; at++) {
      timeout_ms = timeout_ms * 10 + memory[at]! - ZERO;
      if (timeout_ms > TIMEOUT_MS_MAX) return -1;
    }
    this.timeout_ms = timeout_ms;
    return timeout_ms > 0 ? at : -1;
  }

  /** What follows the names: trace, baggage, a payload behind which nothing of importance is. */
  #readRest(from: number, key: Literal, late: LateNames, isPlain: boolean): boolean {
    const { memory, view, end } = this;
    this.traceStart = from;
    this.traceEnd = behind(view, from, end, TRACEPARENT, ID_BYTES_MAX);
    if (this.traceEnd < 0) return false;
    const at = behind(view, this.traceEnd, end, BAGGAGE, BAGGAGE_BYTES_MAX);
    if (at < 0) return false;
    if (at === end - 1) {
      this.dataStart = -1;
      return true;
    }
    if (!key.standsAt(view, at, end)) return false;
    this.dataStart = at + key.length;
    const mayBeLate = late.isIn(memory, this.dataStart, end) ||
      (!isPlain && hasEscapedLetter(memory, this.dataStart, end));
    return !mayBeLate || isWholeValue(memory, this.dataStart, end - 1);
  }
}

/** Behind a field of plain text, if it is there; -1 when it is there and not plain. */
function behind(
  view: DataView,
  at: number,
  end: number,
  key: Literal,
  bytesMax: number,
): number {
  if (!key.standsAt(view, at, end)) return at;
  const quote = closingQuote(view, at + key.length, end, bytesMax);
  return quote < 0 ? -1 : quote + 1;
}

/** The quote that ends a string of plain characters; -1 when it is escaped, empty or too long. */
function closingQuote(view: DataView, start: number, end: number, bytesMax: number): number {
  const last = Math.min(end, start + bytesMax + 1);
  for (let at = start + plainWordsAt(view, start, last); at < last; at++) {
    const byte = view.getUint8(at);
    if (byte === QUOTE) return at === start ? -1 : at;
    if (byte === BACKSLASH || byte < SPACE) return -1;
  }
  return -1;
}

function hasEscapedLetter(memory: Uint8Array, start: number, end: number): boolean {
  if (end - start > LONG_BYTES) return hasEscapedLetterInLong(memory.subarray(start, end));
  for (let at = start; at < end; at++) {
    if (memory[at] === BACKSLASH && standsAt(memory, at, end, ESCAPED_LETTER)) return true;
  }
  return false;
}

function hasEscapedLetterInLong(text: Uint8Array): boolean {
  for (let at = text.indexOf(BACKSLASH); at >= 0; at = text.indexOf(BACKSLASH, at + 2)) {
    if (standsAt(text, at, text.length, ESCAPED_LETTER)) return true;
  }
  return false;
}
