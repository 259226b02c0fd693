/**
 * Reads the engine's call meters: deltas between two readings, quantiles, and totals.
 *
 * Meters are cumulative. {@linkcode CountReader} turns them into deltas for rates.
 *
 * @module
 */
import type { Directory } from "../../../engine/ports/directory.ts";
import type { FunctionMeter, Meters } from "../../../engine/ports/telemetry.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";

/** Calls of a function during an interval. */
export interface FunctionDelta {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls: number;
  /** Calls that ended with an error. */
  readonly errors: number;
  /** At the end of the interval. */
  readonly in_flight: number;
  /** Histogram of the calls that ended, with the buckets of the meters. */
  readonly durations: Float64Array;
  /** `engine`: one of `engine::*`; `hidden`: registered as internal. */
  readonly kind: "user" | "engine" | "hidden";
}

/** Readings, one per second, after which an unused meter is removed: 5 minutes. */
export const FORGOTTEN_READINGS = 300;
/** Every this many readings, meters of functions that no worker offers any more are looked for. */
const FORGET_EVERY = 60;

/** State of a meter at the last reading. */
interface Reading {
  calls: number;
  ended: number;
  errors: number;
  readonly durations: Float64Array;
  kind: FunctionDelta["kind"];
  /** The last reading in which the meter existed. */
  round: number;
  /** The last reading since which a call started, ended or ran. */
  usedRound: number;
}

/** Computes deltas of all meters. */
export class CountReader {
  readonly #meters: Meters;
  readonly #directory: Pick<Directory, "function">;
  /** By namespace, then id. */
  readonly #readings = new Map<string, Map<string, Reading>>();
  #round = 0;

  /** The first {@linkcode read} is relative to now. */
  constructor(meters: Meters, directory: Pick<Directory, "function">) {
    this.#meters = meters;
    this.#directory = directory;
    this.read();
  }

  /** Functions with calls that started, ended or ran since the last reading. */
  read(): FunctionDelta[] {
    this.#round++;
    const deltas: FunctionDelta[] = [];
    let count = 0;
    for (const meter of this.#meters.functions()) {
      if (meter.calls === 0) continue;
      count++;
      const delta = this.#delta(meter);
      if (delta) deltas.push(delta);
    }
    if (this.#round % FORGET_EVERY === 0) this.#forgetUnused();
    const { other } = this.#meters;
    const delta = this.#delta(other);
    if (delta) deltas.push(delta);
    this.#removeGone(count + 1);
    return deltas;
  }

  #delta(meter: FunctionMeter): FunctionDelta | undefined {
    const { function_id, namespace, calls, in_flight } = meter;
    const last = this.#readingOf(namespace, function_id);
    last.round = this.#round;
    const ended = totalOf(meter.durations);
    if (calls === last.calls && ended === last.ended && in_flight === 0) return undefined;
    const durations = new Float64Array(meter.durations.length);
    if (ended !== last.ended) {
      for (let i = 0; i < durations.length; i++) {
        const now = meter.durations[i]!;
        durations[i] = Math.max(0, now - last.durations[i]!);
        last.durations[i] = now;
      }
    }
    last.usedRound = this.#round;
    let errors = 0;
    for (const count of meter.errors.values()) errors += count;
    const delta: FunctionDelta = {
      function_id,
      namespace,
      calls: Math.max(0, calls - last.calls),
      errors: Math.max(0, errors - last.errors),
      in_flight,
      durations,
      kind: this.#kindOf(last, namespace, function_id),
    };
    last.calls = calls;
    last.ended = ended;
    last.errors = errors;
    return delta;
  }

  #readingOf(namespace: string, functionId: string): Reading {
    let ids = this.#readings.get(namespace);
    if (!ids) this.#readings.set(namespace, ids = new Map());
    let last = ids.get(functionId);
    if (!last) {
      const durations = new Float64Array(this.#meters.bounds_ms.length + 1);
      const kind = functionId.startsWith("engine::") ? "engine" : "user";
      const nothing = { calls: 0, ended: 0, errors: 0, round: 0, usedRound: this.#round };
      ids.set(functionId, last = { ...nothing, durations, kind });
    }
    return last;
  }

  /** A function whose worker has left keeps its last kind. */
  #kindOf(last: Reading, namespace: string, functionId: string): FunctionDelta["kind"] {
    if (last.kind === "engine") return last.kind;
    const view = this.#directory.function(namespace, functionId);
    if (view) last.kind = view.internal ? "hidden" : "user";
    return last.kind;
  }

