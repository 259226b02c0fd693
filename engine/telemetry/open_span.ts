/**
 * A call while it is being recorded, and what a recorded call refers to.
 *
 * The objects are used again for other calls; what must outlive a call is copied from them into a
 * page, see `span_page.ts`.
 *
 * @module
 */
import type { ObservedFunction } from "../ports/call_observer.ts";
import type { CallParty, Candidate } from "../ports/telemetry.ts";
import type { CountingMeter } from "./function_meter.ts";
import { costOf } from "./kept_text.ts";

/** A worker that calls or runs, as spans refer to it. */
export class Party implements CallParty {
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
    return 64 + costOf(this.worker_id) + costOf(this.name);
  }
}

/** A function, as spans refer to it. */
export class Subject implements ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
  readonly meter: CountingMeter;
  /** See {@linkcode Party.page}. */
  page = -1;
  place = 0;
  /** Part of the traces to record that begin with it, as of this version of the settings. */
  rate = 0;
  rateVersion = -1;

  /** Makes one. */
  constructor(namespace: string, function_id: string, meter: CountingMeter) {
    this.namespace = namespace;
    this.function_id = function_id;
    this.meter = meter;
  }

  /** What it costs to keep it. */
  get bytes(): number {
    return 64 + costOf(this.function_id) + costOf(this.namespace);
  }
}

/** What only some spans have. */
export interface SpanDetail {
  request: string | null;
  response: string | null;
  baggage: string | null;
  candidates: readonly Candidate[] | null;
  error_code: string | null;
  error_message: string | null;
  ended_by: string | null;
  /** The caller's id, where it is no UUID. */
  caller_invocation_id: string | null;
  /** What it costs to keep it. */
  bytes: number;
}

/** Places of the numbers of a span that are whole; a row has so many. */
export const WORD = {
  /** Its trace, itself and its parent: see `traceparent.ts`. */
  trace: 0,
  span: 4,
  parent: 6,
  /** The caller's id of it, where that is a UUID; zeros where not. */
  callerId: 8,
  /** What names the call at the engine; {@linkcode NO_NUMBER}: it never began. */
  slot: 12,
  /** Characters of payload and result; {@linkcode NO_NUMBER}: none. */
  requestChars: 13,
  responseChars: 14,
  row: 15,
} as const;

/** Places of the other numbers. Times are those of the clock's now(); `NaN`: not yet. */
export const TIME = {
  seq: 0,
  since: 1,
  sent: 2,
  ended: 3,
  timeout_ms: 4,
  uses: 5,
  row: 6,
} as const;

/** Stands for a number that there is not. */
export const NO_NUMBER = 0xffffffff;

/** One call. */
export class OpenSpan {
  /** Says whose it is, together with the place it has; -1: nobody's. */
  uses = -1;
  isSampled = false;
  isDetailed = false;
  readonly words: Uint32Array = new Uint32Array(WORD.row);
  readonly times: Float64Array = new Float64Array(TIME.row);
  subject: Subject | undefined;
  caller: Party | undefined;
  callee: Party | undefined;
  detail: SpanDetail | undefined;
  /** Bytes of its detail that count while it runs. */
  charged = 0;

  /** What only some spans have; made with the first of it. */
  get more(): SpanDetail {
    this.detail ??= {
      request: null,
      response: null,
      baggage: null,
      candidates: null,
      error_code: null,
      error_message: null,
      ended_by: null,
      caller_invocation_id: null,
      bytes: 128,
    };
    return this.detail;
  }

  /** Serves nobody from now on, and keeps nothing alive. */
  clear(): void {
    this.uses = -1;
    this.isSampled = false;
    this.isDetailed = false;
    this.subject = undefined;
    this.caller = undefined;
    this.callee = undefined;
    this.detail = undefined;
    this.charged = 0;
  }
}
