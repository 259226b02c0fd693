/**
 * Some hundreds of recorded calls, side by side in arrays of numbers.
 *
 * Nothing is made for a span but where it has more than numbers say. An object comes into being
 * when somebody reads.
 *
 * @module
 */
import type { CallFilter, CallSpan } from "../ports/telemetry.ts";
import {
  type OpenSpan,
  type Party,
  SPAN_WORDS,
  type SpanDetail,
  type Subject,
} from "./open_span.ts";
import { hexAt, idText, PARENT_WORDS, readId, TRACE_WORDS } from "./traceparent.ts";

/** What a span costs before any of its {@linkcode SpanDetail}. */
export const SPAN_BYTES = 140;

const UUID_WORDS = 4;
const UUID_CHARS = 36;
const DASH = 0x2d;
const NO_SLOT = 0xffffffff;

/** The engine's id of a call, from what names it. */
export type CallIdOf = (slot: number, uses: number) => string;

/** A filter that was looked at once. */
export interface PreparedFilter {
  readonly filter: CallFilter;
  /** The ids it asks for, as a span has them; the caller's id follows. */
  readonly words: Uint32Array;
}

/** Spans in the order they were written. */
export class SpanPage {
  /** Grows from page to page. */
  number = 0;
  /** Spans that it holds. */
  count = 0;
  /** What they have beyond {@linkcode SPAN_BYTES}, in bytes. */
  moreBytes = 0;
  readonly size: number;
  readonly #ids: Uint32Array;
  readonly #callerIds: Uint32Array;
  readonly #seqs: Float64Array;
  readonly #since: Float64Array;
  readonly #sent: Float64Array;
  readonly #ended: Float64Array;
  readonly #timeouts: Float64Array;
  readonly #uses: Float64Array;
  readonly #slots: Uint32Array;
  readonly #requestChars: Int32Array;
  readonly #responseChars: Int32Array;
  readonly #subjects: (Subject | undefined)[];
  readonly #callers: (Party | undefined)[];
  readonly #callees: (Party | undefined)[];
  readonly #details: (SpanDetail | undefined)[];

  /** Makes room for so many. */
  constructor(size: number) {
    this.size = size;
    this.#ids = new Uint32Array(size * SPAN_WORDS);
    this.#callerIds = new Uint32Array(size * UUID_WORDS);
    this.#seqs = new Float64Array(size);
    this.#since = new Float64Array(size);
    this.#sent = new Float64Array(size);
    this.#ended = new Float64Array(size);
    this.#timeouts = new Float64Array(size);
    this.#uses = new Float64Array(size);
    this.#slots = new Uint32Array(size);
    this.#requestChars = new Int32Array(size);
    this.#responseChars = new Int32Array(size);
    this.#subjects = new Array(size).fill(undefined);
    this.#callers = new Array(size).fill(undefined);
    this.#callees = new Array(size).fill(undefined);
    this.#details = new Array(size).fill(undefined);
  }

  /** Begins anew. */
  reuse(number: number): void {
    this.number = number;
    this.count = 0;
    this.moreBytes = 0;
    this.#subjects.fill(undefined);
    this.#callers.fill(undefined);
    this.#callees.fill(undefined);
    this.#details.fill(undefined);
  }

