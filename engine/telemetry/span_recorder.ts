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
import { BAGGAGE_KEY, DATA_KEY, TRACEPARENT_KEY } from "../core/tails.ts";
import { bytesOf, standsAt, textOf } from "../core/text_bytes.ts";
import type { CallPlaces, ObservedCall, ShortCall } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Candidate, TraceSettings } from "../ports/telemetry.ts";
import type { IdSource } from "./id_source.ts";
import { costOf, kept } from "./kept_text.ts";
import {
  NO_NUMBER,
  OpenSpan,
  type Party,
  type SpanDetail,
  type Subject,
  TIME,
  WORD,
} from "./open_span.ts";
import { rateOf } from "./sampling.ts";
import { SpanPage } from "./span_page.ts";
import { SpanRing } from "./span_ring.ts";
import { TraceField } from "./trace_field.ts";
import { readTraceparent } from "./traceparent.ts";
import { writeUuid } from "./uuid.ts";

/** Part of the memory that details of running calls may take; the ring has the rest. */
const OPEN_PART = 1 / 8;
const SECOND_MS = 1_000;
/** The machine's two clocks are read one after the other, and one of them in whole milliseconds. */
const CLOCK_TOLERANCE_MS = 2;
const CHANCES = 2 ** 32;
const CANDIDATE_BYTES = 256;
const BAGGAGE = bytesOf(BAGGAGE_KEY);

/** Records calls. */
export class SpanRecorder {
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** By slot of the call. */
  readonly #open: (OpenSpan | undefined)[] = [];
  /** For calls that end as soon as they begin. */
  readonly #short = new OpenSpan();
  readonly #field = new TraceField();
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
      this.#ring = this.#ring.resized(bytes * (1 - OPEN_PART));
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
  open(call: ObservedCall, caller: Party, places: CallPlaces): void {
    const span = this.#open[call.slot] ??= new OpenSpan();
    const { memory, traceStart, traceEnd, dataStart, end } = places;
    const from = traceStart + TRACEPARENT_KEY.length;
    span.uses = call.uses;
    const subject = call.subject as Subject;
    span.isSampled = this.#begin(span, subject, memory, from, Math.max(from, traceEnd - 1));
    if (!span.isSampled) return;
    const { words, times } = span;
    const bytes = dataStart < 0 ? NO_NUMBER : end - 1 - dataStart;
    words[WORD.slot] = call.slot;
    words[WORD.requestChars] = bytes;
    words[WORD.responseChars] = NO_NUMBER;
    times[TIME.since] = call.since;
    times[TIME.sent] = NaN;
    times[TIME.ended] = NaN;
    times[TIME.timeout_ms] = call.timeout_ms;
    times[TIME.uses] = call.uses;
    span.caller = caller;
    nameCall(span, call.callerId, call.callerIdBytes);
    if (standsAt(memory, traceEnd, end, BAGGAGE)) {
      const baggageEnd = dataStart < 0 ? end - 1 : dataStart - DATA_KEY.length;
      setBaggage(span.more, textOf(memory, traceEnd + BAGGAGE.length, baggageEnd - 1));
    }
    span.isDetailed = this.#takeDetail(call.since);
    if (span.isDetailed && dataStart >= 0) {
      const request = this.#shortText(memory, dataStart, end - 1);
      if (request !== undefined) setRequest(span.more, request);
    }
    if (span.detail) this.#charge(span);
  }

  /** The span of a running call; `undefined` when it has none. */
  find({ slot, uses }: ObservedCall): OpenSpan | undefined {
    const span = this.#open[slot];
    return span !== undefined && span.uses === uses ? span : undefined;
  }

  /** A call goes to whoever runs it; the field to send along. */
  sent(
    span: OpenSpan,
    callee: Party,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): Uint8Array {
    const field = this.#field.of(span.words, span.isSampled);
    if (!span.isSampled) return field;
    span.times[TIME.sent] = now;
    span.callee = callee;
    if (candidates) {
      span.more.candidates = candidates;
      span.more.bytes += candidates.length * CANDIDATE_BYTES;
      this.#charge(span);
    }
    return field;
  }

