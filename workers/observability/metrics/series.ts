/**
 * The last 15 minutes, second by second: of the engine, of the busiest functions, of the workers.
 *
 * @module
 */
import type { Meters } from "../../../engine/ports/telemetry.ts";
import {
  METRICS_FUNCTION_SERIES_MAX,
  METRICS_SAMPLES_MAX,
  METRICS_STEP_MS,
  METRICS_WORKER_SERIES_MAX,
} from "../../limits.ts";
import { keyOf, quantile, round } from "./meters.ts";
import type { EngineSample, Interval, MetricsSample } from "./sampler.ts";

/** What is asked of the series. */
export interface SeriesQuery {
  /** How far back. */
  readonly seconds: number;
  /** Only this function, in every namespace. */
  readonly function_id?: string | undefined;
  /** Only this worker. */
  readonly worker_id?: string | undefined;
  /** Functions and workers at most; the busiest of that time. */
  readonly top: number;
}

type Points = (number | null)[];

/** A value of every second, by name; `null`: unknown. All arrays are as long as `at_ms`. */
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

type FunctionColumn = "calls_per_s" | "errors_per_s" | "p99_ms";
type WorkerColumn = "memory_bytes" | "cpu_percent" | "in_flight" | "event_loop_lag_ms";

const ENGINE_COLUMNS: readonly (keyof EngineSample)[] = [
  "calls_per_s",
  "errors_per_s",
  "p50_ms",
  "p99_ms",
  "in_flight",
  "held",
  "lines",
  "queued_bytes",
  "event_loop_lag_ms",
  "event_loop_lag_p99_ms",
  "memory_bytes",
  "heap_bytes",
  "cpu_percent",
  "state_commits_per_s",
  "restarts",
];
const FUNCTION_COLUMNS: readonly FunctionColumn[] = ["calls_per_s", "errors_per_s", "p99_ms"];
const WORKER_COLUMNS: readonly WorkerColumn[] = [
  "memory_bytes",
  "cpu_percent",
  "in_flight",
  "event_loop_lag_ms",
];
const QUIET = { calls_per_s: 0, errors_per_s: 0, p99_ms: null };

