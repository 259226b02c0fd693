/**
 * Searches recorded spans within a {@linkcode Turn}: calls row by row, without making an object of
 * a call before it is shown, and the spans of the ring.
 *
 * @module
 */
import { type CallRows, type CallTraces, traceHeadOf } from "../../../engine/ports/telemetry.ts";
import type { Redactor } from "../redact.ts";
import type { Search, Turn } from "../turns.ts";
import type { SpanRing } from "./ring.ts";
import {
  attributeText,
  type SpanAttribute,
  spanOfCall,
  type SpanSummary,
  type StoredSpan,
} from "./span.ts";

/** Items that are sorted without a look at the time. */
const SORTED_AT_ONCE = 256;
/** So many times more items than are wanted are not all sorted. */
const FEW = 4;

/** What is searched. */
export interface ScanSources {
  readonly traces: CallTraces;
  readonly ring: SpanRing;
  /** Whether a function is internal, such as the engine's own. */
  isInternal(namespace: string, function_id: string): boolean;
}

/** Selects spans; all given members must match. */
export interface ScanFilter {
  readonly trace_id?: string;
  readonly since_ms?: number;
  readonly until_ms?: number;
  /** Excludes spans of internal functions. */
  readonly excludesInternal?: boolean;
}

/** A call as a span; members are read from its row, which has to be open. */
export class RowSpan implements StoredSpan {
  readonly start_ms: number;
  readonly #rows: CallRows;
  readonly #row: number;

  constructor(rows: CallRows, row: number) {
    this.start_ms = rows.startAt(row);
    this.#rows = rows;
    this.#row = row;
  }

  /** The plain span, with redacted payloads if a redactor is given. */
  whole(redactor: Redactor | null): StoredSpan {
    return spanOfCall(this.#rows.read(this.#row), redactor);
  }

  /** What {@linkcode summaryOfCall} returns for the call. */
  summary(): SpanSummary {
    const { trace_id, span_id, parent_span_id, start_ms, end_ms } = this;
    const { function_id, namespace } = this.#rows.functionAt(this.#row);
    const error_code = this.#rows.errorCodeAt(this.#row);
    const worker = this.#rows.calleeNameAt(this.#row);
    return {
      trace_id,
      span_id,
      parent_span_id,
      kind: "call",
      name: function_id,
      service_name: worker ?? "engine",
      start_ms,
      end_ms,
      failed: error_code !== null,
      error_code,
      namespace,
      function_id,
      caller: this.#rows.callerNameAt(this.#row),
      worker,
      http_status: null,
    };
  }

  get trace_id(): string {
    return this.#rows.traceAt(this.#row);
  }

  get span_id(): string {
    return this.#rows.spanAt(this.#row);
  }

  get parent_span_id(): string | null {
    return this.#rows.parentAt(this.#row);
  }

  get name(): string {
    return this.#rows.functionAt(this.#row).function_id;
  }

  get service_name(): string {
    return this.#rows.calleeNameAt(this.#row) ?? "engine";
  }

  get end_ms(): number | null {
    return this.#rows.endAt(this.#row);
  }

  get status(): StoredSpan["status"] {
    if (this.#rows.errorCodeAt(this.#row) !== null) return "error";
    return this.end_ms === null ? "unset" : "ok";
  }

  get status_description(): string | null {
    return this.whole(null).status_description;
  }

  get attributes(): readonly SpanAttribute[] {
    return this.whole(null).attributes;
  }

  get events(): readonly [] {
    return [];
  }

  get links(): readonly [] {
    return [];
  }

  get scope_name(): null {
    return null;
  }

  get scope_version(): null {
    return null;
  }
}

/**
 * Matching spans among the running calls, the last `limit` calls that ended, and the ring; at most
 * the `limit` that started last. Calls come first. For a filter with a trace, pass all rows.
 */
export function* scanSpans(
  { ring, isInternal }: ScanSources,
  rows: CallRows,
  filter: ScanFilter,
  limit: number,
  turn: Turn,
): Search<StoredSpan[]> {
  const { trace_id, since_ms = -Infinity, until_ms = Infinity, excludesInternal } = filter;
  const isInternalSpan = (span: StoredSpan): boolean => {
    const function_id = attributeText(span, "engine.function_id");
    if (function_id === undefined) return false;
    return isInternal(attributeText(span, "engine.namespace") ?? "default", function_id);
  };
  const places = trace_id === undefined
    ? undefined
    : yield* rowsOfTraces(rows, new Set([trace_id]), limit, turn);
  const ofTrace = places?.get(trace_id!) ?? [];
  const verdicts = new Map<object, boolean>();
  let last: [subject: object | undefined, verdict: boolean] = [undefined, false];
  const isInternalRow = (row: number): boolean => {
    const subject = rows.functionAt(row);
    if (subject === last[0]) return last[1]; // Of a flood, or of one's own polling.
    let verdict = verdicts.get(subject);
    if (verdict === undefined) {
      verdict = isInternal(subject.namespace, subject.function_id);
      verdicts.set(subject, verdict);
    }
    last = [subject, verdict];
    return verdict;
  };
  const spans: StoredSpan[] = [];
  const count = places ? ofTrace.length : rows.size;
  for (let at = 0; at < count; at++) {
    if (turn.isOver()) yield;
    const row = places ? ofTrace[at]! : at;
    const start = rows.startAt(row);
    if (start < since_ms || start > until_ms) continue;
    if (!excludesInternal || !isInternalRow(row)) spans.push(new RowSpan(rows, row));
  }
  let found = 0;
  for (let seq = ring.seq; found < limit; seq--) {
    if (turn.isOver()) yield;
    const span = ring.at(seq);
    if (!span) break; // Older ones were dropped.
    if (span.start_ms < since_ms || span.start_ms > until_ms) continue;
    if (trace_id !== undefined && span.trace_id !== trace_id) continue;
    found++;
    if (!excludesInternal || !isInternalSpan(span)) spans.push(span);
  }
  return spans.length <= limit ? spans : yield* newest(spans, limit, turn);
}

/** Those that started last, in the same order; of equal ones the first. */
function* newest(
  spans: readonly StoredSpan[],
  limit: number,
  turn: Turn,
): Search<StoredSpan[]> {
  const starts = new Float64Array(spans.length);
  for (let at = 0; at < starts.length; at++) {
    if (turn.isOver()) yield;
    starts[at] = spans[at]!.start_ms;
  }
  const least = yield* largest(starts, limit, turn);
  let equal = 0;
  for (let at = starts.length - limit; at < starts.length; at++) if (starts[at] === least) equal++;
  const kept: StoredSpan[] = [];
  for (const span of spans) {
    if (turn.isOver()) yield;
    if (span.start_ms > least || (span.start_ms === least && equal-- > 0)) kept.push(span);
  }
  return kept;
}

/** The value at a rank, 1 being the largest; puts those up to the rank at the end. */
function* largest(values: Float64Array, rank: number, turn: Turn): Search<number> {
  const wanted = values.length - rank;
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    // By chance, since peers choose the values and thereby could choose slow ones.
    const pivot = values[low + Math.floor(Math.random() * (high - low + 1))]!;
    let [left, right] = [low, high];
    while (left <= right) {
      if (turn.isOver()) yield;
      while (values[left]! < pivot) left++;
      while (values[right]! > pivot) right--;
      if (left > right) break;
      [values[left], values[right]] = [values[right]!, values[left]!];
      left++;
      right--;
    }
    if (wanted <= right) high = right;
    else if (wanted >= left) low = left;
    else break;
  }
  return values[wanted]!;
}

/** Compares by start, the newest first. */
export function newestFirst(a: StoredSpan, b: StoredSpan): number {
  return b.start_ms - a.start_ms;
}

/** Rows by trace, the newest first; at most `limit` of each trace. */
export function* rowsOfTraces(
  rows: CallRows,
  trace_ids: ReadonlySet<string>,
  limit: number,
  turn: Turn,
): Search<Map<string, number[]>> {
  const heads = new Set([...trace_ids].map(traceHeadOf));
  const found = new Map<string, number[]>();
  for (let row = 0; row < rows.size; row++) {
    if (turn.isOver()) yield;
    if (!rows.mayBeOf(row, heads)) continue;
    const trace_id = rows.traceAt(row);
    if (!trace_ids.has(trace_id)) continue;
    const known = found.get(trace_id);
    if (known) known.push(row);
    else found.set(trace_id, [row]);
  }
  const bySeq = (a: number, b: number): number => rows.seqAt(b) - rows.seqAt(a);
  for (const [trace_id, places] of found) {
    found.set(trace_id, yield* sortInTurn(places, bySeq, limit, turn));
  }
  return found;
}

/** The first `limit` items as `toSorted` returns them; few of many cost little more than a look. */
export function* sortInTurn<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
  limit: number,
  turn: Turn,
): Search<Item[]> {
  const isFew = Math.max(limit, SORTED_AT_ONCE) * FEW < items.length;
  return isFew
    ? yield* firstInTurn(items, compare, limit, turn)
    : yield* allInTurn(items, compare, limit, turn);
}

