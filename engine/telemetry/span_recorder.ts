/**
 * Makes the spans of calls and of other work of built-in workers.
 *
 * A call gets its ids when it starts, details while there is a budget for them, and a row in the
 * ring when it ends. Running calls are kept apart from the ring, by the slot of the call, so that a
 * flood of short calls cannot push out a long one.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import { bytesOf, matchesAt, textOf } from "../core/wire/bytes.ts";
import { BAGGAGE_KEY, DATA_KEY, TRACEPARENT_KEY } from "../core/wire/frame_parts.ts";
import type { CallLayout, ObservedCall, TraceBytes, UnopenedCall } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Candidate,
  EndedSpan,
  SamplingRule,
  Spans,
  TraceSettings,
} from "../ports/telemetry.ts";
import type { MeteredFunction } from "./function_meters.ts";
import { NO_NUMBER, OPEN_WORD, OpenSpans, UNOPENED_PLACE } from "./open_spans.ts";
import { copyText, type SpanEndpoint } from "./span_detail.ts";
import { SpanPage } from "./span_page.ts";
import { SpanRing } from "./span_ring.ts";
import {
  FLAGS_AT,
  type IdSource,
  PARENT_WORDS,
  readTraceparent,
  TRACE_WORDS,
  TraceField,
  traceparentOf,
} from "./trace_ids.ts";

/** Calls per second whose payloads and candidates are kept. */
export const TRACE_DETAILS_PER_SECOND = 1_000;

/** Share of the memory for details of running calls; the ring gets the rest. */
const OPEN_PART = 1 / 8;
const SECOND_MS = 1_000;
/** The two system clocks are read one after the other, and one of them has whole milliseconds. */
const CLOCK_TOLERANCE_MS = 2;
const CHANCES = 2 ** 32;
/** Random bytes for a span id and a trace id. */
const ID_BYTES = 24;
const BAGGAGE = bytesOf(BAGGAGE_KEY);

/** Records the spans of calls. */
export class SpanRecorder {
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #open = new OpenSpans();
  readonly #field = new TraceField();
  #settings: TraceSettings;
  /** Incremented with each change of the settings. */
  #version = 0;
  #ring: SpanRing;
  #seq = 0;
  #openBytes = 0;
  #openBytesMax = 0;
  /** See {@linkcode SpanRing.write}. */
  #epoch: number;
  #secondFrom = -Infinity;
  #detailsLeft = 0;

  constructor(clock: Clock, ids: IdSource, settings: TraceSettings) {
    this.#clock = clock;
    this.#ids = ids;
    this.#settings = settings;
    this.#ring = new SpanRing(0);
    this.#epoch = clock.wall() - clock.now();
    this.configure(settings);
  }

  /** The current settings. */
  get settings(): TraceSettings {
    return this.#settings;
  }

  /** The calls that ended. */
  get ring(): SpanRing {
    return this.#ring;
  }

