/**
 * Where a frame is going, without parsing what it carries.
 *
 * Calls and results written in canonical order are recognised by their first bytes; everything
 * else is left to the codec. The idea: a frame that goes on is a new head, up to the id, and the
 * *tail* of the old text, from the closing quote of that id on. So a payload is never made a value
 * nor written anew, and large integers and odd spacing survive.
 *
 * Some clients write `action`, `namespace` or `timeout_ms` behind the payload, so a frame in which
 * such a name occurs anywhere behind it is not canonical, whatever the name means there. A frame
 * that says `type` or `data` twice is outside the protocol and not looked for.
 *
 * @module
 */
import { TIMEOUT_MS_MAX } from "../../sdk/typescript/limits.ts";
import {
  DEFAULT_NAMESPACE,
  type InvocationResult,
  type InvokeFunction,
  type Json,
} from "../../sdk/typescript/protocol.ts";
import type { CallPlaces } from "../ports/call_observer.ts";

/** How every call starts, up to the text of its id. */
export const CALL_HEAD = '{"type":"invokefunction","invocation_id":"';
/** How every result starts, up to the text of its id. */
export const RESULT_HEAD = '{"type":"invocationresult","invocation_id":"';

const FUNCTION_KEY = '","function_id":"';
const TIMEOUT_KEY = ',"timeout_ms":';
/** What stands before the text of a `traceparent`. */
export const TRACEPARENT_KEY = ',"traceparent":"';
/** What stands before the text of a `baggage`. */
export const BAGGAGE_KEY = ',"baggage":"';
/** What stands before a payload. */
export const DATA_KEY = ',"data":';
const RESULT_KEY = ',"result":';

const ID_LENGTH_MAX = 128;
const BAGGAGE_LENGTH_MAX = 8_192;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/** Names that, behind a payload, change what a call means or whose it is, or may not fit. */
const LATE_IN_CALL =
  /"(?:action|namespace|timeout_ms|invocation_id|function_id|caller|traceparent|baggage)"/;
/** The same for a result. */
const LATE_IN_RESULT = /"(?:error|invocation_id|function_id|traceparent|baggage)"/;
/** Every letter of those names can only be escaped this way. */
const ESCAPED_LETTER = "\\u00";

/** A call's frame from the closing quote of its id on, and what stands where in it. */
export interface CallTail extends CallPlaces {
  readonly text: string;
  /** The tail starts there. */
  readonly idEnd: number;
}

/** A call, as far as one need know it to pass it on. */
export interface CallEnvelope extends CallTail {
  readonly kind: "call";
  /** May be a view into the frame: keep it no longer than that. */
  readonly function_id: string;
  readonly timeout_ms: number | undefined;
}

/** A result's frame from the closing quote of its id on. */
export interface ResultTail {
  readonly text: string;
  /** The tail starts there. */
  readonly idEnd: number;
  /** The value, which ends before the brace; -1: there is none. */
  readonly resultStart: number;
}

/** A result without an error, as far as one need know it to pass it on. */
export interface ResultEnvelope extends ResultTail {
  readonly kind: "result";
  /** The engine's id is `text.slice(idStart, idEnd)`. */
  readonly idStart: number;
}

/** What {@linkcode readEnvelope} found. */
export type Envelope = CallEnvelope | ResultEnvelope;

/** Where a frame is going; `undefined` when somebody has to parse it. */
export function readEnvelope(text: string): Envelope | undefined {
  if (text.startsWith(CALL_HEAD)) return readCall(text);
  if (text.startsWith(RESULT_HEAD)) return readResult(text);
  return undefined;
}

function readCall(text: string): CallEnvelope | undefined {
  const idStart = CALL_HEAD.length;
  const idEnd = closingQuote(text, idStart, ID_LENGTH_MAX);
  if (idEnd < 0 || !text.startsWith(FUNCTION_KEY, idEnd)) return undefined;
  const functionStart = idEnd + FUNCTION_KEY.length;
  const functionEnd = closingQuote(text, functionStart, ID_LENGTH_MAX);
  if (functionEnd < 0) return undefined;

  let at = functionEnd + 1;
  let timeout_ms: number | undefined;
  if (text.startsWith(TIMEOUT_KEY, at)) {
    const end = digitsEnd(text, at + TIMEOUT_KEY.length);
    timeout_ms = Number(text.slice(at + TIMEOUT_KEY.length, end));
    if (!(timeout_ms >= 1 && timeout_ms <= TIMEOUT_MS_MAX)) return undefined;
    // A leading zero is no JSON.
    if (text.charCodeAt(at + TIMEOUT_KEY.length) === 0x30) return undefined;
    at = end;
  }
  const traceStart = at;
  const traceEnd = behindTraceparent(text, at);
  at = traceEnd < 0 ? -1 : behindBaggage(text, traceEnd);
  if (at < 0 || !endsAfter(text, at, DATA_KEY, LATE_IN_CALL)) return undefined;
  const function_id = text.slice(functionStart, functionEnd);
  const dataStart = at === text.length - 1 ? -1 : at + DATA_KEY.length;
  const kind = "call";
  return { kind, text, idStart, idEnd, function_id, timeout_ms, traceStart, traceEnd, dataStart };
}

function readResult(text: string): ResultEnvelope | undefined {
  const idStart = RESULT_HEAD.length;
  const idEnd = closingQuote(text, idStart, ID_LENGTH_MAX);
  if (idEnd < 0 || !text.startsWith(FUNCTION_KEY, idEnd)) return undefined;
  const functionEnd = closingQuote(text, idEnd + FUNCTION_KEY.length, ID_LENGTH_MAX);
  if (functionEnd < 0) return undefined;

  const traceEnd = behindTraceparent(text, functionEnd + 1);
  const at = traceEnd < 0 ? -1 : behindBaggage(text, traceEnd);
  if (at < 0 || !endsAfter(text, at, RESULT_KEY, LATE_IN_RESULT)) return undefined;
  const first = text.charCodeAt(at + RESULT_KEY.length);
  // `null` is to be left out, and white space may stand before one.
  if (first === 0x6e || first <= SPACE) return undefined;
  const resultStart = at === text.length - 1 ? -1 : at + RESULT_KEY.length;
  return { kind: "result", text, idStart, idEnd, resultStart };
}

