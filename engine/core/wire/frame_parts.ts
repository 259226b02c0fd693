/**
 * Calls and results from the closing quote of their id on, and the making of such tails.
 *
 * Whoever passes a message on writes a head of its own before the tail. A message that had to be
 * parsed gets the tail that its canonical form would have had, with its payload as it was written.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type InvocationResult,
  type InvokeFunction,
  type Json,
} from "../../../sdk/typescript/wire/protocol.ts";
import type { CallPlaces } from "../../ports/call_observer.ts";
import { bytesOf, hashOf, viewOf } from "./bytes.ts";
import { fieldText } from "./json_scan.ts";

/** How every call starts, up to the text of its id. */
export const CALL_HEAD = '{"type":"invokefunction","invocation_id":"';
/** How every result starts, up to the text of its id. */
export const RESULT_HEAD = '{"type":"invocationresult","invocation_id":"';
/** What stands between an id and the id of the function. */
export const FUNCTION_KEY = '","function_id":"';
/** What stands before the digits of a time-out. */
export const TIMEOUT_KEY = ',"timeout_ms":';
/** What stands before the text of a `traceparent`. */
export const TRACEPARENT_KEY = ',"traceparent":"';
/** What stands before the text of a `baggage`. */
export const BAGGAGE_KEY = ',"baggage":"';
/** What stands before a payload. */
export const DATA_KEY = ',"data":';
/** What stands before a result. */
export const RESULT_KEY = ',"result":';

/**
 * A call from the closing quote of its id on. Whoever sends it may overwrite what lies before.
 */
export interface CallTail extends CallPlaces {
  /** The memory, to be read in words. */
  readonly view: DataView;
  /** The caller's id in a frame of canonical form; equal to the end where it is not there. */
  readonly idStart: number;
  /** The tail starts there. */
  readonly idEnd: number;
}

/**
 * A result from the closing quote of its id on. Whoever sends it may overwrite what lies before.
 */
export interface ResultTail {
  readonly memory: Uint8Array;
  /** The same, to be read in words. */
  readonly view: DataView;
  /** The engine's id in a frame of canonical form; equal to the end where it is not there. */
  readonly idStart: number;
  /** The tail starts there. */
  readonly idEnd: number;
  /** The value, which ends before the brace; -1: there is none. */
  readonly dataStart: number;
  /** Behind the brace. */
  readonly end: number;
}

/** What stands between the quotes when a text is written as JSON. */
export function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The tail of a call that was parsed from `text`, in canonical order. */
export function callTail(call: InvokeFunction, text: string): CallTail {
  let lead = `","function_id":${JSON.stringify(call.function_id)}`;
  if (call.namespace !== undefined && call.namespace !== DEFAULT_NAMESPACE) {
    lead += `,"namespace":${JSON.stringify(call.namespace)}`;
  }
  if (call.timeout_ms !== undefined) lead += TIMEOUT_KEY + call.timeout_ms;
  if (call.metadata !== undefined) lead += `,"metadata":${fieldText(text, "metadata")}`;
  const traced = lead + traceparentField(call);
  const before = traced + baggageField(call);
  const data = fieldText(text, "data");
  const memory = bytesOf(data === undefined ? `${before}}` : `${before + DATA_KEY + data}}`);
  return {
    memory,
    view: viewOf(memory),
    idStart: 0,
    idEnd: 0,
    traceStart: bytesOf(lead).length,
    traceEnd: bytesOf(traced).length,
    // Of the parts before: a payload may be large.
    dataStart: data === undefined ? -1 : bytesOf(before + DATA_KEY).length,
    end: memory.length,
  };
}

/** The tail of a result that was parsed. A `null` is left out, an error goes on as it was. */
export function resultTail(result: InvocationResult, text: string): ResultTail {
  const trace = traceparentField(result) + baggageField(result);
  const lead = `","function_id":${JSON.stringify(result.function_id)}${trace}`;
  if (result.error !== undefined) return tailOf(`${lead},"error":${errorText(result, text)}}`);
  return result.result === undefined
    ? tailOf(`${lead}}`)
    : tailOf(lead + RESULT_KEY, fieldText(text, "result"));
}

