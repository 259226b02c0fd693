/**
 * Recorded calls at one moment, as {@linkcode CallRows} of the port: the pages themselves, which
 * are not reused while a reader holds them. Nothing is copied but the running calls.
 *
 * @module
 */
import type { CallRows, CallSpan } from "../ports/telemetry.ts";
import type { CallIdOf, SpanPage } from "./span_page.ts";

/** Consecutive rows in one page. */
interface Part {
  readonly page: SpanPage;
  /** First row, and the one after the last. */
  readonly start: number;
  readonly end: number;
  /** Place of the first row in the page. */
  readonly from: number;
  /** Places of all rows, if they do not follow each other. */
  readonly order?: readonly number[];
}

/** See the module. */
export class RecordedRows implements CallRows {
  readonly size: number;
  readonly #parts: readonly Part[];
  readonly #callId: CallIdOf;
  #part: Part | undefined;
  #isDisposed = false;

  /** `ended`: the oldest first. At most `limit` rows of each. */
  constructor(
    running: SpanPage,
    ended: readonly SpanPage[],
    limit: number,
    callId: CallIdOf,
  ) {
    const parts: Part[] = [];
    const order = Array.from({ length: running.count }, (_, at) => at)
      .sort((a, b) => running.seqAt(b) - running.seqAt(a)).slice(0, limit);
    let size = order.length;
    if (size > 0) parts.push({ page: running, start: 0, end: size, from: 0, order });
    let left = limit;
    let first = ended.length;
    while (first > 0 && left > 0) left -= ended[--first]!.count;
    for (const page of ended.slice(first)) {
      const from = Math.max(0, -left);
      left = Math.max(0, left); // Only the first page is read in part.
      const count = page.count - from;
      parts.push({ page, start: size, end: size + count, from });
      size += count;
    }
    for (const { page } of parts) page.readers++;
    this.size = size;
    this.#parts = parts;
    this.#callId = callId;
  }

  functionAt(row: number): Pick<CallSpan, "function_id" | "namespace"> {
    const part = this.#partOf(row);
    return part.page.subjectAt(placeIn(part, row));
  }

  callerNameAt(row: number): string {
    const part = this.#partOf(row);
    return part.page.callerNameAt(placeIn(part, row));
  }

  calleeNameAt(row: number): string | null {
    const part = this.#partOf(row);
    return part.page.calleeNameAt(placeIn(part, row));
  }

  seqAt(row: number): number {
    const part = this.#partOf(row);
    return part.page.seqAt(placeIn(part, row));
  }

  startAt(row: number): number {
    const part = this.#partOf(row);
    return part.page.startAt(placeIn(part, row));
  }

  endAt(row: number): number | null {
    const part = this.#partOf(row);
    const end = part.page.endAt(placeIn(part, row));
    return Number.isNaN(end) ? null : end;
  }

  errorCodeAt(row: number): string | null {
    const part = this.#partOf(row);
    return part.page.errorCodeAt(placeIn(part, row));
  }

  traceAt(row: number): string {
    const part = this.#partOf(row);
    return part.page.traceAt(placeIn(part, row));
  }

  mayBeOf(row: number, heads: ReadonlySet<number>): boolean {
    const part = this.#partOf(row);
    return heads.has(part.page.traceHeadAt(placeIn(part, row)));
  }

  spanAt(row: number): string {
    const part = this.#partOf(row);
    return part.page.spanAt(placeIn(part, row));
  }

  parentAt(row: number): string | null {
    const part = this.#partOf(row);
    return part.page.parentAt(placeIn(part, row));
  }

  read(row: number): CallSpan {
    const part = this.#partOf(row);
    return part.page.read(placeIn(part, row), this.#callId);
  }

  /** Lets the pages be reused. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const { page } of this.#parts) page.readers--;
  }

  /** Rows are mostly read one after the other. */
  #partOf(row: number): Part {
    const last = this.#part;
    if (last && row >= last.start && row < last.end) return last;
    let [low, high] = [0, this.#parts.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row < this.#parts[middle]!.end) high = middle;
      else low = middle + 1;
    }
    return this.#part = this.#parts[low]!;
  }
}

function placeIn({ start, from, order }: Part, row: number): number {
  return order ? order[row]! : from + row - start;
}