  /** A call ended with the value in `memory` from `start` to `end`; -1 as start: with none. */
  settle(span: OpenSpan, now: number, memory: Uint8Array, start: number, end: number): void {
    if (!span.isSampled) return span.clear();
    const bytes = start < 0 ? NO_NUMBER : end - start;
    span.words[WORD.responseChars] = bytes;
    if (span.isDetailed && start >= 0) {
      const response = this.#shortText(memory, start, end);
      if (response !== undefined) setResponse(span.more, response);
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
    const trace = bytesOf(call.traceparent ?? "");
    if (!this.#begin(span, subject, trace, 0, trace.length)) return;
    const now = this.#clock.now();
    const { words, times, more } = span;
    times[TIME.since] = now;
    times[TIME.sent] = callee ? now : NaN;
    times[TIME.timeout_ms] = call.timeout_ms;
    words[WORD.slot] = NO_NUMBER;
    span.caller = call.caller as Party;
    span.callee = callee;
    const callerId = bytesOf(quoted(call.caller_invocation_id ?? ""));
    nameCall(span, callerId, callerId.length);
    if (call.baggage !== undefined) setBaggage(more, quoted(call.baggage));
    const isDetailed = this.#takeDetail(now);
    const request = isDetailed ? call.request() : undefined;
    const response = isDetailed && typeof outcome === "function" ? outcome() : undefined;
    words[WORD.requestChars] = request?.length ?? NO_NUMBER;
    words[WORD.responseChars] = response?.length ?? NO_NUMBER;
    if (request !== undefined && this.#isShort(request.length)) setRequest(more, request);
    if (response !== undefined && this.#isShort(response.length)) setResponse(more, response);
    if (typeof outcome !== "function") setError(more, outcome, null);
    this.#end(span, now);
  }

  /** Gives a span its ids and its place in the order; `false` when it is not to be recorded. */
  #begin(
    span: OpenSpan,
    subject: Subject,
    memory: Uint8Array,
    start: number,
    end: number,
  ): boolean {
    const { words } = span;
    const source = this.#ids;
    const flags = readTraceparent(memory, start, end, words);
    const at = source.take(24);
    if (flags < 0) {
      for (let i = 0; i < WORD.span; i++) words[i] = source.word(at + 8 + 4 * i);
      words[WORD.parent] = words[WORD.parent + 1] = 0;
    } else {
      words[WORD.parent] = words[WORD.span]!;
      words[WORD.parent + 1] = words[WORD.span + 1]!;
    }
    const isSampled = flags < 0 ? words[0]! < this.#rateOf(subject) * CHANCES : flags === 1;
    words[WORD.span] = source.word(at);
    words[WORD.span + 1] = source.word(at + 4);
    if (isSampled) {
      span.subject = subject;
      span.times[TIME.seq] = ++this.#seq;
    }
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
    span.times[TIME.ended] = now;
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

  /** The text of a payload that is kept; `undefined`: it is too long. */
  #shortText(memory: Uint8Array, start: number, end: number): string | undefined {
    // A character is at most three bytes: what is longer still need not be read.
    if (!this.#isShort((end - start) / 3)) return undefined;
    const text = textOf(memory, start, end);
    return this.#isShort(text.length) ? text : undefined;
  }

  /** Whether a payload of so many characters is kept. */
  #isShort(chars: number): boolean {
    return chars <= Math.min(this.#settings.payload_chars, this.#ring.detailBytesMax / 2);
  }
}

/** Notes the caller's id of a call: the first bytes, as they stood between quotes. */
function nameCall(span: OpenSpan, callerId: Uint8Array, bytes: number): void {
  if (writeUuid(callerId, 0, bytes, span.words, WORD.callerId) || bytes === 0) return;
  const { more } = span;
  more.caller_invocation_id = kept(textOf(callerId, 0, bytes), TRACE_NAME_CHARS_MAX);
  more.bytes += costOf(more.caller_invocation_id);
}

function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function setRequest(detail: SpanDetail, text: string): void {
  detail.request = kept(text);
  detail.bytes += costOf(detail.request);
}

function setResponse(detail: SpanDetail, text: string): void {
  detail.response = kept(text);
  detail.bytes += costOf(detail.response);
}

/** What stood between the quotes. */
function setBaggage(detail: SpanDetail, text: string): void {
  if (text.length > TRACE_BAGGAGE_CHARS_MAX) return;
  detail.baggage = kept(text);
  detail.bytes += costOf(detail.baggage);
}

function setError(detail: SpanDetail, { code, message }: ErrorBody, endedBy: string | null): void {
  detail.error_code = kept(code, TRACE_NAME_CHARS_MAX);
  detail.error_message = kept(message, TRACE_ERROR_CHARS_MAX);
  detail.ended_by = endedBy;
  detail.bytes += costOf(detail.error_code) + costOf(detail.error_message);
}
