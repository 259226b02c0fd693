/**
 * What happened since one looked last: the difference between two readings of the meters.
 *
 * Meters only grow. Somebody who wants rates reads them again and again, and each reading costs as
 * much as there are functions that were called in between.
 *
 * @module
 */
import type { Directory } from "../../../engine/ports/directory.ts";
import type { FunctionMeter, Meters } from "../../../engine/ports/telemetry.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Interval } from "./sampler.ts";

/** What a function did in a while. */
export interface FunctionDelta {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls: number;
  /** Of those that ended, how many ended with an error. */
  readonly errors: number;
  /** At the end of the while. */
  readonly in_flight: number;
  /** Those that ended, by duration, as the meters have it. */
  readonly durations: Float64Array;
  /** `engine`: one of `engine::*`; `hidden`: its owner says that it is internal. */
  readonly kind: "user" | "engine" | "hidden";
}

/** A meter as it was read last. */
interface Seen {
  calls: number;
  ended: number;
  errors: number;
  readonly durations: Float64Array;
  kind: FunctionDelta["kind"];
  round: number;
}

/** Reads meters again and again. */
export class CountReader {
  readonly #meters: Meters;
  readonly #directory: Pick<Directory, "function">;
  /** By namespace, then id. */
  readonly #seen = new Map<string, Map<string, Seen>>();
  #round = 0;

  /** What was counted before is not told. */
  constructor(meters: Meters, directory: Pick<Directory, "function">) {
    this.#meters = meters;
    this.#directory = directory;
    this.read();
  }

  /** Functions that were called, ended or are running, since the last reading. */
  read(): FunctionDelta[] {
    this.#round++;
    const deltas: FunctionDelta[] = [];
    let count = 0;
    for (const meter of this.#meters.functions()) {
      count++;
      const delta = this.#look(meter);
      if (delta) deltas.push(delta);
    }
    const { other } = this.#meters;
    const delta = this.#look(other);
    if (delta) deltas.push(delta);
    this.#forget(count + 1);
    return deltas;
  }

  #look(meter: FunctionMeter): FunctionDelta | undefined {
    const { function_id, namespace, calls, in_flight } = meter;
    const seen = this.#seenOf(namespace, function_id);
    seen.round = this.#round;
    const ended = totalOf(meter.durations);
    if (calls === seen.calls && ended === seen.ended && in_flight === 0) return undefined;
    const durations = new Float64Array(meter.durations.length);
    if (ended !== seen.ended) {
      for (let i = 0; i < durations.length; i++) {
        const now = meter.durations[i]!;
        durations[i] = Math.max(0, now - seen.durations[i]!);
        seen.durations[i] = now;
      }
    }
    let errors = 0;
    for (const count of meter.errors.values()) errors += count;
    const delta: FunctionDelta = {
      function_id,
      namespace,
      calls: Math.max(0, calls - seen.calls),
      errors: Math.max(0, errors - seen.errors),
      in_flight,
      durations,
      kind: this.#kindOf(seen, namespace, function_id),
    };
    seen.calls = calls;
    seen.ended = ended;
    seen.errors = errors;
    return delta;
  }

  #seenOf(namespace: string, functionId: string): Seen {
    let ids = this.#seen.get(namespace);
    if (!ids) this.#seen.set(namespace, ids = new Map());
    let seen = ids.get(functionId);
    if (!seen) {
      const durations = new Float64Array(this.#meters.bounds_ms.length + 1);
      const kind = functionId.startsWith("engine::") ? "engine" : "user";
      ids.set(functionId, seen = { calls: 0, ended: 0, errors: 0, durations, kind, round: 0 });
    }
    return seen;
  }

  /** Whoever has left is what it was. */
  #kindOf(seen: Seen, namespace: string, functionId: string): FunctionDelta["kind"] {
    if (seen.kind === "engine") return seen.kind;
    const view = this.#directory.function(namespace, functionId);
    if (view) seen.kind = view.internal ? "hidden" : "user";
    return seen.kind;
  }

  /** Meters that are gone; looks for them only when there are fewer than were seen. */
  #forget(count: number): void {
    let known = 0;
    for (const ids of this.#seen.values()) known += ids.size;
    if (known <= count) return;
    for (const [namespace, ids] of this.#seen) {
      for (const [id, seen] of ids) if (seen.round !== this.#round) ids.delete(id);
      if (ids.size === 0) this.#seen.delete(namespace);
    }
  }
}

/** Several whiles together. */
export class DeltaSum {
  readonly #sums = new Map<string, { -readonly [K in keyof FunctionDelta]: FunctionDelta[K] }>();

