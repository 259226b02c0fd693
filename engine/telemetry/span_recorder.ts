/**
 * Makes spans of calls: ids when one begins, details while there is a budget for them, and a line
 * in the ring when it ends.
 *
 * Running calls are kept apart from the ring, by the slot of the call, so that a flood of short
 * calls cannot push out a long one. Payloads and candidates are kept for so many calls a second
 * and no more; whatever is kept is a copy, so that no frame outlives its turn.
 *
 * @module
 */
import {
  TRACE_BAGGAGE_CHARS_MAX,
  TRACE_DETAILS_PER_SECOND,
  TRACE_ERROR_CHARS_MAX,
  TRACE_NAME_CHARS_MAX,
} from "../../sdk/typescript/limits.ts";
import type { ErrorBody } from "../../sdk/typescript/protocol.ts";
import { BAGGAGE_KEY, DATA_KEY, TRACEPARENT_KEY } from "../core/envelope.ts";
import type { CallPlaces, ObservedCall, ShortCall } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Candidate, TraceSettings } from "../ports/telemetry.ts";
import type { IdSource } from "./id_source.ts";
import { bytesOf, kept } from "./kept_text.ts";
import { OpenSpan, type Party, type SpanDetail, type Subject } from "./open_span.ts";
import { rateOf } from "./sampling.ts";
import { SpanPage } from "./span_page.ts";
import { SpanRing } from "./span_ring.ts";
import {
  PARENT_WORDS,
  readTraceparent,
  SPAN_ID_AT,
  TRACE_ID_AT,
  TRACE_WORDS,
} from "./traceparent.ts";

/** Part of the memory that details of running calls may take; the ring has the rest. */
const OPEN_PART = 1 / 8;
const SECOND_MS = 1_000;
/** The machine's two clocks are read one after the other, and one of them in whole milliseconds. */
const CLOCK_TOLERANCE_MS = 2;
const CHANCES = 2 ** 32;
const CANDIDATE_BYTES = 256;

/** Records calls. */
export class SpanRecorder {
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** By slot of the call. */
  readonly #open: (OpenSpan | undefined)[] = [];
  /** For calls that end as soon as they begin. */
  readonly #short = new OpenSpan();
  #settings: TraceSettings;
  /** Grows with each change of the settings. */
  #version = 0;
  #ring: SpanRing;
  #seq = 0;
  #openBytes = 0;
  #openBytesMax = 0;
  /** See {@linkcode SpanRing.write}. */
  #epoch: number;
  #secondFrom = -Infinity;
  #detailsLeft = 0;

  /** Makes one that records nothing yet. */
  constructor(clock: Clock, ids: IdSource, settings: TraceSettings) {
    this.#clock = clock;
    this.#ids = ids;
    this.#settings = settings;
    this.#ring = new SpanRing(0);
    this.#epoch = clock.wall() - clock.now();
    this.configure(settings);
  }

  /** What is recorded, and how. */
  get settings(): TraceSettings {
    return this.#settings;
  }

  /** The calls that ended. */
  get ring(): SpanRing {
    return this.#ring;
  }