  /** The running calls, as a page. */
  running(): SpanPage {
    const open = this.#open;
    const places = [...open.sampled()];
    const page = new SpanPage(places.length);
    for (const place of places) {
      open.prepare(place, NaN);
      page.write(open, place, this.#epoch);
    }
    return page;
  }

  /** Applies settings to calls that start from now on. */
  configure(settings: TraceSettings): void {
    const bytes = settings.memory_bytes;
    if (bytes !== this.#settings.memory_bytes || this.#version === 0) {
      this.#ring = this.#ring.resized(bytes * (1 - OPEN_PART));
      this.#openBytesMax = bytes * OPEN_PART;
    }
    this.#settings = settings;
    this.#version++;
  }

  /** Whether to record a new trace that starts with this operation; `chance`: 32 random bits. */
  shouldSample(operation: string, chance: number): boolean {
    const { rules, ratio } = this.#settings;
    return chance < samplingRateOf(operation, rules, ratio) * CHANCES;
  }

  /** Starts the span of a call. */
  open(call: ObservedCall, caller: SpanEndpoint, layout: CallLayout): void {
    const open = this.#open;
    const place = open.open(call, caller);
    const { memory, traceStart, traceEnd, dataStart, end } = layout;
    const from = traceStart + TRACEPARENT_KEY.length;
    if (!this.#begin(place, memory, from, Math.max(from, traceEnd - 1))) return;
    if (dataStart >= 0) {
      open.words[place * OPEN_WORD.row + OPEN_WORD.requestChars] = end - 1 - dataStart;
    }
    const hasBaggage = matchesAt(memory, traceEnd, end, BAGGAGE);
    if (hasBaggage) {
      const baggageEnd = dataStart < 0 ? end - 1 : dataStart - DATA_KEY.length;
      const text = textOf(memory, traceEnd + BAGGAGE.length, baggageEnd - 1);
      open.more(place).setBaggage(text);
    }
    const isDetailed = this.#takeDetail(call.since);
    if (isDetailed) {
      open.detail(place);
      const request = dataStart < 0 ? undefined : this.#shortText(memory, dataStart, end - 1);
      if (request !== undefined) open.more(place).setRequest(request);
    }
    if (hasBaggage || isDetailed) this.#charge(place);
  }

  /** Row of a running call; -1 when it has none. */
  find(call: ObservedCall): number {
    return this.#open.find(call);
  }

  /** Whether details of the call in this row are kept. */
  isDetailed(place: number): boolean {
    return this.#open.isDetailed(place);
  }

  /** Records that a call is sent; returns the trace field to send along. */
  sent(
    place: number,
    callee: SpanEndpoint,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): TraceBytes {
    const open = this.#open;
    const isSampled = open.isSampled(place);
    if (isSampled) {
      open.send(place, callee, now);
      if (candidates) {
        open.more(place).setCandidates(candidates);
        this.#charge(place);
      }
    }
    return this.#field.of(open.words, place * OPEN_WORD.row, isSampled);
  }

  /**
   * Ends a call with the value in `memory` from `start` to `end`; `start` is -1 without a value.
   */
  settle(place: number, now: number, memory: Uint8Array, start: number, end: number): void {
    const open = this.#open;
    if (!open.isSampled(place)) return open.close(place);
    if (start >= 0) {
      open.words[place * OPEN_WORD.row + OPEN_WORD.responseChars] = end - start;
      if (open.isDetailed(place)) {
        const response = this.#shortText(memory, start, end);
        if (response !== undefined) open.more(place).setResponse(response);
      }
    }
    this.#end(place, now);
  }

  /** Ends a call with an error. */
  fail(place: number, now: number, error: ErrorBody, endedBy: string | null): void {
    if (!this.#open.isSampled(place)) return this.#open.close(place);
    this.#open.more(place).setError(error, endedBy);
    this.#end(place, now);
  }

  /** Records a call that was never opened, with its error or result. */
  record(
    call: UnopenedCall,
    subject: MeteredFunction,
    callee: SpanEndpoint | undefined,
    outcome: ErrorBody | (() => string),
  ): void {
    const open = this.#open;
    const now = this.#clock.now();
    const callerId = bytesOf(quoted(call.caller_invocation_id ?? ""));
    const callerIdBytes = callerId.length;
    const { timeout_ms } = call;
    const ids = { callerId, callerIdAt: 0, callerIdBytes };
    const observed = { slot: NO_NUMBER, uses: 0, ...ids, timeout_ms, subject };
    const place = open.open(
      { ...observed, since: now },
      call.caller as SpanEndpoint,
      UNOPENED_PLACE,
    );
    const trace = bytesOf(call.traceparent ?? "");
    if (!this.#begin(place, trace, 0, trace.length)) return open.close(place);
    if (callee) open.send(place, callee, now);
    const more = open.more(place);
    if (call.baggage !== undefined) more.setBaggage(quoted(call.baggage));
    const isDetailed = this.#takeDetail(now);
    const request = isDetailed ? call.request() : undefined;
    const response = isDetailed && typeof outcome === "function" ? outcome() : undefined;
    const row = place * OPEN_WORD.row;
    open.words[row + OPEN_WORD.requestChars] = request?.length ?? NO_NUMBER;
    open.words[row + OPEN_WORD.responseChars] = response?.length ?? NO_NUMBER;
    if (request !== undefined && this.#isShort(request.length)) more.setRequest(request);
    if (response !== undefined && this.#isShort(response.length)) more.setResponse(response);
    if (typeof outcome !== "function") more.setError(outcome, null);
    this.#end(place, now);
  }

  /** Assigns the ids and the sequence number; `false` if the span is not sampled. */
  #begin(place: number, memory: Uint8Array, start: number, end: number): boolean {
    const { words } = this.#open;
    const row = place * OPEN_WORD.row;
    const span = row + OPEN_WORD.span;
    const parent = row + OPEN_WORD.parent;
    const source = this.#ids;
    const at = source.take(ID_BYTES);
    const flags = readTraceparent(memory, start, end, words, row);
    if (flags < 0) {
      for (let i = 0; i < TRACE_WORDS; i++) words[row + i] = source.word(at + 8 + 4 * i);
      words[parent] = words[parent + 1] = 0;
    } else {
      words[parent] = words[span]!;
      words[parent + 1] = words[span + 1]!;
    }
    words[span] = source.word(at);
    words[span + 1] = source.word(at + 4);
    const subject = this.#open.subjectAt(place);
    const isSampled = flags < 0
      ? words[row]! < this.#samplingRateOf(subject) * CHANCES
      : flags === 1;
    if (isSampled) this.#open.sample(place, ++this.#seq);
    return isSampled;
  }

  /** Counts the memory of a running call's details. */
  #charge(place: number): void {
    const detail = this.#open.detailAt(place);
    if (!detail) return;
    this.#openBytes += detail.bytes - detail.charged;
    detail.charged = detail.bytes;
  }

  #end(place: number, now: number): void {
    const open = this.#open;
    this.#openBytes -= open.detailAt(place)?.charged ?? 0;
    open.prepare(place, now);
    this.#ring.write(open, place, this.#epoch);
    open.close(place);
  }

  #samplingRateOf(subject: MeteredFunction): number {
    if (subject.rateVersion !== this.#version) {
      const { rules, ratio } = this.#settings;
      subject.rate = samplingRateOf(subject.function_id, rules, ratio);
      subject.rateVersion = this.#version;
    }
    return subject.rate;
  }

  /** Takes one call from the budget of details; `false` if it is used up. */
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
    // Milliseconds are truncated: the largest difference is the correct one, unless the clock was
    // set.
    if (late > 0 || late < -CLOCK_TOLERANCE_MS) this.#epoch = epoch;
  }

  /** The text of a payload; `undefined` if it is too long to keep. */
  #shortText(memory: Uint8Array, start: number, end: number): string | undefined {
    // A character takes at most three bytes: a longer payload need not be decoded.
    if (!this.#isShort((end - start) / 3)) return undefined;
    const text = textOf(memory, start, end);
    return this.#isShort(text.length) ? text : undefined;
  }

  /** Whether a payload of this length is kept. */
  #isShort(chars: number): boolean {
    return chars <= Math.min(this.#settings.payload_chars, this.#ring.detailBytesMax / 2);
  }
}

function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Share of new traces to record that start with an operation; the first matching rule decides. */
export function samplingRateOf(
  operation: string,
  rules: readonly SamplingRule[],
  ratio: number,
): number {
  return rules.find((rule) => matchesPattern(operation, rule.operation))?.rate ?? ratio;
}

/** Whether a text matches a pattern in which `*` stands for any characters. */
export function matchesPattern(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[next] === "*") {
      star = next++;
      resume = at;
    } else if (pattern[next] === text[at]) {
      next++;
      at++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next++;
  return next === pattern.length;
}

/** Dependencies of {@linkcode BuiltinSpans}. */
export interface BuiltinSpansOptions {
  readonly ids: IdSource;
  /** Whether tracing is enabled. */
  isTracing(): boolean;
  /** Whether to record a new trace that starts with this operation; `chance`: 32 random bits. */
  shouldSample(operation: string, chance: number): boolean;
}

/** Spans of built-in workers that are not calls, such as HTTP requests. */
export class BuiltinSpans implements Spans {
  readonly #options: BuiltinSpansOptions;
  readonly #words = new Uint32Array(PARENT_WORDS);
  readonly #listeners = new Set<(span: EndedSpan) => void>();

  constructor(options: BuiltinSpansOptions) {
    this.#options = options;
  }

  open(parent: string | null, operation: string): string | null {
    const { ids, isTracing, shouldSample } = this.#options;
    const flags = parent === null ? -1 : this.#read(parent);
    if (!isTracing()) return flags < 0 ? null : parent;
    const at = ids.take(24);
    const span_id = ids.text(at + 16, 8);
    if (flags >= 0) return copyText(traceparentOf(parent!.slice(3, 35), span_id, flags === 1));
    const isSampled = shouldSample(operation, ids.word(at));
    return copyText(traceparentOf(ids.text(at, 16), span_id, isSampled));
  }

  record(span: EndedSpan): void {
    // open() made it, so the last digit suffices: parsing it all takes a third of the time.
    if ((parseInt(span.traceparent.charAt(FLAGS_AT + 1), 16) & 1) !== 1) return;
    for (const listen of this.#listeners) listen(span);
  }

  #read(traceparent: string): number {
    const memory = bytesOf(traceparent);
    return readTraceparent(memory, 0, memory.length, this.#words, 0);
  }

  listen(listener: (span: EndedSpan) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
