/**
 * The newest spans that fit, out of pages that are in the order of endings.
 *
 * @module
 */
import type { CallFilter, CallSpan } from "../ports/telemetry.ts";
import { type CallIdOf, prepareFilter, type SpanPage } from "./span_page.ts";

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