  /** The calls that run now, as a page. */
  running(): SpanPage {
    const spans = this.#open.filter((span) => span?.isSampled);
    const page = new SpanPage(spans.length);
    for (const span of spans) page.write(span!, this.#epoch);
    return page;
  }

  /** What holds for calls that begin from now on. */
  configure(settings: TraceSettings): void {
    const bytes = settings.memory_bytes;
    if (bytes !== this.#settings.memory_bytes || this.#version === 0) {
      const ring = new SpanRing(
        bytes * (1 - OPEN_PART),
        this.#ring.recorded,
        this.#ring.overwritten,
      );
      ring.adopt(this.#ring);
      this.#ring = ring;
      this.#openBytesMax = bytes * OPEN_PART;
    }
    this.#settings = settings;
    this.#version++;
  }

  /** Whether to record a new trace that begins so; `chance` is 32 random bits. */
  isChosen(operation: string, chance: number): boolean {
    const { rules, ratio } = this.#settings;
    return chance < rateOf(operation, rules, ratio) * CHANCES;
  }

  /** A call has begun. */
  open(call: ObservedCall, caller: Party, text: string, places: CallPlaces): void {
    const span = this.#open[call.slot] ??= new OpenSpan();
    const { traceStart, traceEnd, dataStart } = places;
    const subject = call.subject as Subject;
    span.uses = call.uses;
    const from = traceStart + TRACEPARENT_KEY.length;
    span.isSampled = this.#begin(span, subject, text, from, Math.max(from, traceEnd - 1));
    if (!span.isSampled) return;
    span.slot = call.slot;
    span.subject = subject;
    span.caller = caller;
    span.callerId = call.callerId;
    span.since = call.since;
    span.timeout_ms = call.timeout_ms;
    span.requestChars = dataStart < 0 ? -1 : text.length - 1 - dataStart;
    if (text.startsWith(BAGGAGE_KEY, traceEnd)) {
      const end = dataStart < 0 ? text.length - 1 : dataStart - DATA_KEY.length;
      setBaggage(span.more, text.slice(traceEnd + BAGGAGE_KEY.length, end - 1));
    }
    span.isDetailed = this.#takeDetail(call.since);
    if (span.isDetailed && dataStart >= 0 && this.#isShort(span.requestChars)) {
      setRequest(span.more, text.slice(dataStart, -1));
    }
    this.#charge(span);
  }

  /** The span of a running call; `undefined` when it has none. */
  find({ slot, uses }: ObservedCall): OpenSpan | undefined {
    const span = this.#open[slot];
    return span !== undefined && span.uses === uses ? span : undefined;
  }

  /** A call goes to whoever runs it; what to send along. */
  sent(
    span: OpenSpan,
    callee: Party,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): string {
    const { traceparent } = span;
    span.traceparent = "";
    if (!span.isSampled) return traceparent;
    span.sent = now;
    span.callee = callee;
    if (candidates) {
      span.more.candidates = candidates;
      span.more.bytes += candidates.length * CANDIDATE_BYTES;
      this.#charge(span);
    }
    return traceparent;
  }

  /** A call ended with the value that starts there and ends before the last character; -1: none. */
  settle(span: OpenSpan, now: number, text: string, start: number): void {
    if (!span.isSampled) return span.clear();
    span.responseChars = start < 0 ? -1 : text.length - 1 - start;
    if (span.isDetailed && start >= 0 && this.#isShort(span.responseChars)) {
      setResponse(span.more, text.slice(start, -1));
    }
    this.#end(span, now);
  }

  /** A call ended with an error. */
  fail(span: OpenSpan, now: number, error: ErrorBody, endedBy: string | null): void {
    if (!span.isSampled) return span.clear();
    setError(span.more, error, endedBy);
    this.#end(span, now);
  }

  /** A call ended as soon as it had begun, in an error or in a result. */
  record(
    call: ShortCall,
    subject: Subject,
    callee: Party | undefined,
    outcome: ErrorBody | (() => string),
  ): void {
    const span = this.#short;
    const trace = call.traceparent ?? "";
    if (!this.#begin(span, subject, trace, 0, trace.length)) return;
    const now = this.#clock.now();
    span.slot = -1;
    span.subject = subject;
    span.caller = call.caller as Party;
    span.callee = callee;
    span.callerId = call.caller_invocation_id ?? "";
    span.since = now;
    span.sent = callee ? now : NaN;
    span.timeout_ms = call.timeout_ms;
    span.requestChars = -1;
    const { baggage } = call;
    if (baggage !== undefined) setBaggage(span.more, JSON.stringify(baggage).slice(1, -1));
    const isDetailed = this.#takeDetail(now);
    const request = isDetailed ? call.request() : undefined;
    if (request !== undefined) span.requestChars = request.length;
    if (request !== undefined && this.#isShort(request.length)) setRequest(span.more, request);
    if (typeof outcome !== "function") {
      setError(span.more, outcome, null);
    } else if (isDetailed) {
      const response = outcome();
      span.responseChars = response.length;
      if (this.#isShort(response.length)) setResponse(span.more, response);
    }
    this.#end(span, now);
  }

  /** Gives a span its ids and its place in the order; `false` when it is not to be recorded. */
  #begin(span: OpenSpan, subject: Subject, text: string, start: number, end: number): boolean {
    const { ids } = span;
    const source = this.#ids;
    const flags = readTraceparent(text, start, end, ids);
    let isSampled: boolean;
    let trace: string;
    const at = source.take(24);
    if (flags < 0) {
      for (let i = 0; i < TRACE_WORDS; i++) ids[i] = source.word(at + 8 + 4 * i);
      ids[PARENT_WORDS] = ids[PARENT_WORDS + 1] = 0;
      trace = source.text(at + 8, 16);
      isSampled = ids[TRACE_WORDS - 1]! < this.#rateOf(subject) * CHANCES;
    } else {
      ids[PARENT_WORDS] = ids[TRACE_WORDS]!;
      ids[PARENT_WORDS + 1] = ids[TRACE_WORDS + 1]!;
      trace = text.slice(start + TRACE_ID_AT, start + SPAN_ID_AT - 1);
      isSampled = flags === 1;
    }
    ids[TRACE_WORDS] = source.word(at);
    ids[TRACE_WORDS + 1] = source.word(at + 4);
    span.traceparent = `00-${trace}-${source.text(at, 8)}-0${isSampled ? 1 : 0}`;
    if (isSampled) span.seq = ++this.#seq;
    return isSampled;
  }

  /** What a running call has besides numbers counts against a bound of its own. */
  #charge(span: OpenSpan): void {
    const bytes = span.detail?.bytes ?? 0;
    this.#openBytes += bytes - span.charged;
    span.charged = bytes;
  }

  #end(span: OpenSpan, now: number): void {
    this.#openBytes -= span.charged;
    span.ended = now;
    this.#ring.write(span, this.#epoch);
    span.clear();
  }

  #rateOf(subject: Subject): number {
    if (subject.rateVersion !== this.#version) {
      const { rules, ratio } = this.#settings;
      subject.rate = rateOf(subject.function_id, rules, ratio);
      subject.rateVersion = this.#version;
    }
    return subject.rate;
  }

  /** Whether one more call may have details; it has them then. */
  #takeDetail(now: number): boolean {
    if (now - this.#secondFrom >= SECOND_MS) this.#nextSecond(now);
    if (this.#detailsLeft <= 0 || this.#openBytes >= this.#openBytesMax) return false;
    this.#detailsLeft--;
    return true;
  }

  #nextSecond(now: number): void {
    this.#secondFrom = now;
    this.#detailsLeft = TRACE_DETAILS_PER_SECOND;
    const epoch = this.#clock.wall() - this.#clock.now();
    const late = epoch - this.#epoch;
    // Whole milliseconds are cut: the largest difference is the true one, unless time was set.
    if (late > 0 || late < -CLOCK_TOLERANCE_MS) this.#epoch = epoch;
  }

  #isShort(chars: number): boolean {
    const max = Math.min(this.#settings.payload_chars, this.#ring.detailBytesMax / 2);
    return chars <= max;
  }
}

function setRequest(detail: SpanDetail, text: string): void {
  detail.request = kept(text);
  detail.bytes += bytesOf(detail.request);
}

function setResponse(detail: SpanDetail, text: string): void {
  detail.response = kept(text);
  detail.bytes += bytesOf(detail.response);
}

/** What stood between the quotes. */
function setBaggage(detail: SpanDetail, text: string): void {
  if (text.length > TRACE_BAGGAGE_CHARS_MAX) return;
  detail.baggage = kept(text);
  detail.bytes += bytesOf(detail.baggage);
}

function setError(detail: SpanDetail, { code, message }: ErrorBody, endedBy: string | null): void {
  detail.error_code = kept(code, TRACE_NAME_CHARS_MAX);
  detail.error_message = kept(message, TRACE_ERROR_CHARS_MAX);
  detail.ended_by = endedBy;
  detail.bytes += bytesOf(detail.error_code) + bytesOf(detail.error_message);
}
