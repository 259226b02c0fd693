/**
 * The last 15 minutes per second, of the engine, the busiest functions and the workers, in memory
 * of fixed size.
 *
 * @module
 */
import type { Meters } from "../../../engine/ports/telemetry.ts";
import { keyOf, quantile, round } from "./meters.ts";
import {
  ENGINE_VALUES,
  type EngineSample,
  type Interval,
  METRICS_STEP_MS,
  type MetricsSample,
} from "./sampler.ts";

/** Retained samples: 15 minutes. */
export const METRICS_SAMPLES_MAX = 900;
/** Functions with series; the one that has been idle longest is dropped. */
const METRICS_FUNCTION_SERIES_MAX = 500;
/** Workers with series. */
const METRICS_WORKER_SERIES_MAX = 1_000;

/** Parameters of {@linkcode SeriesStore.read}. */
export interface SeriesQuery {
  /** Length of the period, back from now. */
  readonly seconds: number;
  /** Only this function, in every namespace. */
  readonly function_id?: string | undefined;
  /** Only this worker. */
  readonly worker_id?: string | undefined;
  /** Number of functions and of workers at most; the busiest of the period. */
  readonly top: number;
}

type Points = (number | null)[];

/** One value per second and name; `null`: unknown. All arrays are as long as `at_ms`. */
export interface SeriesAnswer {
  readonly step_ms: number;
  readonly at_ms: readonly number[];
  readonly engine: Readonly<Record<keyof EngineSample, Points>>;
  readonly functions: readonly ({
    readonly function_id: string;
    readonly namespace: string;
  } & Readonly<Record<FunctionColumn, Points>>)[];
  readonly workers: readonly ({
    readonly worker_id: string;
    readonly name: string;
  } & Readonly<Record<WorkerColumn, Points>>)[];
}

type FunctionColumn = "calls_per_s" | "errors_per_s" | "p50_ms" | "p99_ms";
type WorkerColumn = "memory_bytes" | "cpu_percent" | "in_flight" | "event_loop_lag_ms";

const ENGINE_COLUMNS: readonly (keyof EngineSample)[] = [
  ...ENGINE_VALUES,
  "event_loop_lag_p99_ms",
];
const FUNCTION_COLUMNS: readonly FunctionColumn[] = [
  "calls_per_s",
  "errors_per_s",
  "p50_ms",
  "p99_ms",
];
const WORKER_COLUMNS: readonly WorkerColumn[] = [
  "memory_bytes",
  "cpu_percent",
  "in_flight",
  "event_loop_lag_ms",
];
const IDLE = { calls_per_s: 0, errors_per_s: 0, p50_ms: null, p99_ms: null };

