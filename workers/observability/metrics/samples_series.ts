/**
 * The last 15 minutes, second by second: of the engine, of the busiest functions, of the workers.
 *
 * @module
 */
import type { Meters } from "../../../engine/ports/telemetry.ts";
import {
  METRICS_FUNCTION_SERIES_MAX,
  METRICS_STEP_MS,
  METRICS_WORKER_SERIES_MAX,
} from "../../limits.ts";
import type { EngineSample, MetricsSample, Second } from "./samples.ts";
import { keyOf } from "./samples_counts.ts";
import { quantile } from "./samples_quantile.ts";
import { SampleTimes, Track, Tracks } from "./samples_ring.ts";

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
export class SeriesBook {
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
  add(second: Second, { at_ms, engine, workers }: MetricsSample): void {
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
