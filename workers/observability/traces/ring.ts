/**
 * Spans that the router does not keep itself: those of workers and built-in workers, and what was
 * read back from disk. The oldest make room; memory is bounded in bytes.
 *
 * @module
 */
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { TurnoverMap } from "../../../sdk/typescript/turnover_map.ts";
import { SPANS_UNINDEXED_MAX } from "../../limits.ts";
import { type StoredSpan, WorkSpan } from "./span.ts";

/** Around the texts of a span: its objects, and its places in the tables. */
const SPAN_BYTES = 600;
/** Around the texts of an attribute. */
const ATTRIBUTE_BYTES = 80;

/** See the top of this file. */
export class SpanRing {
  #bytesMax: number;
  #bytes = 0;
  #seq = 0;
  /** The oldest first; those before `#head` are gone. What each costs is beside it. */
  #kept: (StoredSpan | undefined)[] = [];
  #costs: number[] = [];
  #head = 0;
  /**
   * Those before are in the table below. Others come there when somebody asks for a trace: most
   * spans of HTTP requests are gone before, which saves 7 % of a request's CPU.
   */
  #indexed = 0;
  /** Most traces have but one span here, which needs no map of its own. */
  readonly #byTrace = new TurnoverMap<string, StoredSpan | Map<string, StoredSpan>>();

  /** Keeps so many bytes. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Spans that are there. */
  get size(): number {
    return this.#kept.length - this.#head;
  }

  /** What they cost, about. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of the newest span. */
  get seq(): number {
    return this.#seq;
  }

  /** When the oldest span began; `null` when there is none. */
  get oldestMs(): number | null {
    return this.#kept[this.#head]?.start_ms ?? null;
  }

  /** Changes how much is kept; the oldest go at once. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#makeRoom();
  }

  /** Keeps a span; one whose id is there already in its trace is left out: `false`. */
  add(span: StoredSpan): boolean {
    // The engine's own have ids that were made for them.
    if (!(span instanceof WorkSpan) && this.span(span.trace_id, span.span_id)) return false;
    const bytes = bytesOf(span);
    if (bytes > this.#bytesMax) return false;
    this.#kept.push(span);
    this.#costs.push(bytes);
    this.#seq++;
    this.#bytes += bytes;
    this.#makeRoom();
    const unindexed = this.#kept.length - Math.max(this.#indexed, this.#head);
    if (unindexed > SPANS_UNINDEXED_MAX) this.#index(this.#kept.length - SPANS_UNINDEXED_MAX);
    return true;
  }

  /** The spans of a trace, in the order of their coming. */
  trace(trace_id: string): StoredSpan[] {
    this.#index();
    const trace = this.#byTrace.get(trace_id);
    if (!trace) return [];
    return trace instanceof Map ? [...trace.values()] : [trace];
  }

  /** One span, if it is there. */
  span(trace_id: string, span_id: string): StoredSpan | undefined {
    this.#index();
    const trace = this.#byTrace.get(trace_id);
    if (trace instanceof Map) return trace.get(span_id);
    return trace?.span_id === span_id ? trace : undefined;
  }

  /** Spans that came after the one numbered `seq`, the oldest first. */
  *since(seq: number): Iterable<StoredSpan> {
    const start = this.#kept.length - Math.min(this.size, this.#seq - seq);
    for (let at = start; at < this.#kept.length; at++) yield this.#kept[at]!;
  }

  /** The newest spans that fit, newest first. */
  find(fits: (span: StoredSpan) => boolean, limit: number): StoredSpan[] {
    const found: StoredSpan[] = [];
    for (let at = this.#kept.length - 1; at >= this.#head && found.length < limit; at--) {
      const span = this.#kept[at]!;
      if (fits(span)) found.push(span);
    }
    return found;
  }

  /** Forgets all. */
  clear(): void {
    this.#kept = [];
    this.#costs = [];
    this.#head = 0;
    this.#indexed = 0;
    this.#bytes = 0;
    this.#byTrace.clear();
  }

  /** Puts into the table what came since somebody asked last, up to a place. */
  #index(end: number = this.#kept.length): void {
    for (let at = Math.max(this.#indexed, this.#head); at < end; at++) {
      const span = this.#kept[at]!;
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

  #makeRoom(): void {
    while (this.#bytes > this.#bytesMax) this.#dropOldest();
    if (this.#head > 1_024 && this.#head * 2 > this.#kept.length) {
      this.#kept.splice(0, this.#head);
      this.#costs.splice(0, this.#head);
      this.#indexed = Math.max(0, this.#indexed - this.#head);
      this.#head = 0;
    }
  }

  #dropOldest(): void {
    const at = this.#head++;
    const span = this.#kept[at]!;
    this.#kept[at] = undefined; // Else it would stay until the places before the head are let go.
    this.#bytes -= this.#costs[at]!;
    if (at >= this.#indexed) return;
    const trace = this.#byTrace.get(span.trace_id);
    if (trace instanceof Map && trace.size > 1) trace.delete(span.span_id);
    else this.#byTrace.take(span.trace_id);
  }
}

/** What a span costs in memory, about. */
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
