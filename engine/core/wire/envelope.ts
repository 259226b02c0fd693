/**
 * Reads the routing fields of a call or result without parsing its payload.
 *
 * Frames in canonical key order are recognised by their first bytes; all others are left to the
 * codec. A forwarded frame is a new prefix up to the id plus the *remainder* of the old one, from
 * the closing quote of its id on. So a payload never becomes a value or a string, and large
 * integers and unusual spacing survive.
 *
 * Some clients write `action`, `namespace` or `timeout_ms` behind the payload, and a malicious one
 * might write `type` there, which would change the meaning of the frame that the engine forwards.
 * Therefore, when a reserved key occurs anywhere behind the start of the payload, the envelope is
 * accepted only if nothing follows the payload.
 *
 * @module
 */
import { TIMEOUT_MS_MAX } from "../../../sdk/typescript/wire/limits.ts";
import type { Member, Outline } from "../../ports/connection.ts";
import { bytesOf, Literal, matchesAt, NO_BYTES, plainWordsAt, viewOf } from "./bytes.ts";
import {
  BAGGAGE_KEY,
  CALL_PREFIX,
  type CallerId,
  callHashOf,
  type CallRemainder,
  DATA_KEY,
  FUNCTION_KEY,
  RESULT_KEY,
  RESULT_PREFIX,
  type ResultRemainder,
  TIMEOUT_KEY,
  TRACEPARENT_KEY,
} from "./frame_parts.ts";
import { isWholeValue, ReservedKeySearch } from "./json_scan.ts";

const ID_BYTES_MAX = 128;
/** From this length on `indexOf` is faster than a loop. */
const LONG_BYTES = 4_096;
/** Bytes behind a backslash that are looked at one by one. */
const NEAR_BYTES = 64;
const BAGGAGE_BYTES_MAX = 8_192;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const CLOSE_BRACE = 0x7d;
const ZERO = 0x30;
const SMALL_N = 0x6e;

const CALL_START = new Literal(CALL_PREFIX);
const RESULT_START = new Literal(RESULT_PREFIX);
const FUNCTION = new Literal(FUNCTION_KEY);
const TIMEOUT = new Literal(TIMEOUT_KEY);
const TRACEPARENT = new Literal(TRACEPARENT_KEY);
const BAGGAGE = new Literal(BAGGAGE_KEY);
const DATA = new Literal(DATA_KEY);
const RESULT = new Literal(RESULT_KEY);
/** First offset at which calls and results differ, and the byte of a call there. */
const KIND_AT = '{"type":"invo'.length;
const KIND_OF_CALLS = CALL_PREFIX.charCodeAt(KIND_AT);