  /** Workers that come and go with functions of their own names would fill the memory of meters. */
  #forgetUnused(): void {
    for (const { namespace, function_id } of this.#meters.functions()) {
      const last = this.#readings.get(namespace)?.get(function_id);
      if (last && this.#round - last.usedRound < FORGOTTEN_READINGS) continue;
      if (last?.kind === "engine" || this.#directory.function(namespace, function_id)) continue;
      this.#meters.forget(namespace, function_id);
    }
  }

  /** Removes readings of meters that no longer exist; searches only if there are any. */
  #removeGone(count: number): void {
    let known = 0;
    for (const ids of this.#readings.values()) known += ids.size;
    if (known <= count) return;
    for (const [namespace, ids] of this.#readings) {
      for (const [id, last] of ids) if (last.round !== this.#round) ids.delete(id);
      if (ids.size === 0) this.#readings.delete(namespace);
    }
  }
}

/** Name under which functions without counts of their own are counted. */
const OTHER = { function_id: "(other)", namespace: "" };
/** Functions with sums of their own; beyond twice as many, those with fewest calls are merged. */
export const SUMMED_FUNCTIONS_MAX = 1_000;

type Sum = { -readonly [K in keyof FunctionDelta]: FunctionDelta[K] };

/** Sums deltas of successive intervals, in memory of bounded size. */
export class DeltaSum {
  readonly #sums = new Map<string, Sum>();

  add(deltas: readonly FunctionDelta[]): void {
    for (const sum of this.#sums.values()) sum.in_flight = 0;
    for (const delta of deltas) this.#add(delta);
    if (this.#sums.size > 2 * SUMMED_FUNCTIONS_MAX) this.#mergeRare();
  }

  #add(delta: FunctionDelta): void {
    const key = keyOf(delta);
    const sum = this.#sums.get(key);
    if (!sum) return void this.#sums.set(key, { ...delta, durations: delta.durations.slice() });
    sum.calls += delta.calls;
    sum.errors += delta.errors;
    sum.in_flight += delta.in_flight;
    sum.kind = delta.kind;
    addCounts(sum.durations, delta.durations);
  }

  /** Counts the functions with fewest calls under `(other)`, so that totals stay right. */
  #mergeRare(): void {
    const users = [...this.#sums].filter(([, { kind }]) => kind === "user")
      .sort(([, a], [, b]) => b.calls - a.calls);
    for (const [key, sum] of users.slice(SUMMED_FUNCTIONS_MAX)) {
      this.#sums.delete(key);
      this.#add({ ...sum, ...OTHER });
    }
  }

  /** The sums, one per function. */
  get functions(): FunctionDelta[] {
    return [...this.#sums.values()];
  }

  clear(): void {
    this.#sums.clear();
  }
}

/** Key of a function in maps. */
export function keyOf(of: { readonly namespace: string; readonly function_id: string }): string {
  return `${of.namespace}\n${of.function_id}`;
}

/**
 * A quantile of a histogram, interpolated within its bucket; `null` without values.
 *
 * @param bounds Upper bounds of the buckets, ascending.
 * @param counts One per bound, and one for larger values, which count as the last bound.
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

/** Number of values in a histogram. */
export function totalOf(counts: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  return total;
}

/** The tightest bounds around all values of a histogram; `null` without values. */
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

/** Adds one histogram to another. */
export function addCounts(sum: Float64Array, counts: ArrayLike<number>): void {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + (counts[i] ?? 0);
}

/** Rounds to a thousandth, the precision of what is measured. */
export function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

/** Totals of a function since the engine started; durations of calls that ended. */
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
  /** Upper bound of the longest call's bucket; at most the last bound. */
  readonly max_ms: number | null;
}

/** Totals of every function that was called, the one with most calls first. */
export function functionTotals(meters: Meters): FunctionTotals[] {
  return usedMeters(meters).map((meter) => totalsOf(meters.bounds_ms, meter))
    .sort((a, b) => b.calls - a.calls);
}

/** Meters that have counted a call; the one for functions beyond the bound is last. */
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

/** Sums the deltas of the last two and a half to five minutes. */
export class RecentDeltas {
  #previous = new DeltaSum();
  #current = new DeltaSum();
  #filledMs = 0;

  add(
    { functions, interval_ms }: {
      readonly functions: readonly FunctionDelta[];
      readonly interval_ms: number;
    },
  ): void {
    if (this.#filledMs >= HALF_MS) {
      this.#previous = this.#current;
      this.#current = new DeltaSum();
      this.#filledMs = 0;
    }
    this.#current.add(functions);
    this.#filledMs += interval_ms;
  }

  /** The sums, one per function. */
  read(): FunctionDelta[] {
    const all = new DeltaSum();
    all.add(this.#previous.functions);
    all.add(this.#current.functions);
    return all.functions;
  }
}
