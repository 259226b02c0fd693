/**
 * The spans of running calls, each in one row of an array.
 *
 * A row has what the call's record does not have: ids, sequence number, time of sending. It fills
 * one cache line, because with a thousand calls in flight memory access costs more than everything
 * else. Other fields are read from the call's record when it ends.
 *
 * @module
 */
import { textOf } from "../core/wire/bytes.ts";
import type { ObservedCall } from "../ports/call_observer.ts";
import type { MeteredFunction } from "./function_meters.ts";
import { SpanDetail, type SpanEndpoint } from "./span_detail.ts";
import { UUID_WORDS, writeUuid } from "./trace_ids.ts";

/** Offsets of the words in a row. For trace, span and parent see `trace_ids.ts`. */
export const OPEN_WORD = {
  trace: 0,
  span: 4,
  parent: 6,
  /** State bits, and the lower 32 bits of the call's uses, which identify the call. */
  state: 8,
  uses: 9,
  /** Characters of payload and result; {@linkcode NO_NUMBER} without one. */
  requestChars: 10,
  responseChars: 11,
  row: 16,
} as const;

/** Offsets of the 64-bit numbers, which follow the words in the same row. */
export const OPEN_NUMBER = {
  seq: 6,
  /** By the clock's now(); `NaN` until it is sent. */
  sent: 7,
  row: 8,
} as const;

/** Marks a missing number. */
export const NO_NUMBER = 0xffffffff;

/** Row for calls that were never opened. */
export const UNOPENED_PLACE = 0;

/** Bits of the state; 0 marks a free row. */
const OPEN = 1;
const SAMPLED = 2;
const DETAILED = 4;
const SENT = 8;
const HAS_MORE = 16;

const ROWS_FIRST = 64;

/** The rows of running calls, by index. */
export class OpenSpans {
  /** All rows, contiguous; replaced when the table grows. */
  words: Uint32Array<ArrayBuffer> = new Uint32Array(0);
  /** The same memory. */
  numbers: Float64Array<ArrayBuffer> = new Float64Array(0);
  /** Of the span prepared last: end time, and the caller's id or zeros. */
  ended = NaN;
  readonly callerId: Uint32Array = new Uint32Array(UUID_WORDS);
  #rows = 0;
  // By row. Not cleared when a call ends: the next call often has the same endpoints, and an
  // unchanged reference causes no work for the garbage collector.
  readonly #calls: (ObservedCall | undefined)[] = [];
  readonly #callers: (SpanEndpoint | undefined)[] = [];
  readonly #callees: (SpanEndpoint | undefined)[] = [];
  readonly #details: (SpanDetail | undefined)[] = [];

  constructor() {
    this.#grow(ROWS_FIRST);
  }

  /** Starts the span of a call; returns its row. */
  open(call: ObservedCall, caller: SpanEndpoint, place: number = call.slot + 1): number {
    if (place >= this.#rows) this.#grow(place + 1);
    const row = place * OPEN_WORD.row;
    this.words[row + OPEN_WORD.state] = OPEN;
    this.words[row + OPEN_WORD.uses] = call.uses;
    if (this.#calls[place] !== call) this.#calls[place] = call;
    if (this.#callers[place] !== caller) this.#callers[place] = caller;
    return place;
  }

  /** Row of a running call; -1 when it has none. */
  find({ slot, uses }: ObservedCall): number {
    const place = slot + 1;
    if (place >= this.#rows) return -1;
    const row = place * OPEN_WORD.row;
    if (this.words[row + OPEN_WORD.state] === 0) return -1;
    return this.words[row + OPEN_WORD.uses] === uses >>> 0 ? place : -1;
  }

  /** Marks a span as sampled, with its sequence number. */
  sample(place: number, seq: number): void {
    const row = place * OPEN_WORD.row;
    this.words[row + OPEN_WORD.state]! |= SAMPLED;
    this.words[row + OPEN_WORD.requestChars] = NO_NUMBER;
    this.words[row + OPEN_WORD.responseChars] = NO_NUMBER;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.seq] = seq;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.sent] = NaN;
  }

  /** Marks that payloads and candidates are kept. */
  detail(place: number): void {
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= DETAILED;
  }

  /** Records that the call was sent. */
  send(place: number, callee: SpanEndpoint, now: number): void {
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= SENT;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.sent] = now;
    if (this.#callees[place] !== callee) this.#callees[place] = callee;
  }

  /** Whether the span is recorded. */
  isSampled(place: number): boolean {
    return this.#has(place, SAMPLED);
  }

  /** Whether payloads and candidates are kept. */
  isDetailed(place: number): boolean {
    return this.#has(place, DETAILED);
  }

  /** The call in a row. */
  callAt(place: number): ObservedCall {
    return this.#calls[place]!;
  }

  /** The function of the call in a row. */
  subjectAt(place: number): MeteredFunction {
    return this.#calls[place]!.subject as MeteredFunction;
  }

  /** The caller of the call in a row. */
  callerAt(place: number): SpanEndpoint {
    return this.#callers[place]!;
  }

  /** The callee of the call in a row; `undefined` before it is sent. */
  calleeAt(place: number): SpanEndpoint | undefined {
    return this.#has(place, SENT) ? this.#callees[place] : undefined;
  }

  /** The details of the span in a row, if it has any. */
  detailAt(place: number): SpanDetail | undefined {
    return this.#has(place, HAS_MORE) ? this.#details[place] : undefined;
  }

  /** The details of the span in a row, created if necessary. */
  more(place: number): SpanDetail {
    const known = this.detailAt(place);
    if (known) return known;
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= HAS_MORE;
    return this.#details[place] = new SpanDetail();
  }

  /** Sets {@linkcode ended} and {@linkcode callerId} before the span is written to a page. */
  prepare(place: number, ended: number): void {
    const { callerId, callerIdAt, callerIdBytes } = this.callAt(place);
    const end = callerIdAt + callerIdBytes;
    this.ended = ended;
    if (writeUuid(callerId, callerIdAt, end, this.callerId, 0) || callerIdBytes === 0) return;
    this.more(place).setCallerId(textOf(callerId, callerIdAt, end));
  }

  /** Frees a row. */
  close(place: number): void {
    if (this.#has(place, HAS_MORE)) this.#details[place] = undefined;
    this.words[place * OPEN_WORD.row + OPEN_WORD.state] = 0;
  }

  /** The rows of spans that are recorded. */
  *sampled(): Generator<number> {
    for (let place = 0; place < this.#rows; place++) if (this.isSampled(place)) yield place;
  }

  #has(place: number, bit: number): boolean {
    return (this.words[place * OPEN_WORD.row + OPEN_WORD.state]! & bit) !== 0;
  }

  #grow(least: number): void {
    let rows = ROWS_FIRST;
    while (rows < least) rows *= 2;
    this.#rows = rows;
    const words = new Uint32Array(rows * OPEN_WORD.row);
    words.set(this.words);
    this.words = words;
    this.numbers = new Float64Array(words.buffer);
    for (const list of [this.#calls, this.#callers, this.#callees, this.#details]) {
      while (list.length < rows) list.push(undefined);
    }
  }
}
