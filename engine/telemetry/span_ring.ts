/**
 * The calls that ended, in the order they did; the oldest make room.
 *
 * A row of pages: spans are written to the last one, and the first one goes as a whole when the
 * memory is used up. Its arrays serve the next page.
 *
 * @module
 */
import { TRACE_PAGE_SPANS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { CallFilter, CallSpan } from "../ports/telemetry.ts";
import type { MeteredFunction } from "./function_meters.ts";
import type { OpenSpans } from "./open_spans.ts";
import type { SpanDetail, SpanEndpoint } from "./span_detail.ts";
import { type CallIdOf, prepareFilter, SPAN_BYTES, SpanPage } from "./span_page.ts";

/** The memory is divided into so many pages at least. */
const PAGES = 16;

/** Recorded calls within a bound of memory. */
export class SpanRing {
  readonly #bytesMax: number;
  readonly #pageSize: number;
  /** The oldest first. */
  #pages: SpanPage[] = [];
  /** Of all pages but the last. */
  #bytes = 0;
  #number = 0;
  #spans = 0;
  #recorded = 0;
  #overwritten = 0;

  /** Makes an empty one; of more than `bytes` it forgets the oldest. */
  constructor(bytes: number) {
    this.#bytesMax = bytes;
    this.#pageSize = Math.min(TRACE_PAGE_SPANS_MAX, Math.floor(bytes / SPAN_BYTES / PAGES));
  }

  /** Spans that it holds. */
  get spans(): number {
    return this.#spans;
  }

  /** Spans that fit when they have nothing besides. */
  get capacity(): number {
    const bytes = this.#bytesMax * (PAGES - 1) / PAGES;
    const pages = Math.floor(bytes / SPAN_BYTES / Math.max(1, this.#pageSize));
    return this.#pageSize * pages;
  }

  /** Spans ever written; the number of the newest one. */
  get recorded(): number {
    return this.#recorded;
  }

  /** Spans that had to make room. */
  get overwritten(): number {
    return this.#overwritten;
  }

  /** Most that one span may have besides. */
  get detailBytesMax(): number {
    return this.#bytesMax / PAGES / 4;
  }

  /** Adds a span that was prepared. `epoch`: the clock's wall() when its now() was 0. */
  write(open: OpenSpans, place: number, epoch: number): void {
    this.#recorded++;
    const subject = open.subjectAt(place);
    const caller = open.callerAt(place);
    const page = this.#pageFor(subject, caller, open.calleeAt(place), open.detailAt(place));
    if (!page) return void this.#overwritten++;
    page.write(open, place, epoch);
    this.#spans++;
  }

  /** Spans with a number above `cursor`, the oldest first. */
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

  /** Where they are, the newest endings last. */
  get pages(): readonly SpanPage[] {
    return this.#pages;
  }

  /** The same in another size: it holds the newest, and counts on. This one is of no use then. */
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

  /** Forgets everything. */
  clear(): void {
    this.#pages = [];
    this.#bytes = 0;
    this.#spans = 0;
  }

  /** The page to write such a span to; `undefined`: there is no room for it in any. */
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
    const page = free?.size === this.#pageSize ? free : new SpanPage(this.#pageSize);
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

/** A span that fits, before anybody makes an object of it. */
interface Found {
  readonly page: SpanPage;
  readonly at: number;
  readonly seq: number;
}

/**
 * The calls in `pages` that fit and started last, at most `limit`, the newest first. It is quick
 * when the pages come newest first.
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
      // There is one of each id, and most questions are about what ended just now.
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
