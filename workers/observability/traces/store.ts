/**
 * One view of all spans: the router's calls, read when asked for, and the ring of the others.
 *
 * Nothing is done per call here. Whoever wants to hear of spans gets them in heaps, collected
 * `SPAN_COLLECT_MS` apart, and only while somebody listens.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { CallFilter, CallSpan, CallTraces } from "../../../engine/ports/telemetry.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { EngineHost } from "../../kit/define.ts";
import { SPAN_COLLECT_MAX, SPAN_COLLECT_MS, SPAN_TURN_MS, TRACE_SCANS_MAX } from "../../limits.ts";
import type { Redactor } from "../redact.ts";
import { readSpans } from "./otlp.ts";
import type { SpanRing } from "./ring.ts";
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

/** Calls that are read at once. */
const SPAN_PART = 500;

/** What the view is made of. */
export interface SpanStoreSetup {
  readonly clock: Clock;
  readonly traces: CallTraces;
  readonly ring: SpanRing;
  readonly redactor: Redactor;
  /** Whether a function is one that people do not ask about, such as the engine's own. */
  isInternal(namespace: string, function_id: string): boolean;
}

/** Which spans; all that is given has to fit. */
export interface SpanFilter extends CallFilter {
  /** Leaves out calls of internal functions, and what belongs to them. */
  readonly excludesInternal?: boolean;
}

/** See the top of this file. */
export class SpanStore implements SpanFeed, Disposable {
  readonly #setup: SpanStoreSetup;
  readonly #listeners = new Set<Listener>();
  readonly #forgetters = new Set<() => void>();
  readonly #stopListening: () => void;
  /** Scans that are going on or wait, and the end of the last of them. */
  #scans = 0;
  #lastScan: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  #callCursor = 0;
  #ringCursor = 0;
  #lost = 0;

