/**
 * Some hundreds of recorded calls, side by side in arrays of numbers.
 *
 * Nothing is made for a span but where it has more than numbers say: each has a row of words, one
 * of times and one of references. An object comes into being when somebody reads.
 *
 * @module
 */
import { bytesOf } from "../core/text_bytes.ts";
import type { CallFilter, CallParty, CallSpan } from "../ports/telemetry.ts";
import { firstValue } from "./json_value.ts";
import {
  NO_NUMBER,
  type OpenSpan,
  type Party,
  type SpanDetail,
  type Subject,
  TIME,
  WORD,
} from "./open_span.ts";
import { idText, readId } from "./traceparent.ts";
import { UUID_WORDS, uuidText, writeUuid } from "./uuid.ts";

/** Places in a row behind the words of a span: what it refers to, by place in the page's lists. */
const LINK = {
  subject: WORD.row,
  caller: WORD.row + 1,
  callee: WORD.row + 2,
  detail: WORD.row + 3,
};
/** Words of a row, so many that times can follow. */
const ROW_WORDS = 20;
/** Numbers of a row, each as wide as two words: its times stand at the end. */
const ROW_NUMBERS = ROW_WORDS / 2 + TIME.row;

/** What a span costs before any of its {@linkcode SpanDetail}. */
export const SPAN_BYTES = 8 * ROW_NUMBERS;

/** The engine's id of a call, from what names it. */
export type CallIdOf = (slot: number, uses: number) => string;

/** A filter that was looked at once: the ids it asks for stand where a span has them. */
export interface PreparedFilter {
  readonly filter: CallFilter;
  readonly words: Uint32Array;
  /** Whether the id of a call is a UUID; only then it can be one of the engine's. */
  readonly isUuid: boolean;
  /** The id of a call as it stands between quotes in JSON. */
  readonly callerId: string;
}

/** What a span refers to. */
export interface SpanLinks {
  readonly subject: Subject | undefined;
  readonly caller: Party | undefined;
  readonly callee: Party | undefined;
  readonly detail: SpanDetail | undefined;
}

/** Spans in the order they were written. */
export class SpanPage {
  /** Spans that fit. */
  readonly size: number;
  /** Grows from page to page; 0: a page that is only read. */
  number = 0;
  /** Spans that it holds. */
  count = 0;
  /** What they have beyond {@linkcode SPAN_BYTES}, in bytes. */
  moreBytes = 0;
  /** The rows, one behind the other: as words, and the same memory as wide numbers. */
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  #subjects: Subject[] = [];
  #parties: Party[] = [];
  /** Those of spans that have some, in the order they were written. */
  #details: SpanDetail[] = [];

  /** Makes room for so many. */
  constructor(size: number) {
    this.size = size;
    this.#numbers = new Float64Array(size * ROW_NUMBERS);
    this.#words = new Uint32Array(this.#numbers.buffer);
  }

  /** Begins anew. */
  reuse(number: number): void {
    this.number = number;
    this.count = 0;
    this.moreBytes = 0;
    this.#subjects = [];
    this.#parties = [];
    this.#details = [];
  }

  /** Adds a span; there must be room. `epoch`: the clock's wall() when its now() was 0. */
  write(span: OpenSpan, epoch: number): void {
    const at = this.count++;
    const { words, times } = span;
    const row = at * 2 * ROW_NUMBERS;
    for (let i = 0; i < WORD.row; i++) this.#words[row + i] = words[i]!;
    const time = at * ROW_NUMBERS + ROW_WORDS / 2;
    this.#numbers[time + TIME.seq] = times[TIME.seq]!;
    this.#numbers[time + TIME.since] = epoch + times[TIME.since]!;
    this.#numbers[time + TIME.sent] = epoch + times[TIME.sent]!;
    this.#numbers[time + TIME.ended] = epoch + times[TIME.ended]!;
    this.#numbers[time + TIME.timeout_ms] = times[TIME.timeout_ms]!;
    this.#numbers[time + TIME.uses] = times[TIME.uses]!;
    this.#link(row, span);
  }

  /** Adds a span of another page; there must be room. */
  copy(from: SpanPage, at: number): void {
    const to = this.count++;
    const [start, row] = [at * 2 * ROW_NUMBERS, to * 2 * ROW_NUMBERS];
    this.#words.set(from.#words.subarray(start, start + 2 * ROW_NUMBERS), row);
    this.#link(row, from.linksAt(at));
  }

  /** What a span has beyond {@linkcode SPAN_BYTES} that this page does not hold yet. */
  moreOf({ subject, caller, callee, detail }: SpanLinks): number {
    let bytes = detail ? detail.bytes : 0;
    if (subject!.page !== this.number) bytes += subject!.bytes;
    if (caller!.page !== this.number) bytes += caller!.bytes;
    if (callee && callee.page !== this.number) bytes += callee.bytes;
    return bytes;
  }

