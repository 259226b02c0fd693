/**
 * An index of traces: name, duration, errors and workers of each, for `engine::traces::summaries`.
 *
 * Updated on query from the spans that ended since the previous query, so that it costs nothing
 * while no one asks.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import { type Search, SEARCH_SLICE_MS, type Turn } from "../turns.ts";
import { TRACE_LIST_LIMIT, TRACE_LIST_LIMIT_MAX, TRACE_TEXT_CHARS_MAX } from "./query.ts";
import type { SpanSummary } from "./span.ts";
import { SPAN_COLLECT_MAX, type SpanCursors, type SpanStore } from "./store.ts";

/** Traces that can be listed; the oldest are dropped. */
const TRACE_INDEX_MAX = 25_000;
/** Workers and functions of one trace, as far as the list keeps them. */
const TRACE_INDEX_NAMES_MAX = 32;

/** The range of a histogram without one, in milliseconds. */
export const HISTOGRAM_RANGE_MS = 900_000;
/** Parts of the range of a histogram: as given, and the most. */
const HISTOGRAM_BUCKETS = 60;
const HISTOGRAM_BUCKETS_MAX = 500;

/** Spans per chunk of an update. */
const CHUNK_SPANS = 100;

/** One trace. Times are milliseconds since 1970, with fractions. */
export interface TraceEntry {
  readonly trace_id: string;
  /** Name and worker of the root span, or else of the earliest known span. */
  readonly name: string;
  readonly worker: string;
  /** The worker that did the work: of the first call that no built-in worker ran, if any. */
  readonly ran_by: string | null;
  /** Status of the response, if the trace began with an HTTP request. */
  readonly http_status: number | null;
  /** From the first start to the last end, by the engine's clock as far as it has spans. */
  readonly start_ms: number;
  readonly end_ms: number;
  /** How long the root span took; calls that it did not wait for may go on. */
  readonly root_ms: number;
  readonly span_count: number;
  readonly error_count: number;
  /** Of the root span, or else of the first that failed. */
  readonly error_code: string | null;
  /** Names of workers, without duplicates. */
  readonly services: readonly string[];
  /** Functions that were called, without duplicates. */
  readonly function_ids: readonly string[];
  /** A call of the trace is still running. */
  readonly pending: boolean;
  /** All spans belong to internal functions. */
  readonly internal: boolean;
}

/** An entry under construction. */
class Entry implements TraceEntry {
  readonly trace_id: string;
  name = "";
  worker = "";
  ran_by: string | null = null;
  http_status: number | null = null;
  start_ms = Infinity;
  end_ms = 0;
  root_ms = 0;
  span_count = 0;
  error_count = 0;
  error_code: string | null = null;
  readonly services: string[] = [];
  readonly function_ids: string[] = [];
  pending = false;
  internal = true;
  /** How certain it is that `name` is the root's; see `#isRoot`. */
  #rank = -1;
  #rootStart = Infinity;
  /** How certain it is that `ran_by` did the work, and when its call started. */
  #ranRank = 0;
  #ranStart = Infinity;

  constructor(trace_id: string) {
    this.trace_id = trace_id;
  }

  add(span: SpanSummary, isInternal: boolean, nowMs: number): void {
    const { start_ms, end_ms, service_name, function_id, error_code } = span;
    this.#extend(span, nowMs);
    this.span_count++;
    this.pending ||= end_ms === null;
    this.internal &&= isInternal;
    addName(this.services, service_name);
    if (function_id !== null) addName(this.function_ids, function_id);
    if (span.failed) this.error_count++;
    const isRoot = this.#isRoot(span);
    if (isRoot) {
      this.name = span.name;
      this.worker = service_name;
      this.http_status = span.http_status;
      this.root_ms = Math.max(0, (end_ms ?? nowMs) - start_ms);
    }
    this.#addRunner(span);
    if (isRoot ? error_code !== null : this.error_code === null) this.error_code = error_code;
  }

  copy(): Entry {
    const copy = Object.assign(new Entry(this.trace_id), this);
    Object.assign(copy, { services: [...this.services], function_ids: [...this.function_ids] });
    copy.#rank = this.#rank;
    copy.#rootStart = this.#rootStart;
    copy.#ranRank = this.#ranRank;
    copy.#ranStart = this.#ranStart;
    return copy;
  }

  /**
   * A handler runs within its call, whose times are the engine's: it counts only while no other
   * span is known, so that the trace takes as long as `engine why` says.
   */
  #extend({ kind, start_ms, end_ms }: SpanSummary, nowMs: number): void {
    const isHandler = kind === "handler";
    if (isHandler && this.#rank > 0) return;
    const isFirst = !isHandler && this.#rank === 0;
    this.start_ms = Math.min(isFirst ? Infinity : this.start_ms, start_ms);
    this.end_ms = Math.max(isFirst ? 0 : this.end_ms, end_ms ?? nowMs);
  }