/** Keys that, behind a payload, would change what a call means, or who it belongs to. */
const TRAILING_CALL_KEYS = new ReservedKeySearch([
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
const TRAILING_RESULT_KEYS = new ReservedKeySearch([
  "type",
  "error",
  "invocation_id",
  "function_id",
  "traceparent",
  "baggage",
]);
/** Prefix of every escape sequence that could spell a letter of those keys. */
const ESCAPED_LETTER = bytesOf("\\u00");

/**
 * The routing fields of one call or result.
 *
 * One instance reads one frame after the other; its fields are valid until the next {@linkcode
 * Envelope.read} and while the frame's memory is unchanged.
 */
export class Envelope implements CallRemainder, CallerId, ResultRemainder {
  kind: "call" | "result" = "call";
  memory: Uint8Array = NO_BYTES;
  view: DataView = viewOf(NO_BYTES);
  /** The id: the engine's in a result, the caller's in a call. */
  idStart = 0;
  idEnd = 0;
  /** Of a call's id; see {@linkcode callHashOf}. */
  hash = 0;
  functionStart = 0;
  functionEnd = 0;
  /** `undefined` when the call has none. */
  timeout_ms: number | undefined;
  traceStart = 0;
  traceEnd = 0;
  dataStart = -1;
  end = 0;
  /** The payload as a member of the frame, if the frame has an outline. */
  payload: Member | undefined;
  #outline: Outline | undefined;

  /**
   * Reads the frame in `memory` from `start` to `end`; `false` when the codec has to parse it.
   * `isPlain`: the frame contains no backslash. `outline`: what is known of a large frame.
   */
  read(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): boolean {
    this.#outline = outline;
    this.payload = undefined;
    if (memory !== this.memory) {
      this.memory = memory;
      this.view = viewOf(memory);
    }
    const isCall = memory[start + KIND_AT] === KIND_OF_CALLS;
    const prefix = isCall ? CALL_START : RESULT_START;
    if (memory[end - 1] !== CLOSE_BRACE || !prefix.matchesAt(this.view, start, end)) return false;
    this.idStart = start + prefix.length;
    this.end = end;
    return this.#readIds() && (isCall ? this.#readCall(isPlain) : this.#readResult(isPlain));
  }

  #readIds(): boolean {
    const { view, end } = this;
    this.idEnd = closingQuote(view, this.idStart, end, ID_BYTES_MAX);
    if (this.idEnd < 0 || !FUNCTION.matchesAt(view, this.idEnd, end)) return false;
    this.functionStart = this.idEnd + FUNCTION.length;
    this.functionEnd = closingQuote(view, this.functionStart, end, ID_BYTES_MAX);
    return this.functionEnd >= 0;
  }

  #readCall(isPlain: boolean): boolean {
    this.kind = "call";
    this.hash = callHashOf(this.view, this.idStart, this.idEnd);
    this.timeout_ms = undefined;
    const at = this.#readTimeout(this.functionEnd + 1);
    return at >= 0 && this.#readRest(at, DATA, TRAILING_CALL_KEYS, isPlain);
  }

  #readResult(isPlain: boolean): boolean {
    this.kind = "result";
    if (!this.#readRest(this.functionEnd + 1, RESULT, TRAILING_RESULT_KEYS, isPlain)) return false;
    if (this.dataStart < 0) return true;
    // `null` has to be omitted when forwarded; white space may precede one.
    const first = this.memory[this.dataStart]!;
    return first !== SMALL_N && first > SPACE;
  }

  /** Offset behind the timeout, if there is one; -1 for an invalid timeout. */
  #readTimeout(from: number): number {
    const { memory, view, end } = this;
    if (!TIMEOUT.matchesAt(view, from, end)) return from;
    let at = from + TIMEOUT.length;
    if (memory[at] === ZERO) return -1; // Not JSON, or zero.
    let timeout_ms = 0;
    for (; memory[at]! >= ZERO && memory[at]! <= ZERO + 9; at++) {
      timeout_ms = timeout_ms * 10 + memory[at]! - ZERO;
      if (timeout_ms > TIMEOUT_MS_MAX) return -1;
    }
    this.timeout_ms = timeout_ms;
    return timeout_ms > 0 ? at : -1;
  }

  /** Reads the rest: trace, baggage, and a payload that no reserved key follows. */
  #readRest(from: number, key: Literal, reserved: ReservedKeySearch, isPlain: boolean): boolean {
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
    if (!key.matchesAt(view, at, end)) return false;
    this.dataStart = at + key.length;
    if (this.#outline) return this.#endsWithPayload(this.#outline);
    const mayHaveTrailingKey = reserved.occursIn(memory, this.dataStart, end) ||
      (!isPlain && hasEscapedLetter(memory, this.dataStart, end));
    return !mayHaveTrailingKey || isWholeValue(memory, this.dataStart, end - 1);
  }

  /** Whether the payload is the last member of the frame. */
  #endsWithPayload({ members }: Outline): boolean {
    const last = members?.at(-1);
    if (last?.keyEnd !== this.dataStart - 1) return false;
    this.payload = last;
    return last.end === this.end - 1;
  }
}

/** Offset behind a plain string field, if there is one; -1 when its value is not plain. */
function behind(
  view: DataView,
  at: number,
  end: number,
  key: Literal,
  bytesMax: number,
): number {
  if (!key.matchesAt(view, at, end)) return at;
  const quote = closingQuote(view, at + key.length, end, bytesMax);
  return quote < 0 ? -1 : quote + 1;
}

/** Offset of the closing quote of a plain string; -1 when it is escaped, empty or too long. */
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
    if (memory[at] === BACKSLASH && matchesAt(memory, at, end, ESCAPED_LETTER)) return true;
  }
  return false;
}

function hasEscapedLetterInLong(text: Uint8Array): boolean {
  const { length } = text;
  for (let at = text.indexOf(BACKSLASH); at >= 0; at = text.indexOf(BACKSLASH, at)) {
    // Backslashes are often close to each other: a search for each would take 1 s for 64 MiB.
    for (const near = Math.min(length, at + NEAR_BYTES); at < near; at++) {
      if (text[at] !== BACKSLASH) continue;
      if (matchesAt(text, at, length, ESCAPED_LETTER)) return true;
      at++;
    }
  }
  return false;
}
