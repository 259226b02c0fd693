/**
 * The clocks of workers, as far as they differ from the engine's.
 *
 * A worker on another machine or in a microVM stamps its spans and log records by a clock of its
 * own. The engine knows when it sent a call and when it got the result; the worker says when its
 * handler began and ended. A handler runs between the two, which bounds the difference of the
 * clocks from both sides, without a message of its own:
 *
 *     handler ended - result received  <=  difference  <=  handler began - call sent
 *
 * Bounds of later calls narrow this range. While it contains 0, times stay as they are. A sender is
 * believed which worker it is, as it is for everything else that its telemetry says.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { CallFilter, CallSpan } from "../../engine/ports/telemetry.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { attributeText, type StoredSpan } from "./traces/span.ts";

/** Workers whose clocks are known; the one that was measured longest ago is forgotten. */
export const CLOCKS_MAX = 1_000;
/** Calls that are looked up per second, for all workers. */
export const CLOCK_LOOKUPS_PER_SECOND = 20;
/** One worker's clock is measured at most once in this time, in milliseconds. */
export const CLOCK_MEASURE_MS = 1_000;
/** Handlers of one frame that are tried. */
const TRIES_MAX = 3;
/** A smaller difference is no difference: clocks tick in fractions of this, in milliseconds. */
const TICK_MS = 0.2;
/** How much two clocks may come to differ in a millisecond. */
const DRIFT = 1e-4;

/** The difference of a worker's clock to the engine's, in milliseconds, is in this range. */
interface ClockRange {
  readonly low: number;
  readonly high: number;
  /** When it was measured, on the engine's monotonic clock. */
  readonly atMs: number;
}

/** Measures the clocks of workers, and moves times of workers onto the engine's clock. */
export class WorkerClocks {
  readonly #clock: Clock;
  readonly #find: (filter: CallFilter) => CallSpan | undefined;
  readonly #ranges = new Map<string, ClockRange>();
  #lookups = 0;
  #lookupsUntil = 0;

  /** `find` returns the newest recorded call that matches. */
  constructor(clock: Clock, find: (filter: CallFilter) => CallSpan | undefined) {
    this.#clock = clock;
    this.#find = find;
  }

  /** How far a worker's clock is ahead, in milliseconds; 0 if that is not known. */
  ahead(worker_id: string | null): number {
    const range = worker_id === null ? undefined : this.#ranges.get(worker_id);
    if (range === undefined) return 0;
    if (range.low <= TICK_MS && range.high >= -TICK_MS) return 0;
    return (range.low + range.high) / 2;
  }

  /**
   * The spans of one frame with the engine's times, in the same order; measures the clocks of their
   * workers on the way. A span that does not say which worker sent it stays as it is.
   */
  corrected(spans: readonly StoredSpan[]): readonly StoredSpan[] {
    const byWorker = Map.groupBy(spans, workerOf);
    for (const [worker_id, own] of byWorker) {
      if (worker_id !== null) this.#measure(own, worker_id);
    }
    if ([...byWorker.keys()].every((worker_id) => this.ahead(worker_id) === 0)) return spans;
    return spans.map((span) => movedBack(span, this.ahead(workerOf(span))));
  }

  #measure(spans: readonly StoredSpan[], worker_id: string): void {
    const now = this.#clock.now();
    const known = this.#ranges.get(worker_id);
    if (known !== undefined && now - known.atMs < CLOCK_MEASURE_MS) return;
    const handlers = spans.filter((span) => {
      return span.parent_span_id !== null && attributeText(span, "engine.kind") === "handler";
    });
    for (const handler of handlers.slice(-TRIES_MAX)) {
      const call = this.#callOf(handler);
      // A call that went to another worker says nothing about this one's clock.
      if (call?.callee?.worker_id !== worker_id) continue;
      this.#add(worker_id, rangeOf(handler, call, this.#clock.wall()), now);
    }
  }

  #callOf({ trace_id, parent_span_id }: StoredSpan): CallSpan | undefined {
    const now = this.#clock.now();
    if (now >= this.#lookupsUntil) {
      this.#lookups = 0;
      this.#lookupsUntil = now + 1_000;
    }
    if (this.#lookups++ >= CLOCK_LOOKUPS_PER_SECOND) return undefined;
    return this.#find({ trace_id, span_id: parent_span_id! });
  }

  #add(worker_id: string, found: { low: number; high: number }, now: number): void {
    const known = this.#ranges.get(worker_id);
    this.#ranges.delete(worker_id);
    this.#ranges.set(worker_id, { ...narrowed(known, found, now), atMs: now });
    if (this.#ranges.size <= CLOCKS_MAX) return;
    const [oldest] = this.#ranges.keys();
    this.#ranges.delete(oldest!);
  }
}

/** The range that one call allows. */
function rangeOf(
  { start_ms, end_ms }: StoredSpan,
  call: CallSpan,
  nowMs: number,
): { low: number; high: number } {
  const sentMs = call.sent_ms ?? call.start_ms;
  // A call that still runs, or that was ended early, has outlived its handler's telemetry.
  const receivedMs = call.end_ms === null || call.ended_by !== null ? nowMs : call.end_ms;
  return { low: end_ms! - receivedMs, high: start_ms - sentMs };
}

/** What both ranges allow; a clock that was set anew begins with the new range. */
function narrowed(
  known: ClockRange | undefined,
  found: { low: number; high: number },
  now: number,
): { low: number; high: number } {
  if (found.low > found.high) found = { low: found.high, high: found.low };
  if (known === undefined) return found;
  const drift = (now - known.atMs) * DRIFT;
  const low = Math.max(found.low, known.low - drift);
  const high = Math.min(found.high, known.high + drift);
  return low <= high ? { low, high } : found;
}

/** The id of the worker that sent a span, as the span has it. */
function workerOf(span: StoredSpan): string | null {
  return attributeText(span, "engine.worker_id") ?? null;
}

function movedBack(span: StoredSpan, ms: number): StoredSpan {
  if (ms === 0) return span;
  return {
    ...span,
    start_ms: span.start_ms - ms,
    end_ms: span.end_ms === null ? null : span.end_ms - ms,
    events: span.events.map((event) => eventMovedBack(event as JsonObject, ms)),
    attributes: [...span.attributes, ["engine.clock_ahead_ms", Math.round(ms * 1e3) / 1e3]],
  };
}

function eventMovedBack(event: JsonObject, ms: number): JsonObject {
  const { time_unix_nano } = event;
  if (typeof time_unix_nano !== "number") return event;
  return { ...event, time_unix_nano: time_unix_nano - Math.round(ms * 1e3) * 1e3 };
}