  /** Adds what happened in one while. */
  add(deltas: readonly FunctionDelta[]): void {
    for (const sum of this.#sums.values()) sum.in_flight = 0;
    for (const delta of deltas) {
      const key = keyOf(delta);
      const sum = this.#sums.get(key);
      if (!sum) {
        this.#sums.set(key, { ...delta, durations: delta.durations.slice() });
        continue;
      }
      sum.calls += delta.calls;
      sum.errors += delta.errors;
      sum.in_flight = delta.in_flight;
      sum.kind = delta.kind;
      addCounts(sum.durations, delta.durations);
    }
  }

  /** One per function. */
  get functions(): FunctionDelta[] {
    return [...this.#sums.values()];
  }

  /** Begins anew. */
  clear(): void {
    this.#sums.clear();
  }
}

/** A function among others. */
export function keyOf(of: { readonly namespace: string; readonly function_id: string }): string {
  return `${of.namespace}\n${of.function_id}`;
}

/**
 * The duration that a part of all did not exceed, such as 0.99; `null` when there were none.
 *
 * @param bounds Upper bounds of the buckets, rising.
 * @param counts One per bound and one beyond; what lies beyond counts as the last bound.
 */
export function quantile(
  bounds: readonly number[],
  counts: ArrayLike<number>,
  part: number,
): number | null {
  const total = totalOf(counts);
  if (total === 0) return null;
  const rank = Math.max(part * total, Number.MIN_VALUE);
  let below = 0;
  for (const [i, upper] of bounds.entries()) {
    const inside = counts[i] ?? 0;
    if (below + inside >= rank) {
      const lower = i === 0 ? 0 : bounds[i - 1]!;
      return round(lower + (upper - lower) * (rank - below) / inside);
    }
    below += inside;
  }
  return round(bounds.at(-1) ?? 0);
}

/** How many durations were counted. */
export function totalOf(counts: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  return total;
}

/** Bounds between which all durations lie; `null` when there were none. */
export function extremes(
  bounds: readonly number[],
  counts: ArrayLike<number>,
): { readonly min_ms: number; readonly max_ms: number } | null {
  let first = 0;
  while (first < counts.length && !counts[first]) first++;
  if (first >= counts.length) return null;
  let last = counts.length - 1;
  while (!counts[last]) last--;
  const highest = bounds.at(-1) ?? 0;
  return {
    min_ms: round(first === 0 ? 0 : bounds[first - 1] ?? highest),
    max_ms: round(bounds[last] ?? highest),
  };
}

/** Adds counts to others, bucket by bucket. */
export function addCounts(sum: Float64Array, counts: ArrayLike<number>): void {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + (counts[i] ?? 0);
}

/** To a thousandth: more would only look exact. */
export function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

/** A function since the engine started. Durations are of calls that ended. */
export interface FunctionTotals {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly in_flight: number;
  readonly avg_ms: number | null;
  readonly p50_ms: number | null;
  readonly p90_ms: number | null;
  readonly p99_ms: number | null;
  /** The bound above the longest; the last bound when it was longer than all. */
  readonly max_ms: number | null;
}

/** Every function that was ever called, the one with most calls first. */
export function functionTotals(meters: Meters): FunctionTotals[] {
  return usedMeters(meters).map((meter) => totalsOf(meters.bounds_ms, meter))
    .sort((a, b) => b.calls - a.calls);
}

/** Meters with a call, in the order of the meters; those that share one last. */
export function usedMeters(meters: Meters): FunctionMeter[] {
  return [...meters.functions(), meters.other].filter(({ calls, errors }) =>
    calls > 0 || errors.size > 0
  );
}

function totalsOf(bounds: readonly number[], meter: FunctionMeter): FunctionTotals {
  const { function_id, namespace, calls, errors, in_flight, durations } = meter;
  const ended = totalOf(durations);
  return {
    function_id,
    namespace,
    calls,
    errors: Object.fromEntries(errors),
    in_flight,
    avg_ms: ended === 0 ? null : round(meter.duration_sum_ms / ended),
    p50_ms: quantile(bounds, durations, 0.5),
    p90_ms: quantile(bounds, durations, 0.9),
    p99_ms: quantile(bounds, durations, 0.99),
    max_ms: extremes(bounds, durations)?.max_ms ?? null,
  };
}

/** `invocations` and `performance` of `engine::metrics::list`. */
export function engineTotals(
  meters: Meters,
): { readonly invocations: JsonObject; readonly performance: JsonObject } {
  const used = usedMeters(meters);
  const durations = new Float64Array(meters.bounds_ms.length + 1);
  let [calls, errors, running, sum] = [0, 0, 0, 0];
  for (const meter of used) {
    calls += meter.calls;
    running += meter.in_flight;
    sum += meter.duration_sum_ms;
    for (const count of meter.errors.values()) errors += count;
    addCounts(durations, meter.durations);
  }
  const of = (part: number): number => quantile(meters.bounds_ms, durations, part) ?? 0;
  const ended = totalOf(durations);
  const ends = extremes(meters.bounds_ms, durations);
  return {
    invocations: {
      total: calls,
      success: Math.max(0, calls - running - errors),
      error: errors,
      deferred: 0,
      by_function: Object.fromEntries(used.map(({ function_id, calls }) => [function_id, calls])),
    },
    performance: {
      avg_duration_ms: ended === 0 ? 0 : round(sum / ended),
      p50_duration_ms: of(0.5),
      p90_duration_ms: of(0.9),
      p95_duration_ms: of(0.95),
      p99_duration_ms: of(0.99),
      min_duration_ms: ends?.min_ms ?? 0,
      max_duration_ms: ends?.max_ms ?? 0,
    },
  };
}

const HALF_MS = 150_000;

/** Adds up seconds. */
export class RecentDeltas {
  #older = new DeltaSum();
  #younger = new DeltaSum();
  #filledMs = 0;

  /** Adds a second. */
  add({ functions, interval_ms }: Pick<Interval, "functions" | "interval_ms">): void {
    if (this.#filledMs >= HALF_MS) {
      this.#older = this.#younger;
      this.#younger = new DeltaSum();
      this.#filledMs = 0;
    }
    this.#younger.add(functions);
    this.#filledMs += interval_ms;
  }

  /** The sum, one per function. */
  read(): FunctionDelta[] {
    const all = new DeltaSum();
    all.add(this.#older.functions);
    all.add(this.#younger.functions);
    return all.functions;
  }
}