/** Whether the frame ends here, or after a payload behind which nothing of importance can stand. */
function endsAfter(text: string, at: number, key: string, late: RegExp): boolean {
  const last = text.length - 1;
  if (text.charCodeAt(last) !== CLOSE_BRACE) return false;
  if (at === last) return true;
  if (!text.startsWith(key, at)) return false;
  const start = at + key.length;
  return text.indexOf(ESCAPED_LETTER, start) < 0 && !late.test(text.slice(start));
}

/** Behind a `traceparent`, if it is there; -1 when it is not plain text. */
function behindTraceparent(text: string, at: number): number {
  if (!text.startsWith(TRACEPARENT_KEY, at)) return at;
  const end = closingQuote(text, at + TRACEPARENT_KEY.length, ID_LENGTH_MAX);
  return end < 0 ? -1 : end + 1;
}

/** Behind a `baggage`, if it is there; -1 when it is not plain text. */
function behindBaggage(text: string, at: number): number {
  if (!text.startsWith(BAGGAGE_KEY, at)) return at;
  const end = closingQuote(text, at + BAGGAGE_KEY.length, BAGGAGE_LENGTH_MAX);
  return end < 0 ? -1 : end + 1;
}

/** The quote that ends a string of plain characters; -1 when it is escaped, empty or too long. */
function closingQuote(text: string, start: number, lengthMax: number): number {
  const end = Math.min(text.length, start + lengthMax + 1);
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at === start ? -1 : at;
    if (code === BACKSLASH || code < SPACE) return -1;
  }
  return -1;
}

function digitsEnd(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++;
  return at;
}

/** What stands between the quotes when a text is written as JSON. */
export function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The tail of a call that was parsed: what its envelope would have given, in canonical order. */
export function callTail(call: InvokeFunction, text: string): CallTail {
  let lead = `","function_id":${JSON.stringify(call.function_id)}`;
  if (call.namespace !== undefined && call.namespace !== DEFAULT_NAMESPACE) {
    lead += `,"namespace":${JSON.stringify(call.namespace)}`;
  }
  if (call.timeout_ms !== undefined) lead += TIMEOUT_KEY + call.timeout_ms;
  if (call.metadata !== undefined) lead += `,"metadata":${fieldText(text, "metadata")}`;
  const traced = lead + traceparentTail(call);
  const before = traced + baggageTail(call);
  const data = fieldText(text, "data");
  const places = { idStart: -1, idEnd: 0, traceStart: lead.length, traceEnd: traced.length };
  if (data === undefined) {
    return { text: `${before}}`, ...places, dataStart: -1 };
  }
  const dataStart = before.length + DATA_KEY.length;
  return { text: `${before + DATA_KEY + data}}`, ...places, dataStart };
}

/** The tail of a result that was parsed. A `null` is left out, an error goes on as it was. */
export function resultTail(result: InvocationResult, text: string): ResultTail {
  const trace = traceparentTail(result) + baggageTail(result);
  const lead = `","function_id":${JSON.stringify(result.function_id)}${trace}`;
  if (result.error !== undefined) {
    return { text: `${lead},"error":${errorText(result, text)}}`, idEnd: 0, resultStart: -1 };
  }
  return result.result === undefined
    ? { text: `${lead}}`, idEnd: 0, resultStart: -1 }
    : valueBehind(lead, fieldText(text, "result")!);
}

/** The tail of a result that the engine itself came to. */
export function valueTail(function_id: string, result: Json): ResultTail {
  return valueBehind(`","function_id":${JSON.stringify(function_id)}`, JSON.stringify(result));
}

function valueBehind(lead: string, value: string): ResultTail {
  const resultStart = lead.length + RESULT_KEY.length;
  return { text: `${lead + RESULT_KEY + value}}`, idEnd: 0, resultStart };
}

function traceparentTail({ traceparent }: InvocationResult | InvokeFunction): string {
  return traceparent === undefined ? "" : `,"traceparent":${JSON.stringify(traceparent)}`;
}

function baggageTail({ baggage }: InvocationResult | InvokeFunction): string {
  return baggage === undefined ? "" : `,"baggage":${JSON.stringify(baggage)}`;
}

/** The error as the callee wrote it; what the codec made of it where it was no error object. */
function errorText({ error }: InvocationResult, text: string): string {
  const written = fieldText(text, "error")!;
  const raw = JSON.parse(written);
  const kept = error !== undefined && Object.keys(error).every((key) => raw[key] !== undefined) &&
    raw.code === error.code && raw.message === error.message &&
    ["stacktrace", "details", "retryable"].every((key) =>
      raw[key] === undefined || raw[key] === null || Object.hasOwn(error, key)
    );
  return kept ? written : JSON.stringify(error);
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
    const keyEnd = stringEnd(text, keyStart);
    const start = text.indexOf(":", keyEnd) + 1;
    const end = valueEnd(text, start);
    if (JSON.parse(text.slice(keyStart, keyEnd)) === name) found = text.slice(start, end).trim();
    if (text.charCodeAt(end) !== COMMA) return found;
    at = end + 1;
  }
}

/** Behind the quote that ends the string which starts here. */
function stringEnd(text: string, start: number): number {
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
        at = stringEnd(text, at) - 1;
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
