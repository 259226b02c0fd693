/**
 * A ring of the spans that the router does not store: those of workers and built-in workers, and
 * those restored from disk. Bounded in bytes; the oldest spans are dropped.
 *
 * @module
 */
import { TurnoverMap } from "../../../sdk/typescript/turnover_map.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { type StoredSpan, WorkSpan } from "./span.ts";

/** Spans that wait for being indexed by trace; a reader indexes them first. */
export const SPANS_UNINDEXED_MAX = 32_768;

/** Memory of a span without its texts, entries in tables included. */
const SPAN_BYTES = 600;
/** Memory of an attribute without its texts. */
const ATTRIBUTE_BYTES = 80;

/** The newest spans in order of arrival, found by trace id and by number. */
export class SpanRing {
  #bytesMax: number;
  #bytes = 0;
  #seq = 0;
  /** The oldest first; spans before `#head` have been dropped. */
  #spans: (StoredSpan | undefined)[] = [];
  /** Estimated memory of each span. */
  #costs: number[] = [];
  #head = 0;
  /**
   * Spans before this position are in `#byTrace`. The others are added when a trace is looked up:
   * most spans of HTTP requests are dropped before that, which saves 7 % of a request's CPU.
   */
  #indexed = 0;
  /** Most traces have a single span here, which needs no map of its own. */
  readonly #byTrace = new TurnoverMap<string, StoredSpan | Map<string, StoredSpan>>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#spans.length - this.#head;
  }

  /** Estimated memory of the spans. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of the newest span; spans are numbered from 1. */
  get seq(): number {
    return this.#seq;
  }

  /** Start of the oldest span; `null` if there are none. */
  get oldestMs(): number | null {
    return this.#spans[this.#head]?.start_ms ?? null;
  }

  /** Changes the bound; drops the oldest spans at once if needed. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#evict();
  }

  /** Stores a span; `false` for a duplicate within its trace, and for one larger than the bound. */
  add(span: StoredSpan): boolean {
    // Ids of the engine's own spans are unique.
    if (!(span instanceof WorkSpan) && this.span(span.trace_id, span.span_id)) return false;
    const bytes = bytesOf(span);
    if (bytes > this.#bytesMax) return false;
    this.#spans.push(span);
    this.#costs.push(bytes);
    this.#seq++;
    this.#bytes += bytes;
    this.#evict();
    const unindexed = this.#spans.length - Math.max(this.#indexed, this.#head);
    if (unindexed > SPANS_UNINDEXED_MAX) this.#index(this.#spans.length - SPANS_UNINDEXED_MAX);
    return true;
  }

  /** The spans of a trace, in order of arrival. */
  trace(trace_id: string): StoredSpan[] {
    this.#index();
    const trace = this.#byTrace.get(trace_id);
    if (!trace) return [];
    return trace instanceof Map ? [...trace.values()] : [trace];
  }

  /** One span, if stored. */
  span(trace_id: string, span_id: string): StoredSpan | undefined {
    this.#index();
    const trace = this.#byTrace.get(trace_id);
    if (trace instanceof Map) return trace.get(span_id);
    return trace?.span_id === span_id ? trace : undefined;
  }

  /** The spans after number `seq`, the oldest first. */
  *since(seq: number): Iterable<StoredSpan> {
    const start = this.#spans.length - Math.min(this.size, this.#seq - seq);
    for (let at = start; at < this.#spans.length; at++) yield this.#spans[at]!;
  }

  /** The span with a number; `undefined` after it was dropped. */
  at(seq: number): StoredSpan | undefined {
    const at = this.#spans.length - 1 - (this.#seq - seq);
    return at >= this.#head ? this.#spans[at] : undefined;
  }

  /** The newest matching spans, the newest first. */
  find(fits: (span: StoredSpan) => boolean, limit: number): StoredSpan[] {
    const found: StoredSpan[] = [];
    for (let at = this.#spans.length - 1; at >= this.#head && found.length < limit; at--) {
      const span = this.#spans[at]!;
      if (fits(span)) found.push(span);
    }
    return found;
  }

  clear(): void {
    this.#spans = [];
    this.#costs = [];
    this.#head = 0;
    this.#indexed = 0;
    this.#bytes = 0;
    this.#byTrace.clear();
  }

  /** Adds spans up to a position to `#byTrace`. */
  #index(end: number = this.#spans.length): void {
    for (let at = Math.max(this.#indexed, this.#head); at < end; at++) {
      const span = this.#spans[at]!;
      const trace = this.#byTrace.get(span.trace_id);
      if (!trace) this.#byTrace.set(span.trace_id, span);
      else if (trace instanceof Map) trace.set(span.span_id, span);
      else {
        const both: [string, StoredSpan][] = [[trace.span_id, trace], [span.span_id, span]];
        this.#byTrace.set(span.trace_id, new Map(both));
      }
    }
    this.#indexed = end;
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax) this.#dropOldest();
    if (this.#head > 1_024 && this.#head * 2 > this.#spans.length) {
      this.#spans.splice(0, this.#head);
      this.#costs.splice(0, this.#head);
      this.#indexed = Math.max(0, this.#indexed - this.#head);
      this.#head = 0;
    }
  }

  #dropOldest(): void {
    const at = this.#head++;
    const span = this.#spans[at]!;
    this.#spans[at] = undefined; // Releases the span before the array is compacted.
    this.#bytes -= this.#costs[at]!;
    if (at >= this.#indexed) return;
    const trace = this.#byTrace.get(span.trace_id);
    if (trace instanceof Map && trace.size > 1) trace.delete(span.span_id);
    else this.#byTrace.take(span.trace_id);
  }
}

/** Estimates the memory of a span. */
export function bytesOf(span: StoredSpan): number {
  if (span instanceof WorkSpan) {
    const { chars, attributes } = span.size;
    return SPAN_BYTES + ATTRIBUTE_BYTES * attributes + 2 * chars;
  }
  let bytes = SPAN_BYTES + 2 * (span.name.length + (span.status_description?.length ?? 0));
  for (const [name, value] of span.attributes) {
    bytes += ATTRIBUTE_BYTES + 2 * (name.length + charsOf(value));
  }
  for (const each of [...span.events, ...span.links]) bytes += ATTRIBUTE_BYTES + 4 * charsOf(each);
  return bytes;
}

function charsOf(value: Json): number {
  if (typeof value === "string") return value.length;
  return value !== null && typeof value === "object" ? 4 * JSON.stringify(value).length : 8;
}