  /** Hears of what built-in workers record from now on. */
  constructor(setup: SpanStoreSetup) {
    this.#setup = setup;
    this.#stopListening = setup.traces.spans.listen((ended) => {
      const span = spanOfWork(ended, setup.redactor);
      if (span) setup.ring.add(span);
    });
  }

  /** Calls that were overwritten before they could be collected for listeners. */
  get lost(): number {
    return this.#lost;
  }

  /** When the oldest span began, in milliseconds since 1970; `null` when there is none. */
  get oldestMs(): number | null {
    const { traces, ring } = this.#setup;
    const [call] = traces.ended(0, 1).spans;
    const times = [call?.start_ms, ring.oldestMs].filter((ms) => typeof ms === "number");
    return times.length > 0 ? Math.min(...times) : null;
  }

  /**
   * Takes in a frame of OTLP; says how many spans came and how many were dropped.
   *
   * @throws {Error} When it is none.
   */
  take(frame: unknown): { readonly taken: number; readonly dropped: number } {
    const { ring, redactor } = this.#setup;
    const { items, dropped } = readSpans(frame, redactor);
    const taken = items.filter((span) => ring.add(span)).length;
    return { taken, dropped: dropped + items.length - taken };
  }

  /** All spans of a trace, by start; the caller before the callee where the start is the same. */
  trace(trace_id: string, withPayloads: boolean): StoredSpan[] {
    const { traces, ring } = this.#setup;
    const calls = traces.find({ trace_id }, SPAN_COLLECT_MAX);
    return inOrder([
      ...calls.map((call) => this.#spanOf(call, withPayloads)),
      ...ring.trace(trace_id),
    ]);
  }

  /** A span that is no call of the router's, if it is known. */
  ofTrace(trace_id: string | null, span_id: string): StoredSpan | undefined {
    return trace_id === null ? undefined : this.#setup.ring.span(trace_id, span_id);
  }

  /** The newest spans that fit, newest first, calls without their payloads. */
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

  /** Calls as the router has them, newest first. */
  calls(filter: CallFilter, limit: number): CallSpan[] {
    return this.#setup.traces.find(filter, limit);
  }

  /** The same of calls that run, no more of each than lists need. */
  running(limit: number): SpanSummary[] {
    return this.#setup.traces.find({ running: true }, limit).map(summaryOfCall);
  }

  /**
   * The newest spans that fit, newest first, out of so many that ended last. Others have their turn
   * meanwhile: reading as many spans as lists and maps look at takes a while. It takes memory too,
   * so there is one at a time, and others wait.
   *
   * @throws {EngineError} `overloaded` when too many wait already.
   */
  async scan<Item extends { readonly start_ms: number }>(
    filter: SpanFilter,
    limit: number,
    make: { ofCall(call: CallSpan): Item; ofSpan(span: StoredSpan): Item },
  ): Promise<Item[]> {
    if (this.#scans >= TRACE_SCANS_MAX) {
      const message = `${TRACE_SCANS_MAX} look through the traces already; ask again later`;
      throw new EngineError("overloaded", message);
    }
    this.#scans++;
    const turn = this.#lastScan.then(() => this.#scan(filter, limit, make));
    this.#lastScan = turn.then(() => {}, () => {});
    return await turn.finally(() => this.#scans--);
  }

  async #scan<Item extends { readonly start_ms: number }>(
    { excludesInternal = false, ...asked }: SpanFilter,
    limit: number,
    make: { ofCall(call: CallSpan): Item; ofSpan(span: StoredSpan): Item },
  ): Promise<Item[]> {
    const { ring } = this.#setup;
    const items: Item[] = [];
    for await (const call of this.#newestCalls(asked, limit)) {
      if (!excludesInternal || !this.isInternalCall(call)) items.push(make.ofCall(call));
    }
    const others = ring.find((span) => fits(span, asked), limit)
      .filter((span) => !excludesInternal || !this.isInternal(span));
    items.push(...others.map((span) => make.ofSpan(span)));
    return items.sort((a, b) => b.start_ms - a.start_ms).slice(0, limit);
  }

  /** Calls and other spans that ended after the cursors, oldest first, so many calls at most. */
  ended(cursors: SpanCursors, limit: number): EndedSpans {
    const { traces, ring } = this.#setup;
    const { spans: calls, cursor } = traces.ended(cursors.call, limit);
    const facts = calls.map(summaryOfCall);
    for (const span of ring.since(cursors.ring)) facts.push(summaryOfSpan(span));
    const isAll = calls.length < limit;
    return { facts, cursors: { call: cursor, ring: ring.seq }, isAll };
  }

  /** Whether a span is of a call that people do not ask about, or belongs to one. */
  isInternal(span: StoredSpan): boolean {
    const function_id = attributeText(span, "engine.function_id");
    if (function_id === undefined) return false;
    return this.#setup.isInternal(
      attributeText(span, "engine.namespace") ?? "default",
      function_id,
    );
  }

  /** The same of what is known of one. */
  isInternalSummary({ namespace, function_id }: SpanSummary): boolean {
    return function_id !== null && this.#setup.isInternal(namespace, function_id);
  }

  /** The same of a call. */
  isInternalCall({ namespace, function_id }: CallSpan): boolean {
    return this.#setup.isInternal(namespace, function_id);
  }

  /** How many spans there can be, with what the ring holds now. */
  get capacity(): number {
    return this.#setup.traces.usage.capacity + this.#setup.ring.size;
  }

  /** Forgets all but the running calls. */
  clear(): void {
    this.#setup.traces.clear();
    this.#setup.ring.clear();
    for (const forget of [...this.#forgetters]) forget();
  }

  /** Hears when all is forgotten; call the result to stop. */
  onClear(forget: () => void): () => void {
    this.#forgetters.add(forget);
    return () => void this.#forgetters.delete(forget);
  }

  /** Hands listeners what has ended, without waiting for their turn. */
  flush(): void {
    if (this.#listeners.size > 0) this.#hand();
  }

  listen(hear: (spans: readonly StoredSpan[]) => void, withPayloads = false): () => void {
    const own: Listener = { hear, withPayloads };
    if (this.#listeners.size === 0) this.#skipToNow();
    this.#listeners.add(own);
    this.#cancel ??= this.#setup.clock.after(SPAN_COLLECT_MS, () => this.#collect());
    return () => void this.#listeners.delete(own);
  }

  /** Hands over what is left and listens no more. */
  [Symbol.dispose](): void {
    this.#cancel?.();
    this.flush();
    this.#listeners.clear();
    this.#stopListening();
  }

  /** Those of a trace are found at once; all others are looked through in small parts. */
  async *#newestCalls(filter: CallFilter, limit: number): AsyncIterable<CallSpan> {
    const { traces, clock } = this.#setup;
    if (filter.trace_id !== undefined) return yield* traces.find(filter, limit);
    const { since_ms = -Infinity, until_ms = Infinity } = filter;
    const isWanted = ({ start_ms }: CallSpan) => start_ms >= since_ms && start_ms <= until_ms;
    yield* traces.find({ running: true }, limit).filter(isWanted);
    let turnEnd = clock.now() + SPAN_TURN_MS;
    const end = traces.ended(Number.MAX_SAFE_INTEGER, 1).cursor;
    let cursor = Math.max(0, end - limit);
    for (let isAll = false; !isAll;) {
      const part = traces.ended(cursor, SPAN_PART);
      cursor = part.cursor;
      isAll = part.spans.length < SPAN_PART || cursor >= end;
      for (const call of part.spans) if (isWanted(call)) yield call;
      if (isAll || clock.now() < turnEnd) continue;
      await new Promise<void>((resolve) => void clock.after(0, resolve));
      turnEnd = clock.now() + SPAN_TURN_MS;
    }
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
    this.#hand();
    this.#cancel = this.#setup.clock.after(SPAN_COLLECT_MS, () => this.#collect());
  }

  #hand(): void {
    const { traces, ring, redactor } = this.#setup;
    const { spans: calls, cursor } = traces.ended(this.#callCursor, SPAN_COLLECT_MAX);
    this.#lost += Math.max(0, cursor - this.#callCursor - calls.length);
    this.#callCursor = cursor;
    const others = [...ring.since(this.#ringCursor)];
    this.#ringCursor = ring.seq;
    if (calls.length + others.length === 0) return;
    const listeners = [...this.#listeners];
    for (const withPayloads of [false, true]) {
      const heard = listeners.filter((listener) => listener.withPayloads === withPayloads);
      if (heard.length === 0) continue;
      const own = calls.map((call) => spanOfCall(call, withPayloads ? redactor : null));
      for (const { hear } of heard) hear([...own, ...others]);
    }
  }
}

/** Who hears of ended spans. */
interface Listener {
  hear(spans: readonly StoredSpan[]): void;
  readonly withPayloads: boolean;
}

/** How far somebody has read. */
export interface SpanCursors {
  readonly call: number;
  readonly ring: number;
}

/** What has ended since. */
export interface EndedSpans {
  readonly facts: SpanSummary[];
  readonly cursors: SpanCursors;
  /** `false`: there are more calls. */
  readonly isAll: boolean;
}

/** By start; the caller before the callee where the start is the same. */
export function inOrder(spans: StoredSpan[]): StoredSpan[] {
  return spans.sort((a, b) =>
    a.start_ms - b.start_ms || (a.span_id === b.parent_span_id ? -1 : 0) ||
    (b.span_id === a.parent_span_id ? 1 : 0)
  );
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

/** Verdicts that are remembered. */
const VERDICTS_MAX = 20_000;

/** See the top of this file. */
export class InternalFunctions implements Disposable {
  readonly #directory: EngineHost["directory"];
  readonly #verdicts = new Map<string, boolean>();
  readonly #stopListening: () => void;

  /** Forgets what it knows whenever functions come or go. */
  constructor({ directory, onEvent }: Pick<EngineHost, "directory" | "onEvent">) {
    this.#directory = directory;
    this.#stopListening = onEvent(({ type }) => {
      if (type === "functions_changed") this.#verdicts.clear();
    });
  }

  /** Whether this is such a function; `false` of one that nobody offers. */
  has(namespace: string, function_id: string): boolean {
    if (function_id.startsWith("engine::")) return true;
    const key = `${namespace}\n${function_id}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = this.#directory.function(namespace, function_id)?.internal ?? false;
    if (this.#verdicts.size < VERDICTS_MAX) this.#verdicts.set(key, verdict);
    return verdict;
  }

  /** Hears of nothing any more. */
  [Symbol.dispose](): void {
    this.#stopListening();
  }
}
