/**
 * The calls that are being recorded, each in a row of one array.
 *
 * A row has what nobody else knows of a running call: ids, its number, when it was sent. It is one
 * line of the processor's memory, since with a thousand calls in flight fetching memory costs more
 * than everything that is done with it. The rest is the call's own and is read when it ends.
 *
 * @module
 */
import { textOf } from "../core/wire/bytes.ts";
import type { ObservedCall } from "../ports/call_observer.ts";
import type { MeteredFunction } from "./function_meters.ts";
import { SpanDetail, type SpanEndpoint } from "./span_detail.ts";
import { UUID_WORDS, writeUuid } from "./trace_ids.ts";

/** Places in the words of a row. Trace, span and parent: see `traceparent.ts`. */
export const OPEN_WORD = {
  trace: 0,
  span: 4,
  parent: 6,
  /** What holds of it, and the call's uses, by which it is known again: the lower 32 bits. */
  state: 8,
  uses: 9,
  /** Characters of payload and result; {@linkcode NO_NUMBER}: none. */
  requestChars: 10,
  responseChars: 11,
  row: 16,
} as const;

/** Places in the same row as wide numbers, which lie behind the words. */
export const OPEN_NUMBER = {
  seq: 6,
  /** On the clock's now(); `NaN`: not yet. */
  sent: 7,
  row: 8,
} as const;

/** Stands for a number that there is not. */
export const NO_NUMBER = 0xffffffff;

/** The place for calls that end as soon as they begin. */
export const UNOPENED_PLACE = 0;

/** Bits of a state; 0: the row is nobody's. */
const OPEN = 1;
const SAMPLED = 2;
const DETAILED = 4;
const SENT = 8;
const HAS_MORE = 16;

const ROWS_FIRST = 64;

/** The rows, each at a place of its own. */
export class OpenSpans {
  /** All rows, one behind the other; another array when there are more. */
  words: Uint32Array<ArrayBuffer> = new Uint32Array(0);
  /** The same memory. */
  numbers: Float64Array<ArrayBuffer> = new Float64Array(0);
  /** Of the span that was last prepared: when it ended, and its caller's id or zeros. */
  ended = NaN;
  readonly callerId: Uint32Array = new Uint32Array(UUID_WORDS);
  #rows = 0;
  // By place. They are left as they are when a call ends: the next one is often of the same
  // endpoints, and what is not written needs no looking after by the collector of garbage.
  readonly #calls: (ObservedCall | undefined)[] = [];
  readonly #callers: (SpanEndpoint | undefined)[] = [];
  readonly #callees: (SpanEndpoint | undefined)[] = [];
  readonly #details: (SpanDetail | undefined)[] = [];

  /** Makes one without rows. */
  constructor() {
    this.#grow(ROWS_FIRST);
  }

  /** Begins the span of a call; what it gives is its place. */
  open(call: ObservedCall, caller: SpanEndpoint, place: number = call.slot + 1): number {
    if (place >= this.#rows) this.#grow(place + 1);
    const row = place * OPEN_WORD.row;
    this.words[row + OPEN_WORD.state] = OPEN;
    this.words[row + OPEN_WORD.uses] = call.uses;
    if (this.#calls[place] !== call) this.#calls[place] = call;
    if (this.#callers[place] !== caller) this.#callers[place] = caller;
    return place;
  }

  /** The place of a running call; -1 when it has none. */
  find({ slot, uses }: ObservedCall): number {
    const place = slot + 1;
    if (place >= this.#rows) return -1;
    const row = place * OPEN_WORD.row;
    if (this.words[row + OPEN_WORD.state] === 0) return -1;
    return this.words[row + OPEN_WORD.uses] === uses >>> 0 ? place : -1;
  }

  /** It is to be recorded under this number. */
  sample(place: number, seq: number): void {
    const row = place * OPEN_WORD.row;
    this.words[row + OPEN_WORD.state]! |= SAMPLED;
    this.words[row + OPEN_WORD.requestChars] = NO_NUMBER;
    this.words[row + OPEN_WORD.responseChars] = NO_NUMBER;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.seq] = seq;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.sent] = NaN;
  }

  /** Its payloads and candidates are to be kept. */
  detail(place: number): void {
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= DETAILED;
  }

  /** It went to whoever runs it. */
  send(place: number, callee: SpanEndpoint, now: number): void {
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= SENT;
    this.numbers[place * OPEN_NUMBER.row + OPEN_NUMBER.sent] = now;
    if (this.#callees[place] !== callee) this.#callees[place] = callee;
  }

  /** Whether it is recorded. */
  isSampled(place: number): boolean {
    return this.#has(place, SAMPLED);
  }

  /** Whether payloads and candidates are kept. */
  isDetailed(place: number): boolean {
    return this.#has(place, DETAILED);
  }

  /** Its call. */
  callAt(place: number): ObservedCall {
    return this.#calls[place]!;
  }

  /** Its function. */
  subjectAt(place: number): MeteredFunction {
    return this.#calls[place]!.subject as MeteredFunction;
  }

  /** Who called. */
  callerAt(place: number): SpanEndpoint {
    return this.#callers[place]!;
  }

  /** Who runs it, if anybody. */
  calleeAt(place: number): SpanEndpoint | undefined {
    return this.#has(place, SENT) ? this.#callees[place] : undefined;
  }

  /** What only some have, if it has. */
  detailAt(place: number): SpanDetail | undefined {
    return this.#has(place, HAS_MORE) ? this.#details[place] : undefined;
  }

  /** The same, made with the first of it. */
  more(place: number): SpanDetail {
    const known = this.detailAt(place);
    if (known) return known;
    this.words[place * OPEN_WORD.row + OPEN_WORD.state]! |= HAS_MORE;
    return this.#details[place] = new SpanDetail();
  }

  /** Before it is written to a page: when it ended, and how its caller calls it. */
  prepare(place: number, ended: number): void {
    const { callerId, callerIdBytes } = this.callAt(place);
    this.ended = ended;
    if (writeUuid(callerId, 0, callerIdBytes, this.callerId, 0) || callerIdBytes === 0) return;
    this.more(place).setCallerId(textOf(callerId, 0, callerIdBytes));
  }

  /** The call is over. */
  close(place: number): void {
    if (this.#has(place, HAS_MORE)) this.#details[place] = undefined;
    this.words[place * OPEN_WORD.row + OPEN_WORD.state] = 0;
  }

  /** The places of those that are recorded. */
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
