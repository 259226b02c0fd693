/**
 * A view of all spans: calls in the router's recorder, and the ring of all other spans.
 *
 * No work is done per call: queries read the recorder, and listeners receive batches that are
 * collected every `SPAN_COLLECT_MS` while there is a listener.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type {
  CallFilter,
  CallRows,
  CallSpan,
  CallTraces,
} from "../../../engine/ports/telemetry.ts";
import type { EngineHost } from "../../kit/define.ts";
import type { Redactor } from "../redact.ts";
import type { Search, Turn } from "../turns.ts";
import { WorkerClocks } from "../worker_clocks.ts";
import { readSpans } from "./otlp.ts";
import type { SpanRing } from "./ring.ts";
import { rowsOfTraces, RowSpan, type ScanFilter, scanSpans, sortInTurn } from "./scan.ts";
import {
  attributeText,
  type SpanFeed,
  spanOfCall,
  spanOfWork,
  type SpanSummary,
  type StoredSpan,
  summaryOfCall,
  summaryOfSpan,
} from "./span.ts";

/** Listeners get the spans that ended within this time together, in milliseconds. */
const SPAN_COLLECT_MS = 250;
/** Calls in one such batch, and spans of one trace that are shown. */
export const SPAN_COLLECT_MAX = 5_000;

/** Dependencies of {@linkcode SpanStore}. */
export interface SpanStoreSetup {
  readonly clock: Clock;
  readonly traces: CallTraces;
  readonly ring: SpanRing;
  readonly redactor: Redactor;
  /** Whether a function is internal, such as the engine's own. */
  isInternal(namespace: string, function_id: string): boolean;
}

/** Selects spans; all given members must match. */
export type SpanFilter = CallFilter & ScanFilter;

/** Queries and feeds of spans. */
export class SpanStore implements SpanFeed, Disposable {
  readonly #setup: SpanStoreSetup;
  readonly #listeners = new Set<Listener>();
  readonly #clearListeners = new Set<() => void>();
  readonly #stopListening: () => void;
  /** The clocks of the workers that send spans. */
  readonly clocks: WorkerClocks;
  #cancel: (() => void) | undefined;
  #callCursor = 0;
  #ringCursor = 0;
  #lost = 0;

