/**
 * What was counted since the engine started: per function, and over all of them.
 *
 * @module
 */
import type { FunctionMeter, Meters } from "../../../engine/ports/telemetry.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { addCounts, extremes, quantile, round, totalOf } from "./samples_quantile.ts";

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
