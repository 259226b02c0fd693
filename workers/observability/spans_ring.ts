/**
 * Spans that the router does not keep itself: those of workers and built-in workers, and what was
 * read back from disk. The oldest make room; memory is bounded in bytes.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/protocol.ts";
import { TurnoverMap } from "../../sdk/typescript/turnover_map.ts";
import { WorkSpan } from "./spans_made.ts";
import type { StoredSpan } from "./spans_stored.ts";

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
    const { trace_id, span_id } = span;
    const trace = this.#byTrace.get(trace_id);
    if (trace && has(trace, span_id)) return false;
    const bytes = bytesOf(span);
    if (bytes > this.#bytesMax) return false;
    if (!trace) this.#byTrace.set(trace_id, span);
    else if (trace instanceof Map) trace.set(span_id, span);
    else this.#byTrace.set(trace_id, new Map([[trace.span_id, trace], [span_id, span]]));
    this.#kept.push(span);
    this.#costs.push(bytes);
    this.#seq++;
    this.#bytes += bytes;
    this.#makeRoom();
    return true;
  }

  /** The spans of a trace, in the order of their coming. */
  trace(trace_id: string): StoredSpan[] {
    const trace = this.#byTrace.get(trace_id);
    if (!trace) return [];
    return trace instanceof Map ? [...trace.values()] : [trace];
  }

  /** One span, if it is there. */
  span(trace_id: string, span_id: string): StoredSpan | undefined {
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
    this.#bytes = 0;
    this.#byTrace.clear();
  }

  #makeRoom(): void {
    while (this.#bytes > this.#bytesMax) this.#dropOldest();
    if (this.#head > 1_024 && this.#head * 2 > this.#kept.length) {
      this.#kept.splice(0, this.#head);
      this.#costs.splice(0, this.#head);
      this.#head = 0;
    }
  }

  #dropOldest(): void {
    const at = this.#head++;
    const span = this.#kept[at]!;
    this.#kept[at] = undefined; // Else it would stay until the places before the head are let go.
    this.#bytes -= this.#costs[at]!;
    const trace = this.#byTrace.get(span.trace_id);
    if (trace instanceof Map && trace.size > 1) trace.delete(span.span_id);
    else this.#byTrace.take(span.trace_id);
  }
}

function has(trace: StoredSpan | Map<string, StoredSpan>, span_id: string): boolean {
  return trace instanceof Map ? trace.has(span_id) : trace.span_id === span_id;
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