  /** Stores the spans that built-in workers record from now on. */
  constructor(setup: SpanStoreSetup) {
    this.#setup = setup;
    this.clocks = new WorkerClocks(setup.clock, (filter) => setup.traces.find(filter, 1)[0]);
    this.#stopListening = setup.traces.spans.listen((ended) => {
      const span = spanOfWork(ended, setup.redactor);
      if (span) setup.ring.add(span);
    });
  }

  /** Calls that the recorder overwrote before they were collected for listeners. */
  get lost(): number {
    return this.#lost;
  }

  /** Start of the oldest span, in milliseconds since 1970; `null` if there are none. */
  get oldestMs(): number | null {
    const { traces, ring } = this.#setup;
    const [call] = traces.ended(0, 1).spans;
    const times = [call?.start_ms, ring.oldestMs].filter((ms) => typeof ms === "number");
    return times.length > 0 ? Math.min(...times) : null;
  }

  /**
   * Stores the spans of an OTLP frame, with times of the engine's clock as far as the clock of
   * their worker is known. @throws {Error} The frame is malformed.
   */
  take(frame: unknown): { readonly taken: number; readonly dropped: number } {
    const { ring, redactor } = this.#setup;
    const { items: sent, dropped } = readSpans(frame, redactor);
    const items = this.clocks.corrected(sent);
    const taken = items.filter((span) => ring.add(span)).length;
    return { taken, dropped: dropped + items.length - taken };
  }

  /** All spans of a trace, by start; with equal starts the caller before the callee. */
  trace(trace_id: string, withPayloads: boolean): StoredSpan[] {
    const { traces, ring } = this.#setup;
    const calls = traces.find({ trace_id }, SPAN_COLLECT_MAX);
    return inOrder([
      ...calls.map((call) => this.#spanOf(call, withPayloads)),
      ...ring.trace(trace_id),
    ]);
  }

  /** A span other than a call, if stored. */
  ofTrace(trace_id: string | null, span_id: string): StoredSpan | undefined {
    return trace_id === null ? undefined : this.#setup.ring.span(trace_id, span_id);
  }

  /** The newest matching spans, the newest first; calls without payloads. */
  find(filter: SpanFilter, limit: number): StoredSpan[] {
    const { traces, ring } = this.#setup;
    const { excludesInternal = false, ...asked } = filter;
    const calls = traces.find(asked, limit)
      .filter((call) => !excludesInternal || !this.isInternalCall(call))
      .map((call) => spanOfCall(call, null));
    const others = ring.find((span) => {
      return fits(span, asked) && !(excludesInternal && this.isInternal(span));
    }, limit);
    return [...calls, ...others].sort((a, b) => b.start_ms - a.start_ms).slice(0, limit);
  }

  /** Calls as the router records them, the newest first. */
  calls(filter: CallFilter, limit: number): CallSpan[] {
    return this.#setup.traces.find(filter, limit);
  }

  /** Summaries of running calls, the newest first. */
  running(limit: number): SpanSummary[] {
    using rows = this.#setup.traces.rows(limit);
    const running: SpanSummary[] = [];
    for (let row = 0; row < rows.size && rows.endAt(row) === null; row++) {
      running.push(new RowSpan(rows, row).summary());
    }
    return running;
  }

  /**
   * Matching spans among the last `limit` that ended and the running ones; at most the `limit` that
   * started last, in no order. Dispose the result after use: see {@linkcode RowSpan}.
   */
  *scan(filter: ScanFilter, limit: number, turn: Turn): Search<SpanScan> {
    const rows = this.#setup.traces.rows(filter.trace_id === undefined ? limit : Infinity);
    try {
      return this.#opened(rows, yield* scanSpans(this.#setup, rows, filter, limit, turn));
    } catch (thrown) {
      rows[Symbol.dispose]();
      throw thrown;
    }
  }

  /** The spans of some traces, as {@linkcode trace} returns them, one trace after the other. */
  *scanTraces(trace_ids: ReadonlySet<string>, turn: Turn): Search<SpanScan> {
    const rows = this.#setup.traces.rows(Infinity);
    try {
      const calls = yield* rowsOfTraces(rows, trace_ids, SPAN_COLLECT_MAX, turn);
      const spans: StoredSpan[][] = [];
      for (const trace_id of trace_ids) {
        const own = (calls.get(trace_id) ?? []).map((row) => new RowSpan(rows, row));
        const all = [...own, ...this.#setup.ring.trace(trace_id)];
        spans.push(yield* sortInTurn(all, byStart, all.length, turn));
      }
      return this.#opened(rows, spans.flat());
    } catch (thrown) {
      rows[Symbol.dispose]();
      throw thrown;
    }
  }

  #opened(rows: CallRows, spans: StoredSpan[]): SpanScan {
    const { redactor } = this.#setup;
    return {
      spans,
      whole: (span, withPayloads) =>
        span instanceof RowSpan ? span.whole(withPayloads ? redactor : null) : span,
      summary: (span) => span instanceof RowSpan ? span.summary() : summaryOfSpan(span),
      [Symbol.dispose]: () => rows[Symbol.dispose](),
    };
  }

  /** Spans that ended after the cursors, the oldest first; at most `limit` calls. */
  ended(cursors: SpanCursors, limit: number): EndedSpans {
    const { traces, ring } = this.#setup;
    const { spans: calls, cursor } = traces.ended(cursors.call, limit);
    const spans = calls.map(summaryOfCall);
    for (const span of ring.since(cursors.ring)) spans.push(summaryOfSpan(span));
    const isComplete = calls.length < limit;
    return { spans, cursors: { call: cursor, ring: ring.seq }, isComplete };
  }

  /** Whether a span belongs to an internal function. */
  isInternal(span: StoredSpan): boolean {
    const function_id = attributeText(span, "engine.function_id");
    if (function_id === undefined) return false;
    return this.#setup.isInternal(
      attributeText(span, "engine.namespace") ?? "default",
      function_id,
    );
  }

  /** The same for a summary. */
  isInternalSummary({ namespace, function_id }: SpanSummary): boolean {
    return function_id !== null && this.#setup.isInternal(namespace, function_id);
  }

  /** The same for a call. */
  isInternalCall({ namespace, function_id }: CallSpan): boolean {
    return this.#setup.isInternal(namespace, function_id);
  }

  /** Upper bound of the number of stored spans, given the current size of the ring. */
  get capacity(): number {
    return this.#setup.traces.usage.capacity + this.#setup.ring.size;
  }

  /** Removes all spans except running calls. */
  clear(): void {
    this.#setup.traces.clear();
    this.#setup.ring.clear();
    for (const listener of [...this.#clearListeners]) listener();
  }

  /** Calls the listener after each {@linkcode clear}; call the result to stop. */
  onClear(listener: () => void): () => void {
    this.#clearListeners.add(listener);
    return () => void this.#clearListeners.delete(listener);
  }

  /** Delivers ended spans to listeners now. */
  flush(): void {
    if (this.#listeners.size > 0) this.#deliver();
  }

  listen(receive: (spans: readonly StoredSpan[]) => void, withPayloads = false): () => void {
    const listener: Listener = { receive, withPayloads };
    if (this.#listeners.size === 0) this.#skipToNow();
    this.#listeners.add(listener);
    this.#cancel ??= this.#setup.clock.after(SPAN_COLLECT_MS, () => this.#collect());
    return () => void this.#listeners.delete(listener);
  }

  /** Delivers pending spans and stops listening. */
  [Symbol.dispose](): void {
    this.#cancel?.();
    this.flush();
    this.#listeners.clear();
    this.#stopListening();
  }

  #spanOf(call: CallSpan, withPayloads: boolean): StoredSpan {
    return spanOfCall(call, withPayloads ? this.#setup.redactor : null);
  }

  #skipToNow(): void {
    const { traces, ring } = this.#setup;
    this.#callCursor = traces.ended(Number.MAX_SAFE_INTEGER, 1).cursor;
    this.#ringCursor = ring.seq;
  }

  #collect(): void {
    this.#cancel = undefined;
    if (this.#listeners.size === 0) return;
    this.#deliver();
    this.#cancel = this.#setup.clock.after(SPAN_COLLECT_MS, () => this.#collect());
  }

  #deliver(): void {
    const { traces, ring, redactor } = this.#setup;
    const { spans: calls, cursor } = traces.ended(this.#callCursor, SPAN_COLLECT_MAX);
    this.#lost += Math.max(0, cursor - this.#callCursor - calls.length);
    this.#callCursor = cursor;
    const others = [...ring.since(this.#ringCursor)];
    this.#ringCursor = ring.seq;
    if (calls.length + others.length === 0) return;
    const listeners = [...this.#listeners];
    for (const withPayloads of [false, true]) {
      const receivers = listeners.filter((listener) => listener.withPayloads === withPayloads);
      if (receivers.length === 0) continue;
      const spans = calls.map((call) => spanOfCall(call, withPayloads ? redactor : null));
      for (const { receive } of receivers) receive([...spans, ...others]);
    }
  }
}

interface Listener {
  receive(spans: readonly StoredSpan[]): void;
  readonly withPayloads: boolean;
}

/** Spans that were found, to be read until disposal. */
export interface SpanScan extends Disposable {
  readonly spans: StoredSpan[];
  /** The plain form of a span, for the caller of a function. */
  whole(span: StoredSpan, withPayloads: boolean): StoredSpan;
  /** The summary of a span. */
  summary(span: StoredSpan): SpanSummary;
}

/** Positions of a reader. */
export interface SpanCursors {
  readonly call: number;
  readonly ring: number;
}

/** Spans that ended since the reader's cursors. */
export interface EndedSpans {
  readonly spans: SpanSummary[];
  readonly cursors: SpanCursors;
  /** `false`: more calls follow. */
  readonly isComplete: boolean;
}

/** Sorts by start; with equal starts the caller before the callee. */
export function inOrder(spans: StoredSpan[]): StoredSpan[] {
  return spans.sort(byStart);
}

function byStart(a: StoredSpan, b: StoredSpan): number {
  return a.start_ms - b.start_ms || (a.span_id === b.parent_span_id ? -1 : 0) ||
    (b.span_id === a.parent_span_id ? 1 : 0);
}

function fits(span: StoredSpan, filter: CallFilter): boolean {
  const { trace_id, span_id, invocation_id, function_id, since_ms, until_ms, running } = filter;
  return (trace_id === undefined || span.trace_id === trace_id) &&
    (span_id === undefined || span.span_id === span_id) &&
    (running === undefined || (span.end_ms === null) === running) &&
    (since_ms === undefined || span.start_ms >= since_ms) &&
    (until_ms === undefined || span.start_ms <= until_ms) &&
    (function_id === undefined || attributeText(span, "engine.function_id") === function_id) &&
    (invocation_id === undefined ||
      attributeText(span, "engine.invocation_id") === invocation_id ||
      attributeText(span, "engine.caller_invocation_id") === invocation_id);
}

/** Cached results of {@linkcode InternalFunctions}. */
const INTERNAL_CACHE_MAX = 20_000;

/** Internal functions: the engine's own, and those registered as internal. */
export class InternalFunctions implements Disposable {
  readonly #directory: EngineHost["directory"];
  readonly #cache = new Map<string, boolean>();
  readonly #stopListening: () => void;

  /** Clears its cache whenever functions are registered or removed. */
  constructor({ directory, onEvent }: Pick<EngineHost, "directory" | "onEvent">) {
    this.#directory = directory;
    this.#stopListening = onEvent(({ type }) => {
      if (type === "functions_changed") this.#cache.clear();
    });
  }

  /** Whether a function is internal; `false` if no worker offers it. */
  has(namespace: string, function_id: string): boolean {
    if (function_id.startsWith("engine::")) return true;
    const key = `${namespace}\n${function_id}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const isInternal = this.#directory.function(namespace, function_id)?.internal ?? false;
    if (this.#cache.size < INTERNAL_CACHE_MAX) this.#cache.set(key, isInternal);
    return isInternal;
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}