/** Keeps the series. */
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

  /** Knows nothing yet. */
  constructor(meters: Pick<Meters, "bounds_ms">) {
    this.#bounds = meters.bounds_ms;
  }

  /** Keeps a second. */
  add(second: Interval, { at_ms, engine, workers }: MetricsSample): void {
    const sample = this.#times.count;
    this.#times.begin(at_ms);
    this.#engine.write(sample, engine);
    const seconds = second.interval_ms / 1_000;
    const functions = second.functions.filter(({ kind }) => kind !== "hidden")
      .sort((a, b) => b.calls - a.calls).map((delta) => {
        const { function_id, namespace } = delta;
        const values = {
          calls_per_s: delta.calls / seconds,
          errors_per_s: delta.errors / seconds,
          p99_ms: quantile(this.#bounds, delta.durations, 0.99),
        };
        return [keyOf(delta), { of: { function_id, namespace }, values }] as const;
      });
    this.#functions.write(sample, new Map(functions), QUIET);
    const lines = workers.map((values) => {
      const { worker_id, name } = values;
      return [worker_id, { of: { worker_id, name }, values }] as const;
    });
    this.#workers.write(sample, new Map(lines));
  }

  /** The last seconds of the engine alone. */
  engine(seconds: number): Record<keyof EngineSample, Points> {
    return this.#engine.read(this.#times.last(seconds));
  }

  /** What there is of what was asked for. */
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

/** Equal ones stay in their order. */
function busiest<T>(items: readonly T[], calls: (item: T) => number): T[] {
  return items.map((item) => [calls(item), item] as const).sort(([a], [b]) => b - a)
    .map(([, item]) => item);
}

/** Values by name; `null` is unknown. */
export type Values = Readonly<Record<string, number | null>>;

/** Values by name over time, the oldest first. */
export type Series = Record<string, (number | null)[]>;

/** The times. */
export class SampleTimes {
  readonly #at = new Float64Array(METRICS_SAMPLES_MAX);
  #count = 0;

  /** Samples that were ever begun. */
  get count(): number {
    return this.#count;
  }

  /** Begins a sample: what is written from now on belongs to it. */
  begin(at_ms: number): void {
    this.#at[this.#count++ % METRICS_SAMPLES_MAX] = at_ms;
  }

  /** Numbers of the last samples, the oldest first. */
  last(samples: number): number[] {
    const length = Math.min(samples, this.#count, METRICS_SAMPLES_MAX);
    return Array.from({ length }, (_, i) => this.#count - length + i);
  }

  /** When a sample that is still there was taken. */
  at(sample: number): number {
    return this.#at[sample % METRICS_SAMPLES_MAX]!;
  }
}

/** Columns of one thing, such as a function. */
export class Track<Name extends string> {
  readonly #columns: ReadonlyMap<Name, Float32Array>;
  /** Sample in which each slot was written; -1: never. */
  readonly #written = new Int32Array(METRICS_SAMPLES_MAX).fill(-1);

  /** Knows nothing yet. */
  constructor(names: readonly Name[]) {
    this.#columns = new Map(names.map((name) => [name, new Float32Array(METRICS_SAMPLES_MAX)]));
  }

  /** Writes all columns of a sample. */
  write(sample: number, values: Readonly<Record<Name, number | null>>): void {
    const slot = sample % METRICS_SAMPLES_MAX;
    this.#written[slot] = sample;
    for (const [name, column] of this.#columns) column[slot] = values[name] ?? NaN;
  }

  /** All columns for some samples. */
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

  /** All that is known of a column in some samples, added up. */
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

/** A bounded number of tracks; the one that was busy longest ago makes room. */
export class Tracks<Name extends string, Of> {
  readonly #names: readonly Name[];
  readonly #most: number;
  readonly #tracks = new Map<string, { of: Of; busyAt: number; readonly track: Track<Name> }>();

  /** Holds `most` at most. */
  constructor(names: readonly Name[], most: number) {
    this.#names = names;
    this.#most = most;
  }

  /**
   * Writes a sample of all tracks: of those that are given what is given, of the others `quiet`,
   * or nothing when that is left out. Those that were not busy for as long as samples are kept go.
   */
  write(
    sample: number,
    given: ReadonlyMap<string, { of: Of; values: Readonly<Record<Name, number | null>> }>,
    quiet?: Readonly<Record<Name, number | null>>,
  ): void {
    for (const [key, entry] of this.#tracks) {
      const found = given.get(key);
      if (found) {
        entry.of = found.of;
        entry.busyAt = sample;
        entry.track.write(sample, found.values);
      } else if (sample - entry.busyAt >= METRICS_SAMPLES_MAX) this.#tracks.delete(key);
      else if (quiet) entry.track.write(sample, quiet);
    }
    for (const [key, { of, values }] of given) {
      if (this.#tracks.has(key)) continue;
      // All are busy, so there is none for the rest either: of 10,000 workers, searching for each
      // took a tenth of a core.
      if (!this.#makeRoom(sample)) break;
      const track = new Track(this.#names);
      track.write(sample, values);
      this.#tracks.set(key, { of, busyAt: sample, track });
    }
  }

  /** Every track and what it is of, those that were busy last first. */
  all(): { readonly key: string; readonly of: Of; readonly track: Track<Name> }[] {
    return [...this.#tracks].map(([key, entry]) => ({ key, ...entry }))
      .sort((a, b) => b.busyAt - a.busyAt);
  }

  /** `false` when all are busy now. */
  #makeRoom(sample: number): boolean {
    if (this.#tracks.size < this.#most) return true;
    let oldest: string | undefined;
    let oldestAt = sample;
    for (const [key, { busyAt }] of this.#tracks) {
      if (busyAt < oldestAt) [oldest, oldestAt] = [key, busyAt];
    }
    return oldest !== undefined && this.#tracks.delete(oldest);
  }
}
