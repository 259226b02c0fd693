/**
 * The parts of a forwarded call or result: prefix, id and remainder.
 *
 * A frame that the engine forwards is a new prefix up to the id, followed by the *remainder* of the
 * received frame, from the closing quote of its id on. A frame that had to be parsed gets the
 * remainder of its canonical form, with the payload's original bytes.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type InvocationResult,
  type InvokeFunction,
  type Json,
} from "../../../sdk/typescript/wire/protocol.ts";
import type { Member } from "../../ports/connection.ts";
import type { CallLayout } from "../../ports/call_observer.ts";
import { bytesOf, hashOf, passingBytesOf, viewOf } from "./bytes.ts";
import type { ByteRange, RawFields } from "./parsed_frame.ts";

/** Start of every call, up to the text of its id. */
export const CALL_PREFIX = '{"type":"invokefunction","invocation_id":"';
/** Start of every result, up to the text of its id. */
export const RESULT_PREFIX = '{"type":"invocationresult","invocation_id":"';
/** From the end of the invocation id to the text of the function id. */
export const FUNCTION_KEY = '","function_id":"';
/** Precedes the digits of a timeout. */
export const TIMEOUT_KEY = ',"timeout_ms":';
/** Precedes the text of a `traceparent`. */
export const TRACEPARENT_KEY = ',"traceparent":"';
/** Precedes the text of a `baggage`. */
export const BAGGAGE_KEY = ',"baggage":"';
/** Precedes a payload. */
export const DATA_KEY = ',"data":';
/** Precedes a result value. */
export const RESULT_KEY = ',"result":';

const CLOSE_BRACE = 0x7d;
/** Of each end. Hashing a whole UUID would take a tenth of the time of a call. */
const HASHED_BYTES = 8;
/** Length of a UUID as text. */
export const UUID_BYTES = 36;

/** A call from the closing quote of its id on. The sender may overwrite the bytes before it. */
export interface CallRemainder extends CallLayout {
  /** The same memory, for access by words. */
  readonly view: DataView;
  /** Start of the caller's id in a canonical frame; equal to `idEnd` when the memory has no id. */
  readonly idStart: number;
  /** Start of the remainder. */
  readonly idEnd: number;
}

/** A result from the closing quote of its id on. The sender may overwrite the bytes before it. */
export interface ResultRemainder {
  readonly memory: Uint8Array;
  /** The same memory, for access by words. */
  readonly view: DataView;
  /** Start of the engine's id in a canonical frame; equal to `idEnd` when the memory has no id. */
  readonly idStart: number;
  /** Start of the remainder. */
  readonly idEnd: number;
  /** Start of the value, which ends before the last brace; -1 without a value. */
  readonly dataStart: number;
  /** Offset behind the last brace. */
  readonly end: number;
  /** What is known of the value, if the frame has an outline. */
  readonly payload?: Member | undefined;
}

/** A caller's id of a call, as JSON text without its quotes. */
export interface CallerId {
  readonly view: DataView;
  readonly idStart: number;
  readonly idEnd: number;
  /** See {@linkcode callHashOf}. */
  readonly hash: number;
}

/** The caller's id for a text that is already escaped; its memory is not kept. */
export function callerIdOf(text: string): CallerId {
  const view = viewOf(passingBytesOf(text));
  const idEnd = view.byteLength;
  return { view, idStart: 0, idEnd, hash: callHashOf(view, 0, idEnd) };
}

/** The id under which the caller waits for a result; `undefined` when it does not wait. */
export function callerIdIn({ invocation_id, action }: InvokeFunction): CallerId | undefined {
  return invocation_id === undefined || action ? undefined : callerIdOf(jsonText(invocation_id));
}

/**
 * Hash of a caller's id. Of an id as long as a UUID only the two ends are read, where counters and
 * random digits are; of any other id all bytes, since a counter may be anywhere in it.
 */
export function callHashOf(view: DataView, start: number, end: number): number {
  if (end - start !== UUID_BYTES) return hashOf(view, start, end);
  // Shifted, since two equal ends would cancel out.
  return hashOf(view, start, start + HASHED_BYTES) ^ hashOf(view, end - HASHED_BYTES, end) >>> 1;
}

/** A text as JSON, without the quotes. */
export function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The remainder of a call that was parsed, in canonical key order. */
export function callRemainder(call: InvokeFunction, fields: RawFields): CallRemainder {
  let lead = `","function_id":${JSON.stringify(call.function_id)}`;
  if (call.namespace !== undefined && call.namespace !== DEFAULT_NAMESPACE) {
    lead += `,"namespace":${JSON.stringify(call.namespace)}`;
  }
  if (call.timeout_ms !== undefined) lead += TIMEOUT_KEY + call.timeout_ms;
  if (call.metadata !== undefined) lead += `,"metadata":${fields.field("metadata")}`;
  const traced = lead + traceparentField(call);
  const before = traced + baggageField(call);
  const data = fields.payload ? "" : fields.field("data");
  const text = data === undefined ? `${before}}` : `${before + DATA_KEY + data}}`;
  const memory = fields.payload ? joined(before + DATA_KEY, fields.payload) : passingBytesOf(text);
  // Nearly all texts are ASCII, where a character is a byte. Otherwise the part before the payload
  // is encoded once more, without the payload, which may be large.
  const isAscii = !fields.payload && memory.length === text.length;
  const lengthOf = (part: string): number => isAscii ? part.length : passingBytesOf(part).length;
  return {
    memory,
    view: viewOf(memory),
    idStart: 0,
    idEnd: 0,
    traceStart: lengthOf(lead),
    traceEnd: lengthOf(traced),
    dataStart: data === undefined ? -1 : lengthOf(before + DATA_KEY),
    end: memory.length,
  };
}

