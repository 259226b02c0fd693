/**
 * The calls that ended, oldest first, within a memory limit.
 *
 * A queue of pages: spans are written to the last page, and the first one is dropped as a whole
 * when the memory is used up. The next page reuses its arrays.
 *
 * @module
 */
import type { CallFilter, CallSpan } from "../ports/telemetry.ts";
import type { MeteredFunction } from "./function_meters.ts";
import type { OpenSpans } from "./open_spans.ts";
import type { SpanDetail, SpanEndpoint } from "./span_detail.ts";
import { type CallIdOf, prepareFilter, SPAN_BYTES, SpanPage } from "./span_page.ts";

/** Spans per page; a page is dropped as a whole. */
const TRACE_PAGE_SPANS_MAX = 4_096;

/** Least number of pages that the memory is divided into. */
const PAGES = 16;

/** Recorded calls within a memory limit. */
export class SpanRing {
  readonly #bytesMax: number;
  readonly #pageSize: number;
  /** Oldest first. */
  #pages: SpanPage[] = [];
  /** Memory of all pages but the last. */
  #bytes = 0;
  #number = 0;
  #spans = 0;
  #recorded = 0;
  #overwritten = 0;

  /** Drops the oldest spans beyond `bytes`. */
  constructor(bytes: number) {
    this.#bytesMax = bytes;
    this.#pageSize = Math.min(TRACE_PAGE_SPANS_MAX, Math.floor(bytes / SPAN_BYTES / PAGES));
  }

  /** Number of spans. */
  get spans(): number {
    return this.#spans;
  }

  /** Number of spans without details that fit. */
  get capacity(): number {
    const bytes = this.#bytesMax * (PAGES - 1) / PAGES;
    const pages = Math.floor(bytes / SPAN_BYTES / Math.max(1, this.#pageSize));
    return this.#pageSize * pages;
  }

  /** Spans written since the start; also the number of the newest span. */
  get recorded(): number {
    return this.#recorded;
  }

  /** Spans dropped since the start. */
  get overwritten(): number {
    return this.#overwritten;
  }

  /** Limit of the details of one span. */
  get detailBytesMax(): number {
    return this.#bytesMax / PAGES / 4;
  }

  /** Adds a prepared span. `epoch`: the clock's wall() at now() 0. */
  write(open: OpenSpans, place: number, epoch: number): void {
    this.#recorded++;
    const subject = open.subjectAt(place);
    const caller = open.callerAt(place);
    const page = this.#pageFor(subject, caller, open.calleeAt(place), open.detailAt(place));
    if (!page) return void this.#overwritten++;
    page.write(open, place, epoch);
    this.#spans++;
  }

  /** Spans with a number above `cursor`, oldest first. */
  after(cursor: number, limit: number, callId: CallIdOf): { spans: CallSpan[]; cursor: number } {
    const spans: CallSpan[] = [];
    let number = this.#recorded - this.#spans;
    for (const page of this.#pages) {
      if (number + page.count > cursor) {
        for (let at = Math.max(0, cursor - number); at < page.count; at++) {
          if (spans.length >= limit) return { spans, cursor: number + at };
          spans.push(page.read(at, callId));
        }
      }
      number += page.count;
    }
    return { spans, cursor: this.#recorded };
  }

  /** The pages, oldest first. */
  get pages(): readonly SpanPage[] {
    return this.#pages;
  }

  /** A ring of another size with the newest spans and the same counters; replaces this one. */
  resized(bytes: number): SpanRing {
    const ring = new SpanRing(bytes);
    ring.#number = this.#number;
    ring.#recorded = this.#recorded;
    ring.#overwritten = this.#overwritten;
    for (const from of this.#pages) {
      for (let at = 0; at < from.count; at++) {
        const { subject, caller, callee, detail } = from.linksAt(at);
        const page = ring.#pageFor(subject, caller, callee, detail);
        page?.copy(from, at);
        if (page) ring.#spans++;
        else ring.#overwritten++;
      }
    }
    return ring;
  }

  /** Removes all spans. */
  clear(): void {
    this.#pages = [];
    this.#bytes = 0;
    this.#spans = 0;
  }

  /** The page for a span; `undefined` when it does not fit into any. */
  #pageFor(
    subject: MeteredFunction,
    caller: SpanEndpoint,
    callee: SpanEndpoint | undefined,
    detail: SpanDetail | undefined,
  ): SpanPage | undefined {
    const max = this.#bytesMax / PAGES;
    const last = this.#pages.at(-1);
    if (last && last.count < last.size) {
      const more = last.extraBytesOf(subject, caller, callee, detail);
      if (last.extraBytes + more <= max) return last;
    }
    if (this.#pageSize < 1) return undefined;
    const next = this.#next();
    return next.extraBytesOf(subject, caller, callee, detail) <= max ? next : undefined;
  }

  #next(): SpanPage {
    const last = this.#pages.at(-1);
    if (last) this.#bytes += pageBytes(last);
    let free: SpanPage | undefined;
    const room = this.#pageSize * SPAN_BYTES + this.#bytesMax / PAGES;
    while (this.#pages.length > 0 && this.#bytes + room > this.#bytesMax) free = this.#drop();
    const canReuse = free?.size === this.#pageSize && free.readers === 0;
    const page = canReuse ? free! : new SpanPage(this.#pageSize);
    page.reuse(++this.#number);
    this.#pages.push(page);
    return page;
  }

  #drop(): SpanPage {
    const first = this.#pages.shift()!;
    if (this.#pages.length > 0) this.#bytes -= pageBytes(first);
    else this.#bytes = 0;
    this.#spans -= first.count;
    this.#overwritten += first.count;
    return first;
  }
}

function pageBytes({ size, extraBytes }: SpanPage): number {
  return size * SPAN_BYTES + extraBytes;
}

/** A matching span before it becomes an object. */
interface Found {
  readonly page: SpanPage;
  readonly at: number;
  readonly seq: number;
}

/**
 * The matching calls in `pages` that started last, at most `limit`, newest first. Fast when the
 * newest pages come first.
 */
export function findSpans(
  pages: readonly SpanPage[],
  filter: CallFilter,
  limit: number,
  callId: CallIdOf,
): CallSpan[] {
  const prepared = prepareFilter(filter);
  if (!prepared || !(limit >= 1)) return [];
  let found: Found[] = [];
  let floor = 0;
  for (const page of pages) {
    for (let at = page.count - 1; at >= 0; at--) {
      const seq = page.seqAt(at);
      if (seq <= floor || !page.fits(at, prepared, callId)) continue;
      found.push({ page, at, seq });
      // Span ids are unique, and most queries ask for a call that ended just now.
      if (filter.span_id !== undefined) return [page.read(at, callId)];
      if (found.length < 2 * limit) continue;
      found = newest(found, limit);
      floor = found.at(-1)!.seq;
    }
  }
  return newest(found, limit).map(({ page, at }) => page.read(at, callId));
}

function newest(found: Found[], limit: number): Found[] {
  return found.sort((a, b) => b.seq - a.seq).slice(0, limit);
}