  /** The span at a place. */
  read(at: number, callId: CallIdOf): CallSpan {
    const words = this.#words.subarray(at * 2 * ROW_NUMBERS, (at + 1) * 2 * ROW_NUMBERS);
    const times = this.#numbers.subarray(at * ROW_NUMBERS + ROW_WORDS / 2, (at + 1) * ROW_NUMBERS);
    const { subject, caller, callee, detail } = this.linksAt(at);
    const slot = words[WORD.slot]!;
    const parent = words[WORD.parent]! + words[WORD.parent + 1]!;
    const callerId = detail?.caller_invocation_id;
    const request = detail?.request == null ? null : firstValue(detail.request);
    const response = detail?.response == null ? null : firstValue(detail.response);
    return {
      seq: times[TIME.seq]!,
      trace_id: idText(words, WORD.trace, WORD.span),
      span_id: idText(words, WORD.span, WORD.parent),
      parent_span_id: parent > 0 ? idText(words, WORD.parent, WORD.callerId) : null,
      function_id: subject!.function_id,
      namespace: subject!.namespace,
      invocation_id: slot === NO_NUMBER ? "" : callId(slot, times[TIME.uses]!),
      caller_invocation_id: callerId == null ? uuidText(words, WORD.callerId) : unquoted(callerId),
      caller: viewOf(caller!, subject!),
      callee: callee ? viewOf(callee, subject!) : null,
      start_ms: times[TIME.since]!,
      sent_ms: timeOf(times[TIME.sent]!),
      end_ms: timeOf(times[TIME.ended]!),
      error_code: detail?.error_code ?? null,
      error_message: detail?.error_message ?? null,
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

  /** What the span at a place refers to. */
  linksAt(at: number): SpanLinks {
    const row = at * 2 * ROW_NUMBERS;
    return {
      subject: this.#subjects[this.#words[row + LINK.subject]!],
      caller: this.#parties[this.#words[row + LINK.caller]!],
      callee: itemAt(this.#parties, this.#words[row + LINK.callee]!),
      detail: itemAt(this.#details, this.#words[row + LINK.detail]!),
    };
  }

  /** Number of the call at a place, in the order they started. */
  seqAt(at: number): number {
    return this.#timeAt(at, TIME.seq);
  }

  /** Whether a span is one of those asked for. */
  fits(at: number, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { trace_id, span_id, invocation_id, function_id, since_ms, until_ms } = prepared.filter;
    if (trace_id !== undefined && !this.#has(at, prepared, WORD.trace, WORD.span)) return false;
    if (span_id !== undefined && !this.#has(at, prepared, WORD.span, WORD.parent)) return false;
    if (function_id !== undefined) {
      const subject = this.#subjects[this.#words[at * 2 * ROW_NUMBERS + LINK.subject]!];
      if (subject!.function_id !== function_id) return false;
    }
    const start = this.#timeAt(at, TIME.since);
    if (since_ms !== undefined && start < since_ms) return false;
    if (until_ms !== undefined && start > until_ms) return false;
    return invocation_id === undefined || this.#isCall(at, invocation_id, prepared, callId);
  }

  #isCall(at: number, id: string, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { words, callerId, isUuid } = prepared;
    const detail = itemAt(this.#details, this.#words[at * 2 * ROW_NUMBERS + LINK.detail]!);
    if (detail?.caller_invocation_id === callerId) return true;
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
    return this.#numbers[at * ROW_NUMBERS + ROW_WORDS / 2 + time]!;
  }

  /** What several spans share counts once for each page. */
  #link(row: number, links: SpanLinks): void {
    const { subject, caller, callee, detail } = links;
    this.moreBytes += this.moreOf(links);
    const words = this.#words;
    words[row + LINK.subject] = this.#placeOf(subject!, this.#subjects);
    words[row + LINK.caller] = this.#placeOf(caller!, this.#parties);
    words[row + LINK.callee] = callee ? this.#placeOf(callee, this.#parties) : NO_NUMBER;
    words[row + LINK.detail] = detail ? this.#details.push(detail) - 1 : NO_NUMBER;
  }

  #placeOf<Shared extends Party | Subject>(shared: Shared, list: Shared[]): number {
    if (this.number === 0) return list.push(shared) - 1; // Others' places must hold.
    if (shared.page === this.number) return shared.place;
    shared.page = this.number;
    shared.place = list.push(shared) - 1;
    return shared.place;
  }
}

/** Looks at a filter; `undefined` when nothing can fit it. */
export function prepareFilter(filter: CallFilter): PreparedFilter | undefined {
  const words = new Uint32Array(WORD.row);
  const { trace_id, span_id, invocation_id = "" } = filter;
  if (trace_id !== undefined && !readId(trace_id, words, WORD.trace, WORD.span)) return undefined;
  if (span_id !== undefined && !readId(span_id, words, WORD.span, WORD.parent)) return undefined;
  if (filter.invocation_id === "") return undefined;
  const id = bytesOf(invocation_id);
  const isUuid = writeUuid(id, 0, id.length, words, WORD.callerId);
  words[WORD.slot] = words[WORD.callerId]!; // With which an id of the engine begins.
  return { filter, words, isUuid, callerId: JSON.stringify(invocation_id).slice(1, -1) };
}

/** Looking for what is not there is slow where most have nothing. */
function itemAt<Item>(list: readonly Item[], place: number): Item | undefined {
  return place === NO_NUMBER ? undefined : list[place];
}

function viewOf({ worker_id, name }: Party, { function_id }: Subject): CallParty {
  return { worker_id, name: name !== "" ? name : function_id.split("::", 1)[0]! };
}

/** What a text says that stood between quotes in JSON. */
function unquoted(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text; // Cut where it was escaped.
  }
}

function timeOf(time: number): number | null {
  return Number.isNaN(time) ? null : time;
}

function charsOf(chars: number): number | null {
  return chars === NO_NUMBER ? null : chars;
}
