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
import { bytesOf } from "./kept_text.ts";

/** A worker that calls or runs, as spans refer to it. */
export class Party implements CallParty {
  readonly worker_id: string;
  /** Empty: the first part of the function's id stands for it. */
  readonly name: string;
  /** Number of the page that it was last charged to. */
  page = -1;

  /** Makes one. */
  constructor(worker_id: string, name: string) {
    this.worker_id = worker_id;
    this.name = name;
  }

  /** What it costs to keep it. */
  get bytes(): number {
    return 64 + bytesOf(this.worker_id) + bytesOf(this.name);
  }
}

/** A function, as spans refer to it. */
export class Subject implements ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
  readonly meter: CountingMeter;
  /** See {@linkcode Party.page}. */
  page = -1;
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
    return 64 + bytesOf(this.function_id) + bytesOf(this.namespace);
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

/** Words of the ids of a span: its trace, itself, its parent. */
export const SPAN_WORDS = 8;

/** One call. Times are those of the clock's now(); `NaN`: not yet. */
export class OpenSpan {
  /** Says whose it is, together with the place it has; -1: nobody's. */
  uses = -1;
  slot = -1;
  isSampled = false;
  isDetailed = false;
  seq = 0;
  readonly ids: Uint32Array = new Uint32Array(SPAN_WORDS);
  /** To be sent along; empty when it was sent. */
  traceparent = "";
  subject: Subject | undefined;
  caller: Party | undefined;
  callee: Party | undefined;
  callerId = "";
  since = NaN;
  sent = NaN;
  ended = NaN;
  timeout_ms = 0;
  requestChars = -1;
  responseChars = -1;
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
    this.traceparent = "";
    this.subject = undefined;
    this.caller = undefined;
    this.callee = undefined;
    this.callerId = "";
    this.sent = NaN;
    this.ended = NaN;
    this.responseChars = -1;
    this.detail = undefined;
    this.charged = 0;
  }
}
