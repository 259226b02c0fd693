/**
 * What a span refers to beyond numbers: texts, candidates and endpoints.
 *
 * Every text is a copy of limited length, so that no frame stays in memory.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type { CallEndpoint, Candidate } from "../ports/telemetry.ts";

/** Longest baggage that is kept, in characters. */
export const TRACE_BAGGAGE_CHARS_MAX = 8_192;
/** Longest error text that is kept, in characters. */
export const TRACE_ERROR_CHARS_MAX = 2_000;
/** Longest stack trace that is kept, in characters; of a longer one, both ends. */
export const TRACE_STACK_CHARS_MAX = 8_192;
/** Longest name or id that is kept, in characters. */
export const TRACE_NAME_CHARS_MAX = 1_024;

const CANDIDATE_BYTES = 256;

/** Overhead of a string. */
const TEXT_BYTES = 32;
// deno-lint-ignore no-control-regex
const WIDE = /[^\x00-\xff]/;

/** Details of one span. Texts are as in the frame. */
export class SpanDetail {
  request: string | null = null;
  response: string | null = null;
  /** JSON text without quotes. */
  baggage: string | null = null;
  candidates: readonly Candidate[] | null = null;
  error_code: string | null = null;
  error_message: string | null = null;
  stacktrace: string | null = null;
  ended_by: string | null = null;
  /** The caller's id if it is not a UUID, as JSON text without quotes. */
  callerId: string | null = null;
  /** Memory of the details. */
  bytes = 128;
  /** Part of it that was counted for a running call. */
  charged = 0;

  /** Stores the payload, which is within the limit. */
  setRequest(text: string): void {
    this.request = this.#keep(text, Infinity);
  }

  /** Stores the result, which is within the limit. */
  setResponse(text: string): void {
    this.response = this.#keep(text, Infinity);
  }

  /** Stores the baggage, unless it is too long: truncated baggage would be misleading. */
  setBaggage(text: string): void {
    if (text.length <= TRACE_BAGGAGE_CHARS_MAX) this.baggage = this.#keep(text, Infinity);
  }

  /** Stores an id, truncated if necessary. */
  setCallerId(text: string): void {
    this.callerId ??= this.#keep(text, TRACE_NAME_CHARS_MAX);
  }

  /** Stores the error, and what ended the call early. */
  setError({ code, message, stacktrace }: ErrorBody, endedBy: string | null): void {
    this.error_code = this.#keep(code, TRACE_NAME_CHARS_MAX);
    this.error_message = this.#keep(message, TRACE_ERROR_CHARS_MAX);
    if (stacktrace !== undefined) this.stacktrace = this.#keep(bothEnds(stacktrace), Infinity);
    this.ended_by = endedBy;
  }

  /** Stores the candidates. */
  setCandidates(candidates: readonly Candidate[]): void {
    this.candidates = candidates;
    this.bytes += candidates.length * CANDIDATE_BYTES;
  }

  #keep(text: string, max: number): string {
    const copy = copyText(text, max);
    this.bytes += textBytes(copy);
    return copy;
  }
}

/** What failed is at the end of a stack in Python, and at the start in JavaScript. */
function bothEnds(text: string): string {
  if (text.length <= TRACE_STACK_CHARS_MAX) return text;
  const half = TRACE_STACK_CHARS_MAX / 2 - 1;
  return `${text.slice(0, half)}\n…${text.slice(-half)}`;
}

/** The name of the built-in worker that makes the calls of the console's pages. */
const CONSOLE = "engine-console";

/** A caller or callee, shared by its spans. */
export class SpanEndpoint implements CallEndpoint {
  readonly worker_id: string;
  /** Empty until it is known; readers then show the group of the function id. */
  readonly name: string;
  /** Whether it is the console, which marks what its pages ask by themselves as not sampled. */
  readonly isConsole: boolean;
  /** The page that last referred to it, and its index there. */
  page = -1;
  place = 0;

  /** `isBuiltin`: it is a part of the engine, which nothing else can pretend to be. */
  constructor(worker_id: string, name: string, isBuiltin = false) {
    this.worker_id = worker_id;
    this.name = name;
    this.isConsole = isBuiltin && name === CONSOLE;
  }

  /** Memory of this object. */
  get bytes(): number {
    return 64 + textBytes(this.worker_id) + textBytes(this.name);
  }
}

/** A copy of at most `max` characters. A slice would keep the whole frame in memory. */
export function copyText(text: string, max: number = Infinity): string {
  const whole = text.length > max ? ` ${text.slice(0, max - 1)}…` : ` ${text}`;
  return whole.slice(1); // slice() flattens the concatenation into a string of its own.
}

/** Upper bound of a string's memory. */
export function textBytes(text: string): number {
  return TEXT_BYTES + (WIDE.test(text) ? 2 : 1) * (text.length + 1);
}
