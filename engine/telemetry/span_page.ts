/**
 * A few hundred recorded calls in arrays of numbers.
 *
 * A span has a row of words and 64-bit numbers, and an object only for details that numbers cannot
 * hold. Objects for readers are created on reading.
 *
 * @module
 */
import { bytesOf } from "../core/wire/bytes.ts";
import type { CallEndpoint, CallFilter, CallSpan } from "../ports/telemetry.ts";
import type { MeteredFunction } from "./function_meters.ts";
import { NO_NUMBER, OPEN_NUMBER, OPEN_WORD, type OpenSpans } from "./open_spans.ts";
import type { SpanDetail, SpanEndpoint } from "./span_detail.ts";
import { idText, readId, UUID_WORDS, uuidText, writeUuid } from "./trace_ids.ts";

/** Offsets of the words in a row. */
const WORD = {
  /** Trace id, span id and parent id: see `trace_ids.ts`. */
  trace: 0,
  span: 4,
  parent: 6,
  /** The caller's id, if it is a UUID; else zeros. */
  callerId: 8,
  /** Slot of the call; {@linkcode NO_NUMBER} for a call that was never opened. */
  slot: 12,
  /** Characters of payload and result; {@linkcode NO_NUMBER} without one. */
  requestChars: 13,
  responseChars: 14,
  /** Indexes in the lists of the page. */
  subject: 15,
  caller: 16,
  callee: 17,
  detail: 18,
  /** Length of a row; the last word is unused. */
  row: 20,
} as const;

/** Offsets of the 64-bit numbers behind the words. Times are wall clock times; `NaN`: not yet. */
const TIME = { seq: 0, since: 1, sent: 2, ended: 3, timeout_ms: 4, uses: 5, row: 6 } as const;

/** Length of a row in 64-bit numbers, words included. */
const ROW_NUMBERS = WORD.row / 2 + TIME.row;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** Memory of a span without {@linkcode SpanDetail}. */
export const SPAN_BYTES = 8 * ROW_NUMBERS;

/** Returns the engine's id of a call. */
export type CallIdOf = (slot: number, uses: number) => string;

/** A filter whose ids were converted to the form that they have in a row. */
export interface PreparedFilter {
  readonly filter: CallFilter;
  readonly words: Uint32Array;
  /** Whether the call id is a UUID; only then it can be an engine's id. */
  readonly isUuid: boolean;
  /** The call id as JSON text without quotes. */
  readonly callerId: string;
}

/** The objects that a span refers to. */
export interface SpanLinks {
  readonly subject: MeteredFunction;
  readonly caller: SpanEndpoint;
  readonly callee: SpanEndpoint | undefined;
  readonly detail: SpanDetail | undefined;
}

/** Spans in the order in which they were written. */
export class SpanPage {
  /** Number of spans that fit. */
  readonly size: number;
  /** Number of the page, increasing; 0 for a page that is only read. */
  number = 0;
  /** Number of spans in the page. */
  count = 0;
  /** Memory of the spans beyond {@linkcode SPAN_BYTES}. */
  extraBytes = 0;
  /** Readers that need the rows to stay: the page may not be reused. */
  readers = 0;
  /** The rows, contiguous: as words, and the same memory as 64-bit numbers. */
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  #subjects: MeteredFunction[] = [];
  #endpoints: SpanEndpoint[] = [];
  /** Details of those spans that have some, in the order in which they were written. */
  #details: SpanDetail[] = [];

  constructor(size: number) {
    this.size = size;
    this.#numbers = new Float64Array(size * ROW_NUMBERS);
    this.#words = new Uint32Array(this.#numbers.buffer);
  }

  /** Empties the page and gives it a new number. */
  reuse(number: number): void {
    this.number = number;
    this.count = 0;
    this.extraBytes = 0;
    this.#subjects = [];
    this.#endpoints = [];
    this.#details = [];
  }

