/**
 * Aggregates per minute, five minutes and hour, for times beyond the per-second series.
 *
 * Each level retains a fixed number of periods. A period has count, sum, min, max and last of each
 * engine value, a histogram of all calls, and the busiest functions.
 *
 * @module
 */
import type { Meters } from "../../../engine/ports/telemetry.ts";
import { addCounts, DeltaSum, quantile, round, totalOf } from "./meters.ts";
import type { EngineSample, Interval, MetricsSample } from "./sampler.ts";

/** Functions in one rollup: the busiest. */
export const ROLLUP_FUNCTIONS_MAX = 20;

/** Length and number of retained periods: 6 hours, 2 days, 30 days. */
const LEVELS = [
  { ms: 60_000, periods: 360 },
  { ms: 300_000, periods: 576 },
  { ms: 3_600_000, periods: 720 },
] as const;

/** Name of the histogram of all calls. */
export const DURATION_METRIC = "engine.invocation.duration";

/** Statistics of a value over a period. */
export interface Rollup {
  /** Such as `engine.calls_per_s`. */
  readonly metric_name: string;
  readonly start_ms: number;
  readonly end_ms: number;
  /** Seconds with a known value. */
  readonly count: number;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  readonly avg: number;
  readonly last: number;
}

/** Durations of a period: of all calls, or of one function. */
export interface HistogramRollup {
  readonly metric_name: string;
  /** `null`: all functions together. */
  readonly function_id: string | null;
  readonly namespace: string | null;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly count: number;
  readonly errors: number;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  /** Upper bounds in milliseconds and counts; absent for single functions. */
  readonly bounds?: readonly number[];
  readonly bucket_counts?: readonly number[];
}

/** Selects periods that overlap a time range. */
export interface RollupQuery {
  readonly start_ms?: number | undefined;
  readonly end_ms?: number | undefined;
  readonly metric_name?: string | undefined;
}

interface Value {
  count: number;
  sum: number;
  min: number;
  max: number;
  last: number;
}

interface Period {
  readonly start_ms: number;
  end_ms: number;
  readonly values: Map<string, Value>;
  readonly durations: Float64Array;
  calls: number;
  errors: number;
  functions: readonly HistogramRollup[];
}

/** Aggregates samples into periods of all levels. */
export class Rollups {
  readonly #bounds: readonly number[];
  readonly #levels: readonly Level[];

  constructor({ bounds_ms }: Pick<Meters, "bounds_ms">) {
    this.#bounds = bounds_ms;
    this.#levels = LEVELS.map(({ ms, periods }) => new Level(ms, periods, bounds_ms));
  }

  add(interval: Interval, sample: MetricsSample): void {
    for (const level of this.#levels) level.add(interval, sample);
  }

  /** Values of one level, the oldest period first; the last one may be incomplete. */
  values(level: number, query: RollupQuery): Rollup[] {
    return this.#periods(level, query).flatMap(({ start_ms, end_ms, values }) =>
      [...values].filter(([name]) => matches(name, query)).map(([metric_name, value]) => ({
        metric_name,
        start_ms,
        end_ms,
        count: value.count,
        sum: round(value.sum),
        min: value.min,
        max: value.max,
        avg: round(value.sum / value.count),
        last: value.last,
      }))
    );
  }

  /** Durations of one level. */
  histograms(level: number, query: RollupQuery): HistogramRollup[] {
    if (!matches(DURATION_METRIC, query)) return [];
    return this.#periods(level, query).flatMap((period) => [
      {
        metric_name: DURATION_METRIC,
        function_id: null,
        namespace: null,
        start_ms: period.start_ms,
        end_ms: period.end_ms,
        count: totalOf(period.durations),
        errors: period.errors,
        ...quantiles(this.#bounds, period.durations),
        bounds: this.#bounds,
        bucket_counts: [...period.durations],
      },
      ...this.#levels[level]!.functionsOf(period),
    ]);
  }

  #periods(level: number, { start_ms = -Infinity, end_ms = Infinity }: RollupQuery): Period[] {
    const periods = this.#levels[level]?.periods ?? [];
    return periods.filter((period) => period.end_ms > start_ms && period.start_ms <= end_ms);
  }
}

class Level {
  readonly #ms: number;
  readonly #periodsMax: number;
  readonly #bounds: readonly number[];
  readonly #sum = new DeltaSum();
  readonly periods: Period[] = [];

  constructor(ms: number, periodsMax: number, bounds: readonly number[]) {
    this.#ms = ms;
    this.#periodsMax = periodsMax;
    this.#bounds = bounds;
  }

  add(interval: Interval, { at_ms, engine }: MetricsSample): void {
    const period = this.#periodAt(at_ms);
    period.end_ms = at_ms;
    const functions = interval.functions.filter(({ kind }) => kind === "user");
    this.#sum.add(functions);
    for (const { durations, calls, errors } of functions) {
      addCounts(period.durations, durations);
      period.calls += calls;
      period.errors += errors;
    }
    for (const [name, value] of Object.entries(engine) as [keyof EngineSample, number | null][]) {
      if (value !== null) note(period.values, `engine.${name}`, value);
    }
  }

  /** The busiest functions; recomputed while the period is incomplete. */
  functionsOf(period: Period): readonly HistogramRollup[] {
    return period === this.periods.at(-1) ? this.#busiest(period) : period.functions;
  }

  #periodAt(at_ms: number): Period {
    const last = this.periods.at(-1);
    const start_ms = Math.floor(at_ms / this.#ms) * this.#ms;
    // If the clock goes back, samples stay in the current period.
    if (last && start_ms <= last.start_ms) return last;
    if (last) {
      last.functions = this.#busiest(last);
      last.end_ms = last.start_ms + this.#ms;
    }
    this.#sum.clear();
    const period: Period = {
      start_ms,
      end_ms: at_ms,
      values: new Map(),
      durations: new Float64Array(this.#bounds.length + 1),
      calls: 0,
      errors: 0,
      functions: [],
    };
    this.periods.push(period);
    if (this.periods.length > this.#periodsMax) this.periods.shift();
    return period;
  }

  #busiest({ start_ms, end_ms }: Period): HistogramRollup[] {
    return this.#sum.functions.sort((a, b) => b.calls - a.calls).slice(0, ROLLUP_FUNCTIONS_MAX)
      .map(({ function_id, namespace, errors, durations }) => ({
        metric_name: DURATION_METRIC,
        function_id,
        namespace,
        start_ms,
        end_ms,
        count: totalOf(durations),
        errors,
        ...quantiles(this.#bounds, durations),
      }));
  }
}

function note(values: Map<string, Value>, name: string, value: number): void {
  const known = values.get(name);
  if (!known) {
    return void values.set(name, { count: 1, sum: value, min: value, max: value, last: value });
  }
  known.count++;
  known.sum += value;
  known.min = Math.min(known.min, value);
  known.max = Math.max(known.max, value);
  known.last = value;
}

function quantiles(bounds: readonly number[], counts: Float64Array) {
  return {
    p50: quantile(bounds, counts, 0.5),
    p90: quantile(bounds, counts, 0.9),
    p99: quantile(bounds, counts, 0.99),
  };
}

function matches(name: string, { metric_name }: RollupQuery): boolean {
  return metric_name === undefined || name === metric_name;
}