/** Keeps the least items so far; starts at the end that seems to have the least. */
function* firstInTurn<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
  limit: number,
  turn: Turn,
): Search<Item[]> {
  const last = items.length - 1;
  const isReverse = compare(items[0]!, items[last]!) > 0;
  const byPlace = (a: number, b: number): number => compare(items[a]!, items[b]!) || a - b;
  let kept: number[] = [];
  let floor: number | undefined;
  for (let i = 0; i <= last; i++) {
    if (turn.isOver()) yield;
    const at = isReverse ? last - i : i;
    if (floor !== undefined && byPlace(at, floor) > 0) continue;
    if (kept.push(at) < limit + SORTED_AT_ONCE) continue;
    kept = kept.sort(byPlace).slice(0, limit);
    floor = kept.at(-1);
  }
  return kept.sort(byPlace).slice(0, limit).map((at) => items[at]!);
}

/** Sorts short runs and merges them. */
function* allInTurn<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
  limit: number,
  turn: Turn,
): Search<Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += SORTED_AT_ONCE) {
    if (turn.isOver()) yield;
    runs.push(items.slice(at, at + SORTED_AT_ONCE).sort(compare).slice(0, limit));
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [left, right = []] = [runs[at]!, runs[at + 1]];
      merged.push(yield* merge(left, right, compare, limit, turn));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge<Item>(
  left: readonly Item[],
  right: readonly Item[],
  compare: (a: Item, b: Item) => number,
  limit: number,
  turn: Turn,
): Search<Item[]> {
  const merged: Item[] = [];
  const count = Math.min(limit, left.length + right.length);
  for (let [l, r] = [0, 0]; merged.length < count;) {
    if (turn.isOver()) yield;
    const takesLeft = r >= right.length ||
      (l < left.length && compare(left[l]!, right[r]!) <= 0);
    merged.push(takesLeft ? left[l++]! : right[r++]!);
  }
  return merged;
}