  /** Adds a prepared span; the page must have room. `epoch`: the clock's wall() at now() 0. */
  write(open: OpenSpans, place: number, epoch: number): void {
    const at = this.count++;
    const call = open.callAt(place);
    const from = open.words;
    const words = this.#words;
    const start = place * OPEN_WORD.row;
    const row = at * 2 * ROW_NUMBERS;
    for (let i = 0; i < WORD.callerId; i++) words[row + i] = from[start + i]!;
    for (let i = 0; i < UUID_WORDS; i++) words[row + WORD.callerId + i] = open.callerId[i]!;
    words[row + WORD.slot] = call.slot;
    words[row + WORD.requestChars] = from[start + OPEN_WORD.requestChars]!;
    words[row + WORD.responseChars] = from[start + OPEN_WORD.responseChars]!;
    const numbers = this.#numbers;
    const number = place * OPEN_NUMBER.row;
    const time = at * ROW_NUMBERS + WORD.row / 2;
    numbers[time + TIME.seq] = open.numbers[number + OPEN_NUMBER.seq]!;
    numbers[time + TIME.since] = epoch + call.since;
    numbers[time + TIME.sent] = epoch + open.numbers[number + OPEN_NUMBER.sent]!;
    numbers[time + TIME.ended] = epoch + open.ended;
    numbers[time + TIME.timeout_ms] = call.timeout_ms;
    numbers[time + TIME.uses] = call.uses;
    const subject = call.subject as MeteredFunction;
    this.#link(row, subject, open.callerAt(place), open.calleeAt(place), open.detailAt(place));
  }

  /** Adds a span of another page; the page must have room. */
  copy(from: SpanPage, at: number): void {
    const to = this.count++;
    const [start, row] = [at * 2 * ROW_NUMBERS, to * 2 * ROW_NUMBERS];
    this.#words.set(from.#words.subarray(start, start + 2 * ROW_NUMBERS), row);
    const { subject, caller, callee, detail } = from.linksAt(at);
    this.#link(row, subject, caller, callee, detail);
  }

  /** Memory of a span beyond {@linkcode SPAN_BYTES} that this page does not hold yet. */
  extraBytesOf(
    subject: MeteredFunction,
    caller: SpanEndpoint,
    callee: SpanEndpoint | undefined,
    detail: SpanDetail | undefined,
  ): number {
    let bytes = detail ? detail.bytes : 0;
    if (subject.page !== this.number) bytes += subject.bytes;
    if (caller.page !== this.number) bytes += caller.bytes;
    if (callee && callee.page !== this.number) bytes += callee.bytes;
    return bytes;
  }

  /** The span at an index. */
  read(at: number, callId: CallIdOf): CallSpan {
    const words = this.#words.subarray(at * 2 * ROW_NUMBERS, (at + 1) * 2 * ROW_NUMBERS);
    const times = this.#numbers.subarray(at * ROW_NUMBERS + WORD.row / 2, (at + 1) * ROW_NUMBERS);
    const { subject, caller, callee, detail } = this.linksAt(at);
    const slot = words[WORD.slot]!;
    const parent = words[WORD.parent]! + words[WORD.parent + 1]!;
    const callerId = detail?.callerId;
    const request = detail?.request == null ? null : firstValue(detail.request);
    const response = detail?.response == null ? null : firstValue(detail.response);
    return {
      seq: times[TIME.seq]!,
      trace_id: idText(words, WORD.trace, WORD.span),
      span_id: idText(words, WORD.span, WORD.parent),
      parent_span_id: parent > 0 ? idText(words, WORD.parent, WORD.callerId) : null,
      function_id: subject.function_id,
      namespace: subject.namespace,
      invocation_id: slot === NO_NUMBER ? "" : callId(slot, times[TIME.uses]!),
      caller_invocation_id: callerId == null ? uuidText(words, WORD.callerId) : unquoted(callerId),
      caller: viewOf(caller, subject),
      callee: callee ? viewOf(callee, subject) : null,
      start_ms: times[TIME.since]!,
      sent_ms: timeOf(times[TIME.sent]!),
      end_ms: timeOf(times[TIME.ended]!),
      error_code: detail?.error_code ?? null,
      error_message: detail?.error_message ?? null,
      stacktrace: detail?.stacktrace ?? null,
      ended_by: detail?.ended_by ?? null,
      timeout_ms: times[TIME.timeout_ms]!,
      request_chars: request?.length ?? charsOf(words[WORD.requestChars]!),
      response_chars: response?.length ?? charsOf(words[WORD.responseChars]!),
      request,
      response,
      baggage: detail?.baggage == null ? null : unquoted(detail.baggage),
      candidates: detail?.candidates ?? null,
    };
  }