  /** The first call that a worker of the user ran did the work, else the first call of all. */
  #addRunner({ kind, worker, start_ms }: SpanSummary): void {
    if (kind !== "call" || worker === null) return;
    const rank = worker === "engine" || worker.startsWith("engine-") ? 1 : 2;
    if (rank < this.#ranRank || (rank === this.#ranRank && start_ms >= this.#ranStart)) return;
    this.#ranRank = rank;
    this.#ranStart = start_ms;
    this.ran_by = worker;
  }

  /** Ranks handlers lowest, since the clocks of worker and engine may differ. */
  #isRoot(span: SpanSummary): boolean {
    const rank = span.kind === "handler" ? 0 : span.parent_span_id === null ? 2 : 1;
    if (rank < this.#rank || (rank === this.#rank && span.start_ms >= this.#rootStart)) {
      return false;
    }
    this.#rank = rank;
    this.#rootStart = span.start_ms;
    return true;
  }
}

/** Summaries of all stored traces. */
export class TraceIndex {
  readonly #store: SpanStore;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** `#entries` sorted by start, while valid. */
  #sorted: Entry[] | undefined;
  #spans = 0;
  #cursors: SpanCursors = { call: 0, ring: 0 };
  #reading: Promise<void> | undefined;

  constructor(store: SpanStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** All traces, including those with running calls, the newest start first. */
  async list(): Promise<TraceEntry[]> {
    await this.read();
    return [...this.newest()];
  }

  /** Adds the spans that ended since the last time. */
  async read(): Promise<void> {
    await (this.#reading ??= this.#read().finally(() => this.#reading = undefined));
  }

  /** The traces as last read, with the calls that run now; the newest start first. */
  *newest(): Iterable<TraceEntry> {
    // Nearly sorted already, which makes sorting cheap.
    const ended = this.#sorted ??= [...this.#entries.values()].sort(byStart);
    const running = this.#running();
    const others = [...running.values()].sort(byStart);
    for (let at = ended.length - 1; at >= 0; at--) {
      const entry = ended[at]!;
      while (others.length > 0 && others.at(-1)!.start_ms >= entry.start_ms) yield others.pop()!;
      if (!running.has(entry.trace_id)) yield entry;
    }
    yield* others.reverse();
  }

  /** Copies of the entries that have running calls, with those calls added. */
  #running(): Map<string, Entry> {
    const running = new Map<string, Entry>();
    const nowMs = this.#clock.wall();
    for (const span of this.#store.running(SPAN_COLLECT_MAX)) {
      let entry = running.get(span.trace_id);
      if (!entry) {
        entry = this.#entries.get(span.trace_id)?.copy() ?? new Entry(span.trace_id);
        running.set(span.trace_id, entry);
      }
      entry.add(span, this.#store.isInternalSummary(span), nowMs);
    }
    return running;
  }

  clear(): void {
    this.#entries.clear();
    this.#sorted = undefined;
    this.#spans = 0;
  }

  async #read(): Promise<void> {
    let chunkEnd = this.#clock.now() + SEARCH_SLICE_MS;
    // Under heavy load spans may end as fast as they are read: the next query reads the rest.
    let left = this.#store.capacity + CHUNK_SPANS;
    for (let isComplete = false; !isComplete && left > 0;) {
      const ended = this.#store.ended(this.#cursors, CHUNK_SPANS);
      this.#cursors = ended.cursors;
      for (const span of ended.spans) this.#add(span);
      if (ended.spans.length > 0) this.#sorted = undefined;
      isComplete = ended.isComplete;
      left -= ended.spans.length;
      if (isComplete || this.#clock.now() < chunkEnd) continue;
      // Yields to the event loop: the first read of a full ring takes a while.
      await new Promise<void>((resolve) => void this.#clock.after(1, resolve));
      chunkEnd = this.#clock.now() + SEARCH_SLICE_MS;
    }
    this.#evict();
  }

  #add(span: SpanSummary): void {
    let entry = this.#entries.get(span.trace_id);
    if (!entry) this.#entries.set(span.trace_id, entry = new Entry(span.trace_id));
    entry.add(span, this.#store.isInternalSummary(span), span.end_ms ?? span.start_ms);
    this.#spans++;
    if (this.#entries.size > 2 * TRACE_INDEX_MAX) this.#evict();
  }

  /** The router overwrites spans in about the same order. */
  #evict(): void {
    const spansMax = this.#store.capacity;
    for (const [trace_id, { span_count }] of this.#entries) {
      if (this.#spans <= spansMax && this.#entries.size <= TRACE_INDEX_MAX) return;
      this.#entries.delete(trace_id);
      this.#sorted = undefined;
      this.#spans -= span_count;
    }
  }
}

function byStart(a: TraceEntry, b: TraceEntry): number {
  return a.start_ms - b.start_ms;
}

function addName(names: string[], name: string): void {
  if (names.length < TRACE_INDEX_NAMES_MAX && !names.includes(name)) names.push(name);
}

/** Which traces are meant; all members are optional. */
const FILTER = {
  text: v.opt(v.text(0, TRACE_TEXT_CHARS_MAX)),
  function_id: v.opt(v.string()),
  worker: v.opt(v.string()),
  status: v.opt(v.picklist(["ok", "error"])),
  min_duration_ms: v.opt(v.number()),
  include_internal: v.opt(v.boolean()),
};

/** Payload of `engine::traces::summaries`; all members are optional. */
export const SummariesRequest = v.nullish(
  v.object({
    limit: v.opt(v.int(1, TRACE_LIST_LIMIT_MAX)),
    before_ms: v.opt(v.number()),
    since_ms: v.opt(v.number()),
    ...FILTER,
  }),
  {},
);

/** Payload of `engine::traces::histogram`; all members are optional. */
export const HistogramRequest = v.nullish(
  v.object({
    /** The range; default: the last {@linkcode HISTOGRAM_RANGE_MS}. */
    since_ms: v.opt(v.number()),
    before_ms: v.opt(v.number()),
    buckets: v.opt(v.int(1, HISTOGRAM_BUCKETS_MAX)),
    ...FILTER,
  }),
  {},
);

/** A parsed {@linkcode SummariesRequest}. */
export type SummariesQuery = v.InferOutput<typeof SummariesRequest>;

/** Answers `engine::traces::summaries` from entries, the newest first. */
export function* summarize(
  entries: Iterable<TraceEntry>,
  query: SummariesQuery,
  turn: Turn,
): Search<JsonObject> {
  const lower = { ...query, text: query.text?.toLowerCase() };
  const { limit = TRACE_LIST_LIMIT } = query;
  const traces: JsonObject[] = [];
  let total = 0;
  for (const entry of entries) {
    if (turn.isOver()) yield;
    if (fits(entry, lower) && total++ < limit) traces.push(wireTrace(entry));
  }
  return { traces, total };
}

/** Answers `engine::traces::histogram`: how many traces began in each part of a range. */
export function* histogramOf(
  entries: Iterable<TraceEntry>,
  query: v.InferOutput<typeof HistogramRequest>,
  nowMs: number,
  turn: Turn,
): Search<JsonObject> {
  const { buckets = HISTOGRAM_BUCKETS } = query;
  // Parts at multiples of their length, so that they stay where they are while time passes.
  const step = HISTOGRAM_RANGE_MS / buckets;
  const { before_ms = Math.ceil(nowMs / step) * step } = query;
  const { since_ms = before_ms - HISTOGRAM_RANGE_MS } = query;
  const lower = { ...query, since_ms, before_ms, text: query.text?.toLowerCase() };
  const bucket_ms = Math.max(0, before_ms - since_ms) / buckets;
  const counts = new Array<number>(buckets).fill(0);
  const errors = new Array<number>(buckets).fill(0);
  let total = 0;
  for (const entry of entries) {
    if (turn.isOver()) yield;
    if (!fits(entry, lower)) continue;
    const at = Math.min(buckets - 1, Math.floor((entry.start_ms - since_ms) / bucket_ms));
    counts[at]!++;
    if (entry.error_count > 0) errors[at]!++;
    total++;
  }
  return { since_ms, before_ms, bucket_ms, counts, errors, total };
}

/** The wire form of a trace summary. */
export function wireTrace(entry: TraceEntry): JsonObject {
  const { trace_id, name, worker, ran_by, http_status, start_ms, root_ms, pending } = entry;
  const { span_count, error_count, error_code } = entry;
  return {
    trace_id,
    name,
    worker,
    ran_by,
    http_status,
    start_ms,
    duration_ms: durationOf(entry),
    root_ms,
    span_count,
    error_count,
    error_code,
    services: [...entry.services],
    pending,
  };
}

function fits(entry: TraceEntry, query: SummariesQuery): boolean {
  const { before_ms, since_ms, text, function_id, worker, status, min_duration_ms } = query;
  return (query.include_internal || !entry.internal) &&
    (before_ms === undefined || entry.start_ms < before_ms) &&
    (since_ms === undefined || entry.start_ms >= since_ms) &&
    (function_id === undefined || entry.function_ids.includes(function_id)) &&
    (worker === undefined || entry.services.includes(worker)) &&
    (status === undefined || (status === "error") === (entry.error_count > 0)) &&
    (min_duration_ms === undefined || durationOf(entry) >= min_duration_ms) &&
    (text === undefined || hasText(entry, text));
}

function hasText(
  { trace_id, name, error_code, services, function_ids }: TraceEntry,
  text: string,
): boolean {
  return trace_id.includes(text) ||
    [name, error_code ?? "", ...services, ...function_ids]
      .some((each) => each.toLowerCase().includes(text));
}

function durationOf({ start_ms, end_ms }: TraceEntry): number {
  return Math.max(0, end_ms - start_ms);
}