/** The tail of a result that the engine itself came to. */
export function valueTail(function_id: string, result: Json): ResultTail {
  const lead = `","function_id":${JSON.stringify(function_id)}${RESULT_KEY}`;
  return tailOf(lead, JSON.stringify(result));
}

/** The tail of a result from its text; `value` left out: it has no value. */
export function tailOf(lead: string, value?: string): ResultTail {
  const memory = bytesOf(value === undefined ? lead : `${lead + value}}`);
  const dataStart = value === undefined ? -1 : bytesOf(lead).length;
  return { memory, view: viewOf(memory), idStart: 0, idEnd: 0, dataStart, end: memory.length };
}

function traceparentField({ traceparent }: InvocationResult | InvokeFunction): string {
  return traceparent === undefined ? "" : `,"traceparent":${JSON.stringify(traceparent)}`;
}

function baggageField({ baggage }: InvocationResult | InvokeFunction): string {
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

/** Room for the usual head: what all have in common, two ids, a `traceparent`. */
const BYTES_FIRST = 512;
/** Larger memory is not kept for the next head. */
const BYTES_KEPT = 64 * 1024;

/** A head. What is in it is valid until the next {@linkcode Head.restart}. */
export class Head {
  /** The head is its first {@linkcode Head.length} bytes. */
  memory: Uint8Array = new Uint8Array(BYTES_FIRST);
  length = 0;
  readonly #common: number;

  /** Makes one that always begins with this text of ASCII. */
  constructor(common: string) {
    this.add(bytesOf(common), 0, common.length);
    this.#common = this.length;
  }

  /** Begins anew. */
  restart(): void {
    if (this.memory.length > BYTES_KEPT) this.#resize(BYTES_FIRST, this.#common);
    this.length = this.#common;
  }

  /** Adds the bytes of `memory` from `start` to `end`. */
  add(memory: Uint8Array, start: number, end: number): void {
    const needed = this.length + end - start;
    if (needed > this.memory.length) this.#resize(needed * 2, this.length);
    const into = this.memory;
    let to = this.length;
    // A loop: such parts are so short that asking for a copy costs more than copying.
    for (let at = start; at < end; at++) into[to++] = memory[at]!;
    this.length = to;
  }

  #resize(bytes: number, kept: number): void {
    const { memory } = this;
    this.memory = new Uint8Array(bytes);
    this.memory.set(memory.subarray(0, kept));
  }
}

/** A caller's id of a call, as it stands between quotes in JSON. */
export interface CallerId {
  readonly view: DataView;
  readonly idStart: number;
  readonly idEnd: number;
  /** See {@linkcode callHashOf}. */
  readonly hash: number;
}

/** The id that a text says. */
export function callerIdOf(text: string): CallerId {
  const view = viewOf(bytesOf(text));
  const idEnd = view.byteLength;
  return { view, idStart: 0, idEnd, hash: callHashOf(view, 0, idEnd) };
}

/** The id under which a caller waits for a call; `undefined`: it does not wait. */
export function callerIdIn({ invocation_id, action }: InvokeFunction): CallerId | undefined {
  return invocation_id === undefined || action ? undefined : callerIdOf(jsonText(invocation_id));
}

/**
 * By which a caller's id is found: of one as long as a UUID its two ends, where counted and random
 * ones differ; of any other all of it, since nobody knows where a number stands in it.
 */
export function callHashOf(view: DataView, start: number, end: number): number {
  if (end - start !== UUID_BYTES) return hashOf(view, start, end);
  // Shifted, since two ends that are alike would come to nothing.
  return hashOf(view, start, start + HASHED_BYTES) ^ hashOf(view, end - HASHED_BYTES, end) >>> 1;
}

/** Of each end: all of an id would take a tenth of the time that a call takes. */
const HASHED_BYTES = 8;
/** Bytes of a UUID as text. */
export const UUID_BYTES = 36;
