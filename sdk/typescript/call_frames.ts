/**
 * The frames of calls and results in their usual form, written and parsed as text, and the ids of
 * calls: an object per frame would cost more than the payload.
 *
 * Receivers must not rely on the order of keys (PROTOCOL 1.8): {@linkcode readResult} accepts
 * exactly the form in which our engine and SDKs write results and returns `undefined` for any
 * other, which the codec then decodes. Both have the same outcome.
 *
 * @module
 */
import { toJson } from "./json_text.ts";
import type { CallRequest } from "./options.ts";
import { newId } from "./platform.ts";
import type { InvokeFunction, Json } from "./wire/protocol.ts";

/** The parts of a call's frame that are known when the call is made. */
export interface CallParts {
  /** Id of the function, as JSON text. */
  readonly function_id: string;
  /** `namespace` and `action`, each after a comma. */
  readonly target: string;
  /** `metadata`, `data` and the end of the frame. */
  readonly tail: string;
}

/** The fields of a call that are known when its frame is sent. */
export interface CallDetails {
  /** Undefined for a call without a result. */
  readonly invocation_id: string | undefined;
  readonly timeout_ms: number | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

/**
 * Encodes what user code passed. Done when the call is made, so that later changes to the objects
 * have no effect.
 *
 * @throws {EngineError} `serialization_error` for what JSON cannot represent.
 */
export function writeParts(request: CallRequest<unknown>): CallParts {
  const { function_id, namespace, action, payload, metadata } = request;
  let target = field("namespace", "The namespace", namespace);
  if (action) target += field("action", "The action", action);
  const more = field("metadata", `The metadata for ${function_id}`, metadata);
  const data = field("data", `The payload for ${function_id}`, payload);
  return { function_id: JSON.stringify(function_id), target, tail: `${more}${data}}` };
}

/** The frame of a call in canonical order. The invocation id needs no escapes. */
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

/** A field after a comma; empty for `undefined`. */
function field(name: string, what: string, value: unknown): string {
  const text = toJson(what, value);
  return text === undefined ? "" : `,"${name}":${text}`;
}

/** The frame of a result; `result` is its JSON text, `undefined` if there is none. */
export function writeResult(call: InvokeFunction, result: string | undefined): string {
  const { invocation_id = "", function_id, traceparent, baggage } = call;
  let frame = `{"type":"invocationresult","invocation_id":${JSON.stringify(invocation_id)},` +
    `"function_id":${JSON.stringify(function_id)}`;
  if (traceparent !== undefined) frame += `,"traceparent":${JSON.stringify(traceparent)}`;
  if (baggage !== undefined) frame += `,"baggage":${JSON.stringify(baggage)}`;
  return result === undefined ? `${frame}}` : `${frame},"result":${result}}`;
}

/** A parsed result; `value` is `undefined` if the function returned nothing. */
export interface ReadResult {
  readonly value: Json | undefined;
}

const TRACEPARENT = ',"traceparent":"';
const RESULT = ',"result":';
/** Version, trace, span, flags and a quote; the codec decodes longer ones. */
const TRACE_TEXT = /[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"/y;

/** The result in a frame that has been parsed up to `at`, the end of the function's id. */
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
    return undefined; // More fields, or invalid JSON: left to the codec.
  }
}

/** Number of hexadecimal digits at the end of an id that count the calls. */
const COUNT_CHARS = 12;

/**
 * The invocation ids of one worker: UUIDs with a random start and a counter at the end.
 *
 * A random id per call would cost more than the rest of the call; and the counter finds the call
 * without hashing the id.
 */
export class CallIds {
  /** The start of all ids of this worker. */
  readonly start: string = newId().slice(0, -COUNT_CHARS);

  /** The id of a call; `count` starts at 1. */
  text(count: number): string {
    return this.start + count.toString(16).padStart(COUNT_CHARS, "0");
  }

  /** The counter in an id; `undefined` for an id of another worker. */
  count(id: string): number | undefined {
    if (id.length !== this.start.length + COUNT_CHARS || !id.startsWith(this.start)) {
      return undefined;
    }
    return countAt(id, this.start.length);
  }
}

/** The counter whose digits start at `at`; `undefined` if they are not hexadecimal digits. */
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

/** The end of the counter whose digits start at `at`. */
export function countEnd(at: number): number {
  return at + COUNT_CHARS;
}