  /** Adds a span; there must be room. `epoch`: the clock's wall() when its now() was 0. */
  write(span: OpenSpan, epoch: number): void {
    const at = this.count++;
    const { ids } = span;
    const from = at * SPAN_WORDS;
    for (let i = 0; i < SPAN_WORDS; i++) this.#ids[from + i] = ids[i]!;
    this.#seqs[at] = span.seq;
    this.#since[at] = epoch + span.since;
    this.#sent[at] = epoch + span.sent;
    this.#ended[at] = epoch + span.ended;
    this.#timeouts[at] = span.timeout_ms;
    this.#uses[at] = span.uses;
    this.#slots[at] = span.slot;
    this.#requestChars[at] = span.requestChars;
    this.#responseChars[at] = span.responseChars;
    this.#callers[at] = this.#charged(span.caller);
    this.#callees[at] = this.#charged(span.callee);
    this.#subjects[at] = this.#charged(span.subject);
    const { callerId } = span;
    const isUuid = writeUuid(callerId, this.#callerIds, at * UUID_WORDS);
    if (!isUuid && callerId !== "" && span.more.caller_invocation_id === null) {
      span.more.caller_invocation_id = callerId;
      span.more.bytes += 2 * callerId.length;
    }
    const { detail } = span;
    this.#details[at] = detail;
    if (detail) this.moreBytes += detail.bytes;
  }

  /** The span at a place. */
  read(at: number, callId: CallIdOf): CallSpan {
    const words = this.#ids.subarray(at * SPAN_WORDS, (at + 1) * SPAN_WORDS);
    const subject = this.#subjects[at]!;
    const callee = this.#callees[at];
    const detail = this.#details[at];
    const hasParent = words[PARENT_WORDS] !== 0 || words[PARENT_WORDS + 1] !== 0;
    const slot = this.#slots[at]!;
    return {
      seq: this.#seqs[at]!,
      trace_id: idText(words, 0, TRACE_WORDS),
      span_id: idText(words, TRACE_WORDS, PARENT_WORDS),
      parent_span_id: hasParent ? idText(words, PARENT_WORDS, SPAN_WORDS) : null,
      function_id: subject.function_id,
      namespace: subject.namespace,
      invocation_id: slot === NO_SLOT ? "" : callId(slot, this.#uses[at]!),
      caller_invocation_id: detail?.caller_invocation_id ??
        uuidText(this.#callerIds, at * UUID_WORDS),
      caller: viewOf(this.#callers[at]!, subject),
      callee: callee ? viewOf(callee, subject) : null,
      start_ms: this.#since[at]!,
      sent_ms: timeOf(this.#sent[at]!),
      end_ms: timeOf(this.#ended[at]!),
      error_code: detail?.error_code ?? null,
      error_message: detail?.error_message ?? null,
      ended_by: detail?.ended_by ?? null,
      timeout_ms: this.#timeouts[at]!,
      request_chars: charsOf(this.#requestChars[at]!),
      response_chars: charsOf(this.#responseChars[at]!),
      request: detail?.request ?? null,
      response: detail?.response ?? null,
      baggage: detail?.baggage ?? null,
      candidates: detail?.candidates ?? null,
    };
  }

  /** Number of the call at a place, in the order they started. */
  seqAt(at: number): number {
    return this.#seqs[at]!;
  }

  /** Whether a span is one of those asked for. */
  fits(at: number, { filter, words }: PreparedFilter, callId: CallIdOf): boolean {
    const { trace_id, span_id, invocation_id, function_id, since_ms, until_ms } = filter;
    const ids = at * SPAN_WORDS;
    if (trace_id !== undefined && !isEqual(this.#ids, ids, words, 0, TRACE_WORDS)) return false;
    if (
      span_id !== undefined &&
      !isEqual(this.#ids, ids + TRACE_WORDS, words, TRACE_WORDS, PARENT_WORDS)
    ) return false;
    if (function_id !== undefined && this.#subjects[at]!.function_id !== function_id) return false;
    const start = this.#since[at]!;
    if (since_ms !== undefined && start < since_ms) return false;
    if (until_ms !== undefined && start > until_ms) return false;
    return invocation_id === undefined || this.#isCall(at, invocation_id, words, callId);
  }

  #isCall(at: number, id: string, words: Uint32Array, callId: CallIdOf): boolean {
    const detail = this.#details[at];
    if (detail?.caller_invocation_id != null) {
      if (detail.caller_invocation_id === id) return true;
    } else if (isEqual(this.#callerIds, at * UUID_WORDS, words, SPAN_WORDS, words.length)) {
      return true;
    }
    const slot = this.#slots[at]!;
    return slot === words[SPAN_WORDS] && slot !== NO_SLOT && callId(slot, this.#uses[at]!) === id;
  }

  #charged<Shared extends Party | Subject>(shared: Shared | undefined): Shared | undefined {
    if (shared && shared.page !== this.number) {
      shared.page = this.number;
      this.moreBytes += shared.bytes;
    }
    return shared;
  }
}

/** Looks at a filter; `undefined` when nothing can fit it. */
export function prepareFilter(filter: CallFilter): PreparedFilter | undefined {
  const words = new Uint32Array(SPAN_WORDS + UUID_WORDS);
  const { trace_id, span_id, invocation_id } = filter;
  if (trace_id !== undefined && !readId(trace_id, words, 0, TRACE_WORDS)) return undefined;
  if (span_id !== undefined && !readId(span_id, words, TRACE_WORDS, PARENT_WORDS)) return undefined;
  if (invocation_id !== undefined) {
    if (invocation_id === "") return undefined;
    writeUuid(invocation_id, words, SPAN_WORDS);
  }
  return { filter, words };
}

/** Writes a UUID in lower case as four words; zeros and `false` when the text is none. */
function writeUuid(text: string, words: Uint32Array, to: number): boolean {
  if (text.length === UUID_CHARS && hasDashes(text)) {
    const first = hexAt(text, 0, 8);
    const [second, third] = [hexAt(text, 9, 4), hexAt(text, 14, 4)];
    const [fourth, fifth] = [hexAt(text, 19, 4), hexAt(text, 24, 4)];
    const last = hexAt(text, 28, 8);
    if (first >= 0 && second >= 0 && third >= 0 && fourth >= 0 && fifth >= 0 && last >= 0) {
      words[to] = first;
      words[to + 1] = second * 0x10000 + third;
      words[to + 2] = fourth * 0x10000 + fifth;
      words[to + 3] = last;
      return first + second + third + fourth + fifth + last > 0;
    }
  }
  words.fill(0, to, to + UUID_WORDS);
  return false;
}

function hasDashes(text: string): boolean {
  return text.charCodeAt(8) === DASH && text.charCodeAt(13) === DASH &&
    text.charCodeAt(18) === DASH && text.charCodeAt(23) === DASH;
}

/** `null` for zeros. */
function uuidText(words: Uint32Array, from: number): string | null {
  const text = idText(words, from, from + UUID_WORDS);
  if (text === "0".repeat(32)) return null;
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]]
    .map(([start, end]) => text.slice(start, end)).join("-");
}

function isEqual(a: Uint32Array, at: number, b: Uint32Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (a[at + i - from] !== b[i]) return false;
  return true;
}

function viewOf({ worker_id, name }: Party, { function_id }: Subject): {
  worker_id: string;
  name: string;
} {
  return { worker_id, name: name !== "" ? name : function_id.split("::", 1)[0]! };
}

function timeOf(time: number): number | null {
  return Number.isNaN(time) ? null : time;
}

function charsOf(chars: number): number | null {
  return chars < 0 ? null : chars;
}