/**
 * The remainder of a result that was parsed. A `null` value is omitted; an error keeps its original
 * text.
 */
export function resultRemainder(result: InvocationResult, fields: RawFields): ResultRemainder {
  const trace = traceparentField(result) + baggageField(result);
  const lead = `","function_id":${JSON.stringify(result.function_id)}${trace}`;
  if (result.error !== undefined) {
    return remainderOf(`${lead},"error":${errorText(result, fields)}}`);
  }
  if (fields.payload) {
    const memory = joined(lead + RESULT_KEY, fields.payload);
    const dataStart = bytesOf(lead + RESULT_KEY).length;
    return { memory, view: viewOf(memory), idStart: 0, idEnd: 0, dataStart, end: memory.length };
  }
  return result.result === undefined
    ? remainderOf(`${lead}}`)
    : remainderOf(lead + RESULT_KEY, fields.field("result"));
}

/** The remainder of a result that the engine produced itself. */
export function valueRemainder(function_id: string, result: Json): ResultRemainder {
  const lead = `","function_id":${JSON.stringify(function_id)}${RESULT_KEY}`;
  return remainderOf(lead, JSON.stringify(result));
}

/** The remainder of a result from its text; without `value` it has no value. */
export function remainderOf(lead: string, value?: string): ResultRemainder {
  const memory = passingBytesOf(value === undefined ? lead : `${lead + value}}`);
  const dataStart = value === undefined ? -1 : passingBytesOf(lead).length;
  return { memory, view: viewOf(memory), idStart: 0, idEnd: 0, dataStart, end: memory.length };
}

/** A text, a payload that was not parsed and the brace behind it. */
function joined(lead: string, { memory, start, end }: ByteRange): Uint8Array {
  const before = bytesOf(lead);
  const joined = new Uint8Array(before.length + end - start + 1);
  joined.set(before);
  joined.set(memory.subarray(start, end), before.length);
  joined[joined.length - 1] = CLOSE_BRACE;
  return joined;
}

function traceparentField({ traceparent }: InvocationResult | InvokeFunction): string {
  return traceparent === undefined ? "" : `,"traceparent":${JSON.stringify(traceparent)}`;
}

function baggageField({ baggage }: InvocationResult | InvokeFunction): string {
  return baggage === undefined ? "" : `,"baggage":${JSON.stringify(baggage)}`;
}

/** The error as the callee wrote it; re-encoded if the codec had to normalise it. */
function errorText({ error }: InvocationResult, fields: RawFields): string {
  const written = fields.field("error")!;
  const raw = JSON.parse(written);
  const kept = error !== undefined && Object.keys(error).every((key) => raw[key] !== undefined) &&
    raw.code === error.code && raw.message === error.message &&
    ["stacktrace", "details", "retryable"].every((key) =>
      raw[key] === undefined || raw[key] === null || Object.hasOwn(error, key)
    );
  return kept ? written : JSON.stringify(error);
}

/** Room for a typical prefix: the common start, two ids and a `traceparent`. */
const BYTES_FIRST = 512;
/** A larger buffer is released at the next {@linkcode Prefix.restart}. */
const BYTES_KEPT = 64 * 1024;

/**
 * Builds the beginning of a frame in a reused buffer. The content is valid until the next
 * {@linkcode Prefix.restart}.
 */
export class Prefix {
  /** The prefix is the first {@linkcode Prefix.length} bytes. */
  memory: Uint8Array = new Uint8Array(BYTES_FIRST);
  length = 0;
  readonly #common: number;

  /** `common`: ASCII text with which every prefix starts. */
  constructor(common: string) {
    this.add(bytesOf(common), 0, common.length);
    this.#common = this.length;
  }

  /** Starts a new prefix with the common text. */
  restart(): void {
    if (this.memory.length > BYTES_KEPT) this.#resize(BYTES_FIRST, this.#common);
    this.length = this.#common;
  }

  /** Appends the bytes of `memory` from `start` to `end`. */
  add(memory: Uint8Array, start: number, end: number): void {
    const needed = this.length + end - start;
    if (needed > this.memory.length) this.#resize(needed * 2, this.length);
    const into = this.memory;
    let to = this.length;
    // A loop: for parts this short, `TypedArray.set` is slower.
    for (let at = start; at < end; at++) into[to++] = memory[at]!;
    this.length = to;
  }

  #resize(bytes: number, kept: number): void {
    const { memory } = this;
    this.memory = new Uint8Array(bytes);
    this.memory.set(memory.subarray(0, kept));
  }
}