  /** Function, endpoints and details of the span at an index. */
  linksAt(at: number): SpanLinks {
    const row = at * 2 * ROW_NUMBERS;
    return {
      subject: this.#subjects[this.#words[row + WORD.subject]!]!,
      caller: this.#endpoints[this.#words[row + WORD.caller]!]!,
      callee: itemAt(this.#endpoints, this.#words[row + WORD.callee]!),
      detail: itemAt(this.#details, this.#words[row + WORD.detail]!),
    };
  }

  /** Sequence number of the span at an index, by start. */
  seqAt(at: number): number {
    return this.#timeAt(at, TIME.seq);
  }

  /** When the span at an index started. */
  startAt(at: number): number {
    return this.#timeAt(at, TIME.since);
  }

  /** When it ended; `NaN` while it runs. */
  endAt(at: number): number {
    return this.#timeAt(at, TIME.ended);
  }

  /** Its function. */
  subjectAt(at: number): MeteredFunction {
    return this.#subjects[this.#words[at * 2 * ROW_NUMBERS + WORD.subject]!]!;
  }

  /** Name of the caller. */
  callerNameAt(at: number): string {
    const caller = this.#endpoints[this.#words[at * 2 * ROW_NUMBERS + WORD.caller]!]!;
    return nameOf(caller, this.subjectAt(at));
  }

  /** Name of the worker that it was sent to; `null` if it was not sent. */
  calleeNameAt(at: number): string | null {
    const callee = itemAt(this.#endpoints, this.#words[at * 2 * ROW_NUMBERS + WORD.callee]!);
    return callee ? nameOf(callee, this.subjectAt(at)) : null;
  }

  /** Code of its error, if it failed. */
  errorCodeAt(at: number): string | null {
    const detail = itemAt(this.#details, this.#words[at * 2 * ROW_NUMBERS + WORD.detail]!);
    return detail?.error_code ?? null;
  }

  /** The first word of its trace id. */
  traceHeadAt(at: number): number {
    return this.#words[at * 2 * ROW_NUMBERS + WORD.trace]!;
  }

  /** Its trace id. */
  traceAt(at: number): string {
    const row = at * 2 * ROW_NUMBERS;
    return idText(this.#words, row + WORD.trace, row + WORD.span);
  }

  /** Its span id. */
  spanAt(at: number): string {
    const row = at * 2 * ROW_NUMBERS;
    return idText(this.#words, row + WORD.span, row + WORD.parent);
  }

  /** Its parent's span id; `null` for a root. */
  parentAt(at: number): string | null {
    const words = this.#words;
    const row = at * 2 * ROW_NUMBERS;
    if (words[row + WORD.parent]! + words[row + WORD.parent + 1]! === 0) return null;
    return idText(words, row + WORD.parent, row + WORD.callerId);
  }

  /** Whether the span at an index matches a filter. */
  fits(at: number, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { trace_id, span_id, invocation_id, function_id, since_ms, until_ms } = prepared.filter;
    if (trace_id !== undefined && !this.#has(at, prepared, WORD.trace, WORD.span)) return false;
    if (span_id !== undefined && !this.#has(at, prepared, WORD.span, WORD.parent)) return false;
    if (function_id !== undefined) {
      const subject = this.#subjects[this.#words[at * 2 * ROW_NUMBERS + WORD.subject]!];
      if (subject!.function_id !== function_id) return false;
    }
    const start = this.#timeAt(at, TIME.since);
    if (since_ms !== undefined && start < since_ms) return false;
    if (until_ms !== undefined && start > until_ms) return false;
    return invocation_id === undefined || this.#isCall(at, invocation_id, prepared, callId);
  }

  #isCall(at: number, id: string, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { words, callerId, isUuid } = prepared;
    const detail = itemAt(this.#details, this.#words[at * 2 * ROW_NUMBERS + WORD.detail]!);
    if (detail?.callerId === callerId) return true;
    if (!isUuid) return false;
    if (this.#has(at, prepared, WORD.callerId, WORD.callerId + UUID_WORDS)) return true;
    const slot = this.#words[at * 2 * ROW_NUMBERS + WORD.slot]!;
    const uses = this.#timeAt(at, TIME.uses);
    return slot === words[WORD.slot] && slot !== NO_NUMBER && callId(slot, uses) === id;
  }

  #has(at: number, { words }: PreparedFilter, from: number, to: number): boolean {
    const row = at * 2 * ROW_NUMBERS;
    for (let i = from; i < to; i++) if (this.#words[row + i] !== words[i]) return false;
    return true;
  }

  #timeAt(at: number, time: number): number {
    return this.#numbers[at * ROW_NUMBERS + WORD.row / 2 + time]!;
  }

  /** Stores the references of a span. Shared objects count once per page. */
  #link(
    row: number,
    subject: MeteredFunction,
    caller: SpanEndpoint,
    callee: SpanEndpoint | undefined,
    detail: SpanDetail | undefined,
  ): void {
    const words = this.#words;
    const endpoints = this.#endpoints;
    const { number } = this;
    words[row + WORD.subject] = subject.page === number
      ? subject.place
      : this.#placeOf(subject, this.#subjects);
    words[row + WORD.caller] = caller.page === number
      ? caller.place
      : this.#placeOf(caller, endpoints);
    if (!callee) words[row + WORD.callee] = NO_NUMBER;
    else if (callee.page === number) words[row + WORD.callee] = callee.place;
    else words[row + WORD.callee] = this.#placeOf(callee, endpoints);
    words[row + WORD.detail] = detail ? this.#details.push(detail) - 1 : NO_NUMBER;
    if (detail) this.extraBytes += detail.bytes;
  }

  #placeOf<Shared extends SpanEndpoint | MeteredFunction>(shared: Shared, list: Shared[]): number {
    const place = list.push(shared) - 1;
    this.extraBytes += shared.bytes;
    if (this.number === 0) return place; // A read-only page leaves shared objects unchanged.
    shared.page = this.number;
    shared.place = place;
    return place;
  }
}

/** Prepares a filter; `undefined` when no span can match it. */
export function prepareFilter(filter: CallFilter): PreparedFilter | undefined {
  const words = new Uint32Array(WORD.row);
  const { trace_id, span_id, invocation_id = "" } = filter;
  if (trace_id !== undefined && !readId(trace_id, words, WORD.trace, WORD.span)) return undefined;
  if (span_id !== undefined && !readId(span_id, words, WORD.span, WORD.parent)) return undefined;
  if (filter.invocation_id === "") return undefined;
  const id = bytesOf(invocation_id);
  const isUuid = writeUuid(id, 0, id.length, words, WORD.callerId);
  words[WORD.slot] = words[WORD.callerId]!; // An engine's id starts with the slot.
  return { filter, words, isUuid, callerId: JSON.stringify(invocation_id).slice(1, -1) };
}

/** Reading beyond the end of an array is slow, and most spans have none. */
function itemAt<Item>(list: readonly Item[], place: number): Item | undefined {
  return place === NO_NUMBER ? undefined : list[place];
}

function viewOf(endpoint: SpanEndpoint, subject: MeteredFunction): CallEndpoint {
  return { worker_id: endpoint.worker_id, name: nameOf(endpoint, subject) };
}

function nameOf({ name }: SpanEndpoint, { function_id }: MeteredFunction): string {
  return name !== "" ? name : function_id.split("::", 1)[0]!;
}

/** Decodes JSON text without its quotes. */
function unquoted(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text; // Cut inside an escape sequence.
  }
}

function timeOf(time: number): number | null {
  return Number.isNaN(time) ? null : time;
}

function charsOf(chars: number): number | null {
  return chars === NO_NUMBER ? null : chars;
}

/**
 * The JSON value at the start of a text, as written; `null` when there is none. The end of a
 * forwarded frame is not parsed: another field may follow the payload, and it may not be JSON at
 * all.
 */
export function firstValue(text: string): string | null {
  if (isJson(text)) return text.trim();
  const end = commaBehind(text);
  const first = end < 0 ? "" : text.slice(0, end);
  return isJson(first) ? first.trim() : null;
}

/** Index of the first comma outside of strings, objects and arrays; -1 when there is none. */
function commaBehind(text: string): number {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COMMA && depth === 0) return at;
    else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return -1;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // Not JSON.
  }
}
