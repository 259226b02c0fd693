/**
 * The calls that ended, in the order they did; the oldest make room.
 *
 * A row of pages: spans are written to the last one, and the first one goes as a whole when the
 * memory is used up. Its arrays serve the next page.
 *
 * @module
 */
import { TRACE_PAGE_SPANS_MAX } from "../../sdk/typescript/limits.ts";
import type { CallSpan } from "../ports/telemetry.ts";
import type { OpenSpan } from "./open_span.ts";
import { type CallIdOf, SPAN_BYTES, SpanPage } from "./span_page.ts";

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

  /** Makes an empty one; of more than `bytes` it forgets the oldest. `total`: recorded before. */
  constructor(bytes: number, total = 0, overwritten = 0) {
    this.#bytesMax = bytes;
    this.#pageSize = Math.min(TRACE_PAGE_SPANS_MAX, Math.floor(bytes / SPAN_BYTES / PAGES));
    this.#recorded = total;
    this.#overwritten = overwritten;
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

  /** Adds a span. `epoch`: the clock's wall() when its now() was 0. */
  write(span: OpenSpan, epoch: number): void {
    this.#recorded++;
    if (this.#pageSize < 1) {
      this.#overwritten++;
      return;
    }
    let page = this.#pages.at(-1);
    if (!page || isFull(page, this.#bytesMax / PAGES)) page = this.#next();
    page.write(span, epoch);
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

  /** Takes over what another ring holds, as far as it fits; that one is of no use any more. */
  adopt(other: SpanRing): void {
    this.#pages = other.#pages;
    this.#number = other.#number;
    this.#spans = other.#spans;
    this.#bytes = this.#pages.slice(0, -1).reduce((sum, page) => sum + costOf(page), 0);
    const last = this.#pages.at(-1);
    while (last && this.#pages.length > 0 && this.#bytes + costOf(last) > this.#bytesMax) {
      this.#drop();
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#pages = [];
    this.#bytes = 0;
    this.#spans = 0;
  }

  #next(): SpanPage {
    const last = this.#pages.at(-1);
    if (last) this.#bytes += costOf(last);
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
    if (this.#pages.length > 0) this.#bytes -= costOf(first);
    else this.#bytes = 0;
    this.#spans -= first.count;
    this.#overwritten += first.count;
    return first;
  }
}

function costOf({ size, moreBytes }: SpanPage): number {
  return size * SPAN_BYTES + moreBytes;
}

function isFull({ count, size, moreBytes }: SpanPage, moreBytesMax: number): boolean {
  return count >= size || moreBytes >= moreBytesMax;
}
