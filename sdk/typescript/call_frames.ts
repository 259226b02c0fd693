/**
 * The two frames of a call as they nearly always look: written and read without going through an
 * object, since that took longer than the payload.
 *
 * Key order is a hint only (PROTOCOL 1.8): {@linkcode readResult} takes exactly the form in which
 * our engine and SDKs write results, and says `undefined` to all else, which the codec then reads.
 * For what it takes, both come to the same.
 *
 * @module
 */
import { toJson } from "./arguments.ts";
import type { CallRequest } from "./options.ts";
import { newId } from "./platform.ts";
import type { InvokeFunction, Json } from "./wire/protocol.ts";

/** The parts of a call's frame that are known when the call is made. */
export interface CallParts {
  /** The function's id, as JSON text. */
  readonly function_id: string;
  /** `namespace` and `action`, each behind a comma. */
  readonly target: string;
  /** `metadata` and `data`, and the end of the frame. */
  readonly tail: string;
}

/** What is known of a call only when its frame leaves. */
export interface CallDetails {
  /** Left out: nobody waits for a result. */
  readonly invocation_id: string | undefined;
  readonly timeout_ms: number | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

/**
 * Writes what user code handed over, at once: what it does to its objects later is its own affair.
 *
 * @throws {EngineError} `serialization_error` for what JSON cannot hold.
 */
export function writeParts(request: CallRequest<unknown>): CallParts {
  const { function_id, namespace, action, payload, metadata } = request;
  let target = field("namespace", "The namespace", namespace);
  if (action) target += field("action", "The action", action);
  const more = field("metadata", `The metadata for ${function_id}`, metadata);
  const data = field("data", `The payload for ${function_id}`, payload);
  return { function_id: JSON.stringify(function_id), target, tail: `${more}${data}}` };
}

/** The whole frame, in canonical order; the id is one of our own, in need of no escapes. */
export function writeCall(parts: CallParts, details: CallDetails): string {
  const { invocation_id, timeout_ms, traceparent, baggage } = details;
  let head = '{"type":"invokefunction",';
  if (invocation_id !== undefined) head += `"invocation_id":"${invocation_id}",`;
  head += `"function_id":${parts.function_id}${parts.target}`;
  if (timeout_ms !== undefined) head += `,"timeout_ms":${timeout_ms}`;
  if (traceparent !== undefined) head += field("traceparent", "The traceparent", traceparent);
  if (baggage !== undefined) head += field("baggage", "The baggage", baggage);
  return head + parts.tail;
}

/** The frame that ends a call well; `result` is its JSON text, `undefined` for nothing. */
export function writeResult(call: InvokeFunction, result: string | undefined): string {
  const { invocation_id = "", function_id, traceparent, baggage } = call;
  let frame = `{"type":"invocationresult","invocation_id":${JSON.stringify(invocation_id)},` +
    `"function_id":${JSON.stringify(function_id)}`;
  if (traceparent !== undefined) frame += `,"traceparent":${JSON.stringify(traceparent)}`;
  if (baggage !== undefined) frame += `,"baggage":${JSON.stringify(baggage)}`;
  return result === undefined ? `${frame}}` : `${frame},"result":${result}}`;
}

/** A value that was read; `undefined` in it is a call that returned nothing. */
export interface ReadResult {
  readonly value: Json | undefined;
}

const TRACEPARENT = ',"traceparent":"';
const RESULT = ',"result":';
/** Version, trace, span and flags with their quote; anything longer is the codec's. */
const TRACE_TEXT = /[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"/y;

/** The result in a frame of which all up to `at`, the end of the function's id, has been read. */
export function readResult(frame: string, at: number): ReadResult | undefined {
  if (frame.charCodeAt(frame.length - 1) !== 0x7d) return undefined;
  if (frame.startsWith(TRACEPARENT, at)) {
    TRACE_TEXT.lastIndex = at + TRACEPARENT.length;
    if (!TRACE_TEXT.test(frame)) return undefined;
    at = TRACE_TEXT.lastIndex;
  }
  if (at === frame.length - 1) return { value: undefined };
  if (!frame.startsWith(RESULT, at)) return undefined;
  try {
    const value: Json = JSON.parse(frame.slice(at + RESULT.length, -1));
    return { value: value ?? undefined };
  } catch {
    return undefined; // More than a result is there, or less than JSON: the codec tells.
  }
}

/** A field behind a comma; nothing for `undefined`. */
function field(name: string, what: string, value: unknown): string {
  const text = toJson(what, value);
  return text === undefined ? "" : `,"${name}":${text}`;
}

/** Length of the part of a UUID that counts. */
const COUNT_CHARS = 12;

/** Makes ids in the shape of a UUID and reads them again. */
export class CallIds {
  /** What all ids of this worker start with. */
  readonly start: string = newId().slice(0, -COUNT_CHARS);

  /** The id of a call, by its count from 1 on. */
  text(count: number): string {
    return this.start + count.toString(16).padStart(COUNT_CHARS, "0");
  }

  /** The count in an id; `undefined` for an id that this worker did not make. */
  count(id: string): number | undefined {
    if (id.length !== this.start.length + COUNT_CHARS || !id.startsWith(this.start)) {
      return undefined;
    }
    return countAt(id, this.start.length);
  }
}

/** The count whose digits stand at `at`; `undefined` when something else does. */
export function countAt(text: string, at: number): number | undefined {
  let count = 0;
  for (let i = at; i < at + COUNT_CHARS; i++) {
    const code = text.charCodeAt(i);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && !(code >= 0x61 && code <= 0x66)) return undefined;
    count = count * 16 + code - (isDigit ? 0x30 : 0x57);
  }
  return count;
}

/** Where the digits that start at `at` end. */
export function countEnd(at: number): number {
  return at + COUNT_CHARS;
}
