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
import type { Candidate } from "../ports/telemetry.ts";
import { costOf, kept } from "./kept_text.ts";

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
    const copy = kept(text, max);
    this.bytes += costOf(copy);
    return copy;
  }
}