/** Stores and reads the series. */
export class SeriesStore {
  readonly #times = new SampleTimes();
  readonly #engine = new Track(ENGINE_COLUMNS);
  readonly #functions = new Tracks<FunctionColumn, { function_id: string; namespace: string }>(
    FUNCTION_COLUMNS,
    METRICS_FUNCTION_SERIES_MAX,
  );
  readonly #workers = new Tracks<WorkerColumn, { worker_id: string; name: string }>(
    WORKER_COLUMNS,
    METRICS_WORKER_SERIES_MAX,
  );
  readonly #bounds: Meters["bounds_ms"];

  constructor(meters: Pick<Meters, "bounds_ms">) {
    this.#bounds = meters.bounds_ms;
  }

  add(interval: Interval, { at_ms, engine, workers }: MetricsSample): void {
    const sample = this.#times.count;
    this.#times.begin(at_ms);
    this.#engine.write(sample, engine);
    const seconds = interval.interval_ms / 1_000;
    const functions = interval.functions.filter(({ kind }) => kind !== "hidden")
      .sort((a, b) => b.calls - a.calls).map((delta) => {
        const { function_id, namespace } = delta;
        const values = {
          calls_per_s: delta.calls / seconds,
          errors_per_s: delta.errors / seconds,
          p50_ms: quantile(this.#bounds, delta.durations, 0.5),
          p99_ms: quantile(this.#bounds, delta.durations, 0.99),
        };
        return [keyOf(delta), { of: { function_id, namespace }, values }] as const;
      });
    this.#functions.write(sample, new Map(functions), IDLE);
    const entries = workers.map((values) => {
      const { worker_id, name } = values;
      return [worker_id, { of: { worker_id, name }, values }] as const;
    });
    this.#workers.write(sample, new Map(entries));
  }

  /** The engine's values of the last seconds. */
  engine(seconds: number): Record<keyof EngineSample, Points> {
    return this.#engine.read(this.#times.last(seconds));
  }

  /** The stored values for a query. */
  read({ seconds, function_id, worker_id, top }: SeriesQuery): SeriesAnswer {
    const samples = this.#times.last(seconds);
    const functions = busiest(
      this.#functions.all()
        .filter(({ of }) => function_id === undefined || of.function_id === function_id),
      ({ track }) => track.sum("calls_per_s", samples),
    ).slice(0, top);
    const workers = busiest(
      this.#workers.all()
        .filter(({ of }) => worker_id === undefined || of.worker_id === worker_id),
      ({ track }) => track.sum("in_flight", samples),
    ).slice(0, top);
    return {
      step_ms: METRICS_STEP_MS,
      at_ms: samples.map((sample) => this.#times.at(sample)),
      engine: this.#engine.read(samples),
      functions: functions.map(({ of, track }) => ({ ...of, ...track.read(samples) })),
      workers: workers.map(({ of, track }) => ({ ...of, ...track.read(samples) })),
    };
  }
}

/** Sorts stably by calls, descending. */
function busiest<T>(items: readonly T[], calls: (item: T) => number): T[] {
  return items.map((item) => [calls(item), item] as const).sort(([a], [b]) => b - a)
    .map(([, item]) => item);
}

/** Values by name; `null`: unknown. */
export type Values = Readonly<Record<string, number | null>>;

/** Values by name over time, the oldest first. */
export type Series = Record<string, (number | null)[]>;

/** Times of the samples, shared by all tracks so that their values align. */
export class SampleTimes {
  readonly #at = new Float64Array(METRICS_SAMPLES_MAX);
  #count = 0;

  /** Number of samples so far. */
  get count(): number {
    return this.#count;
  }

  /** Starts a sample; later writes belong to it. */
  begin(at_ms: number): void {
    this.#at[this.#count++ % METRICS_SAMPLES_MAX] = at_ms;
  }

  /** Numbers of the last samples, the oldest first. */
  last(samples: number): number[] {
    const length = Math.min(samples, this.#count, METRICS_SAMPLES_MAX);
    return Array.from({ length }, (_, i) => this.#count - length + i);
  }

  /** Time of a retained sample. */
  at(sample: number): number {
    return this.#at[sample % METRICS_SAMPLES_MAX]!;
  }
}

/** Named columns of one subject, such as a function; unwritten values are unknown. */
export class Track<Name extends string> {
  readonly #columns: ReadonlyMap<Name, Float32Array>;
  /** Sample in which each slot was written; -1: never. */
  readonly #written = new Int32Array(METRICS_SAMPLES_MAX).fill(-1);

  constructor(names: readonly Name[]) {
    this.#columns = new Map(names.map((name) => [name, new Float32Array(METRICS_SAMPLES_MAX)]));
  }

  /** Writes all columns of a sample. */
  write(sample: number, values: Readonly<Record<Name, number | null>>): void {
    const slot = sample % METRICS_SAMPLES_MAX;
    this.#written[slot] = sample;
    for (const [name, column] of this.#columns) column[slot] = values[name] ?? NaN;
  }

  /** All columns of the given samples. */
  read(samples: readonly number[]): Record<Name, (number | null)[]> {
    const columns = [...this.#columns].map(([name, column]) => {
      const values = samples.map((sample) => {
        const slot = sample % METRICS_SAMPLES_MAX;
        const value = this.#written[slot] === sample ? column[slot]! : NaN;
        return Number.isNaN(value) ? null : round(value);
      });
      return [name, values] as const;
    });
    return Object.fromEntries(columns) as Record<Name, (number | null)[]>;
  }

  /** The sum of a column over the given samples; unknown values count 0. */
  sum(name: Name, samples: readonly number[]): number {
    const column = this.#columns.get(name)!;
    let sum = 0;
    for (const sample of samples) {
      const slot = sample % METRICS_SAMPLES_MAX;
      if (this.#written[slot] === sample) sum += column[slot]! || 0;
    }
    return sum;
  }
}

/** A bounded number of tracks; evicts the one that has been idle longest. */
export class Tracks<Name extends string, Of> {
  readonly #names: readonly Name[];
  readonly #tracksMax: number;
  readonly #tracks = new Map<string, { of: Of; busyAt: number; readonly track: Track<Name> }>();

  constructor(names: readonly Name[], tracksMax: number) {
    this.#names = names;
    this.#tracksMax = tracksMax;
  }

  /**
   * Writes a sample: the given values, and for all other tracks `idle`, if given. Removes tracks
   * that have been idle for the whole retention time.
   */
  write(
    sample: number,
    given: ReadonlyMap<string, { of: Of; values: Readonly<Record<Name, number | null>> }>,
    idle?: Readonly<Record<Name, number | null>>,
  ): void {
    for (const [key, entry] of this.#tracks) {
      const found = given.get(key);
      if (found) {
        entry.of = found.of;
        entry.busyAt = sample;
        entry.track.write(sample, found.values);
      } else if (sample - entry.busyAt >= METRICS_SAMPLES_MAX) this.#tracks.delete(key);
      else if (idle) entry.track.write(sample, idle);
    }
    for (const [key, { of, values }] of given) {
      if (this.#tracks.has(key)) continue;
      // All are busy, so no other entry would find room: with 10,000 workers, searching for each
      // took a tenth of a CPU.
      if (!this.#evict(sample)) break;
      const track = new Track(this.#names);
      track.write(sample, values);
      this.#tracks.set(key, { of, busyAt: sample, track });
    }
  }

  /** Every track and its subject, the most recently busy first. */
  all(): { readonly key: string; readonly of: Of; readonly track: Track<Name> }[] {
    return [...this.#tracks].map(([key, entry]) => ({ key, ...entry }))
      .sort((a, b) => b.busyAt - a.busyAt);
  }

  /** `false` if all are busy. */
  #evict(sample: number): boolean {
    if (this.#tracks.size < this.#tracksMax) return true;
    let oldest: string | undefined;
    let oldestAt = sample;
    for (const [key, { busyAt }] of this.#tracks) {
      if (busyAt < oldestAt) [oldest, oldestAt] = [key, busyAt];
    }
    return oldest !== undefined && this.#tracks.delete(oldest);
  }
}
