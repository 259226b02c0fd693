/**
 * Some hundreds of recorded calls, side by side in arrays of numbers.
 *
 * Nothing is made for a span but where it has more than numbers say: each has a row of words, one
 * of times and one of references. An object comes into being when somebody reads.
 *
 * @module
 */
import type { CallFilter, CallParty, CallSpan } from "../ports/telemetry.ts";
import { firstValue } from "./json_value.ts";
import {
  LINK,
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

/** What a span costs before any of its {@linkcode SpanDetail}. */
export const SPAN_BYTES = 4 * WORD.row + 8 * TIME.row + 8 * LINK.row;

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

type Link = Subject | Party | SpanDetail | undefined;

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
  readonly #words: Uint32Array;
  readonly #times: Float64Array;
  readonly #links: Link[];

  /** Makes room for so many. */
  constructor(size: number) {
    this.size = size;
    this.#words = new Uint32Array(size * WORD.row);
    this.#times = new Float64Array(size * TIME.row);
    this.#links = new Array<Link>(size * LINK.row).fill(undefined);
  }

  /** Begins anew. */
  reuse(number: number): void {
    this.number = number;
    this.count = 0;
    this.moreBytes = 0;
    this.#links.fill(undefined);
  }

  /** Adds a span; there must be room. `epoch`: the clock's wall() when its now() was 0. */
  write(span: OpenSpan, epoch: number): void {
    const at = this.count++;
    const { words, times } = span;
    const word = at * WORD.row;
    for (let i = 0; i < WORD.row; i++) this.#words[word + i] = words[i]!;
    const time = at * TIME.row;
    this.#times[time + TIME.seq] = times[TIME.seq]!;
    this.#times[time + TIME.since] = epoch + times[TIME.since]!;
    this.#times[time + TIME.sent] = epoch + times[TIME.sent]!;
    this.#times[time + TIME.ended] = epoch + times[TIME.ended]!;
    this.#times[time + TIME.timeout_ms] = times[TIME.timeout_ms]!;
    this.#times[time + TIME.uses] = times[TIME.uses]!;
    this.#link(at, span);
  }

  /** What a span has beyond {@linkcode SPAN_BYTES} that this page does not hold yet. */
  moreOf({ subject, caller, callee, detail }: SpanLinks): number {
    let bytes = detail ? detail.bytes : 0;
    if (subject!.page < this.number) bytes += subject!.bytes;
    if (caller!.page < this.number) bytes += caller!.bytes;
    if (callee && callee.page < this.number) bytes += callee.bytes;
    return bytes;
  }

  /** Adds a span of another page; there must be room. */
  copy(from: SpanPage, at: number): void {
    const to = this.count++;
    const word = at * WORD.row;
    this.#words.set(from.#words.subarray(word, word + WORD.row), to * WORD.row);
    const time = at * TIME.row;
    this.#times.set(from.#times.subarray(time, time + TIME.row), to * TIME.row);
    this.#link(to, from.linksAt(at));
  }

  /** The span at a place. */
  read(at: number, callId: CallIdOf): CallSpan {
    const words = this.#words.subarray(at * WORD.row, (at + 1) * WORD.row);
    const times = this.#times.subarray(at * TIME.row, (at + 1) * TIME.row);
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
    const row = this.#links.slice(at * LINK.row, (at + 1) * LINK.row);
    return {
      subject: row[LINK.subject] as Subject,
      caller: row[LINK.caller] as Party,
      callee: row[LINK.callee] as Party | undefined,
      detail: row[LINK.detail] as SpanDetail | undefined,
    };
  }

  /** Number of the call at a place, in the order they started. */
  seqAt(at: number): number {
    return this.#times[at * TIME.row + TIME.seq]!;
  }

  /** Whether a span is one of those asked for. */
  fits(at: number, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { trace_id, span_id, invocation_id, function_id, since_ms, until_ms } = prepared.filter;
    if (trace_id !== undefined && !this.#has(at, prepared, WORD.trace, WORD.span)) return false;
    if (span_id !== undefined && !this.#has(at, prepared, WORD.span, WORD.parent)) return false;
    if (function_id !== undefined) {
      const subject = this.#links[at * LINK.row + LINK.subject] as Subject;
      if (subject.function_id !== function_id) return false;
    }
    const start = this.#times[at * TIME.row + TIME.since]!;
    if (since_ms !== undefined && start < since_ms) return false;
    if (until_ms !== undefined && start > until_ms) return false;
    return invocation_id === undefined || this.#isCall(at, invocation_id, prepared, callId);
  }

  #isCall(at: number, id: string, prepared: PreparedFilter, callId: CallIdOf): boolean {
    const { words, callerId, isUuid } = prepared;
    const detail = this.#links[at * LINK.row + LINK.detail] as SpanDetail | undefined;
    if (detail?.caller_invocation_id === callerId) return true;
    if (!isUuid) return false;
    if (this.#has(at, prepared, WORD.callerId, WORD.callerId + UUID_WORDS)) return true;
    const slot = this.#words[at * WORD.row + WORD.slot]!;
    const uses = this.#times[at * TIME.row + TIME.uses]!;
    return slot === words[WORD.slot] && slot !== NO_NUMBER && callId(slot, uses) === id;
  }

  #has(at: number, { words }: PreparedFilter, from: number, to: number): boolean {
    const row = at * WORD.row;
    for (let i = from; i < to; i++) if (this.#words[row + i] !== words[i]) return false;
    return true;
  }

  /** What several spans share counts once for each page. */
  #link(at: number, links: SpanLinks): void {
    const { subject, caller, callee, detail } = links;
    this.moreBytes += this.moreOf(links);
    subject!.page = Math.max(subject!.page, this.number);
    caller!.page = Math.max(caller!.page, this.number);
    if (callee) callee.page = Math.max(callee.page, this.number);
    const link = at * LINK.row;
    this.#links[link + LINK.subject] = subject;
    this.#links[link + LINK.caller] = caller;
    this.#links[link + LINK.callee] = callee;
    this.#links[link + LINK.detail] = detail;
  }
}

/** Looks at a filter; `undefined` when nothing can fit it. */
export function prepareFilter(filter: CallFilter): PreparedFilter | undefined {
  const words = new Uint32Array(WORD.row);
  const { trace_id, span_id, invocation_id = "" } = filter;
  if (trace_id !== undefined && !readId(trace_id, words, WORD.trace, WORD.span)) return undefined;
  if (span_id !== undefined && !readId(span_id, words, WORD.span, WORD.parent)) return undefined;
  if (filter.invocation_id === "") return undefined;
  const isUuid = writeUuid(invocation_id, words, WORD.callerId);
  words[WORD.slot] = words[WORD.callerId]!; // With which an id of the engine begins.
  return { filter, words, isUuid, callerId: JSON.stringify(invocation_id).slice(1, -1) };
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
