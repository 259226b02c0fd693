/**
 * What only some recorded calls have: texts, and who could have run it.
 *
 * Every text is a copy of a bounded length, so that no frame outlives its turn.
 *
 * @module
 */
import {
  TRACE_BAGGAGE_CHARS_MAX,
  TRACE_ERROR_CHARS_MAX,
  TRACE_NAME_CHARS_MAX,
} from "../../sdk/typescript/wire/limits.ts";
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type { CallEndpoint, Candidate } from "../ports/telemetry.ts";

const CANDIDATE_BYTES = 256;

/** Details of one span. Texts are as they stood in the frame. */
export class SpanDetail {
  request: string | null = null;
  response: string | null = null;
  /** What stood between the quotes. */
  baggage: string | null = null;
  candidates: readonly Candidate[] | null = null;
  error_code: string | null = null;
  error_message: string | null = null;
  ended_by: string | null = null;
  /** The caller's id, where it is no UUID, as it stood between the quotes. */
  callerId: string | null = null;
  /** What it costs to keep it. */
  bytes = 128;
  /** Of those, bytes that count as a running call's. */
  charged = 0;

  /** Keeps the payload, which is short enough. */
  setRequest(text: string): void {
    this.request = this.#keep(text, Infinity);
  }

  /** Keeps the result, which is short enough. */
  setResponse(text: string): void {
    this.response = this.#keep(text, Infinity);
  }

  /** Keeps baggage, unless it is too long to mean anything when cut. */
  setBaggage(text: string): void {
    if (text.length <= TRACE_BAGGAGE_CHARS_MAX) this.baggage = this.#keep(text, Infinity);
  }

  /** Keeps the first of an id. */
  setCallerId(text: string): void {
    this.callerId ??= this.#keep(text, TRACE_NAME_CHARS_MAX);
  }

  /** Keeps what it ended with. */
  setError({ code, message }: ErrorBody, endedBy: string | null): void {
    this.error_code = this.#keep(code, TRACE_NAME_CHARS_MAX);
    this.error_message = this.#keep(message, TRACE_ERROR_CHARS_MAX);
    this.ended_by = endedBy;
  }

  /** Keeps who could have run it. */
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

/** A worker that calls or runs, as spans refer to it. */
export class SpanEndpoint implements CallEndpoint {
  readonly worker_id: string;
  /** Empty: the first part of the function's id stands for it. */
  readonly name: string;
  /** Number of the page that last came to hold it, and its place there. */
  page = -1;
  place = 0;

  /** Makes one. */
  constructor(worker_id: string, name: string) {
    this.worker_id = worker_id;
    this.name = name;
  }

  /** What it costs to keep it. */
  get bytes(): number {
    return 64 + textBytes(this.worker_id) + textBytes(this.name);
  }
}

/** Around the characters of a text in memory. */
const TEXT_BYTES = 32;
// deno-lint-ignore no-control-regex
const WIDE = /[^\x00-\xff]/;

/** A copy, of at most `max` characters: a mere view keeps alive what it was cut from. */
export function copyText(text: string, max: number = Infinity): string {
  const whole = text.length > max ? ` ${text.slice(0, max - 1)}…` : ` ${text}`;
  return whole.slice(1); // Which writes the pieces into one text first.
}

/** Bytes of a text in memory, at most. */
export function textBytes(text: string): number {
  return TEXT_BYTES + (WIDE.test(text) ? 2 : 1) * (text.length + 1);
}
