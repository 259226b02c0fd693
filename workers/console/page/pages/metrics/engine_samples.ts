/**
 * What the engine measures each second, as the page keeps it: the engine, functions and workers.
 *
 * Filled once from `engine::metrics::series`, then sample by sample from the trigger type
 * `engine::metrics-sampled`. Names that an engine does not measure are missing, never 0.
 *
 * @module
 */
import { functionKey, type FunctionTraffic } from "../functions/function_rows.ts";
import { SampleWindow } from "./sample_window.ts";

/** Functions or workers in one chart. */
export const CHARTED_MAX = 6;

/** Samples of the engine as a whole: 15 minutes. */
export const ENGINE_SAMPLES = 900;
/** Samples of each function and worker: 5 minutes. */
const THING_SAMPLES = 300;
/** The key of the engine in its own window. */
const ENGINE = "engine";

/** What is measured of the engine; rates are per second. */
export const ENGINE_FIELDS = [
  "calls_per_s",
  "errors_per_s",
  "p50_ms",
  "p99_ms",
  "in_flight",
  "held",
  "lines",
  "queued_bytes",
  "event_loop_lag_ms",
  "memory_bytes",
  "heap_bytes",
  "cpu_percent",
  "state_commits_per_s",
  "restarts",
] as const;

/** One of them. */
export type EngineField = (typeof ENGINE_FIELDS)[number];
/** What is measured of a function. */
export type FunctionField = "calls_per_s" | "errors_per_s" | "p50_ms" | "p99_ms" | "in_flight";
/** What is measured of a worker. */
export type WorkerField = "memory_bytes" | "cpu_percent" | "in_flight" | "event_loop_lag_ms";

type Numbers<Field extends string> = Readonly<Partial<Record<Field, number | null>>>;

/** One firing of `engine::metrics-sampled`. */
export interface EngineSample {
  readonly at_ms: number;
  readonly engine: Numbers<EngineField>;
  readonly functions: readonly (Numbers<FunctionField> & {
    readonly function_id: string;
    readonly namespace: string;
  })[];
  readonly workers: readonly (Numbers<WorkerField> & {
    readonly worker_id: string;
    readonly name: string | null;
  })[];
}

type Lists<Field extends string> = Readonly<Partial<Record<Field, readonly (number | null)[]>>>;

/** The answer of `engine::metrics::series`. */
export interface EngineSeries {
  readonly at_ms: readonly number[];
  readonly engine: Lists<EngineField>;
  readonly functions: readonly (Lists<FunctionField> & {
    readonly function_id: string;
    readonly namespace: string;
  })[];
  readonly workers: readonly (Lists<WorkerField> & {
    readonly worker_id: string;
    readonly name: string | null;
  })[];
}

const NOTHING = Object.fromEntries(ENGINE_FIELDS.map((field) => [field, null])) as Record<
  EngineField,
  null
>;

/** See the module. */
export class EngineSamples {
  readonly engine = new SampleWindow<EngineField>(ENGINE_SAMPLES, NOTHING);
  readonly functions = new SampleWindow<FunctionField>(THING_SAMPLES, {
    calls_per_s: 0,
    errors_per_s: 0,
    p50_ms: null,
    p99_ms: null,
    in_flight: 0,
  });
  readonly workers = new SampleWindow<WorkerField>(THING_SAMPLES, {
    memory_bytes: null,
    cpu_percent: null,
    in_flight: null,
    event_loop_lag_ms: null,
  });
  readonly #workerNames = new Map<string, string>();

  /** Starts anew from what the engine kept. */
  fill(series: EngineSeries): void {
    this.engine.clear();
    this.functions.clear();
    this.workers.clear();
    this.#workerNames.clear();
    series.at_ms.forEach((at_ms, i) => {
      this.add({
        at_ms,
        engine: numbersAt(series.engine, i),
        functions: series.functions.map((each) => ({
          ...numbersAt<FunctionField>(each as Lists<FunctionField>, i),
          function_id: each.function_id,
          namespace: each.namespace,
        })),
        workers: series.workers.map((each) => ({
          ...numbersAt<WorkerField>(each as Lists<WorkerField>, i),
          worker_id: each.worker_id,
          name: each.name,
        })),
      });
    });
  }

  /** One more sample. */
  add(sample: EngineSample): void {
    const { at_ms } = sample;
    if (!this.engine.add(at_ms, [[ENGINE, sample.engine]])) return;
    this.functions.add(
      at_ms,
      sample.functions.filter(isBusy).map((each) =>
        [functionKey(each.namespace, each.function_id), each] as const
      ),
    );
    this.workers.add(at_ms, sample.workers.map((each) => [each.worker_id, each] as const));
    for (const { worker_id, name } of sample.workers) {
      if (name !== null) this.#workerNames.set(worker_id, name);
    }
    const known = new Set(this.workers.keys);
    for (const id of this.#workerNames.keys()) if (!known.has(id)) this.#workerNames.delete(id);
  }

  /** A measure of the engine over time, the oldest first. */
  engineSeries(field: EngineField): (number | null)[] {
    return this.engine.series(ENGINE, field);
  }

  /** A measure of the engine as it was last. */
  engineLatest(field: EngineField): number | null {
    return this.engine.latest(ENGINE, field);
  }

  /** What a function did in the last sample; `undefined`: nothing in the whole window. */
  traffic(key: string): FunctionTraffic | undefined {
    if (!this.functions.has(key)) return undefined;
    return {
      calls_per_s: this.functions.latest(key, "calls_per_s") ?? 0,
      errors_per_s: this.functions.latest(key, "errors_per_s") ?? 0,
      p50_ms: this.functions.last(key, "p50_ms"),
      p99_ms: this.functions.last(key, "p99_ms"),
    };
  }

  /** Things with the largest sum of a measure over the window, the largest first. */
  busiest(count: number): string[] {
    return this.functions.largest("calls_per_s", count);
  }

  /** The name of a worker's connection; its id when it has none. */
  workerName(id: string): string {
    return this.#workerNames.get(id) ?? id;
  }
}

function isBusy(each: Numbers<FunctionField>): boolean {
  return Boolean(each.calls_per_s) || Boolean(each.errors_per_s) || Boolean(each.in_flight);
}

function numbersAt<Field extends string>(lists: Lists<Field>, i: number): Numbers<Field> {
  const numbers: Partial<Record<Field, number | null>> = {};
  for (const [field, values] of Object.entries(lists as Record<string, unknown>)) {
    if (Array.isArray(values)) numbers[field as Field] = values[i] as number | null ?? null;
  }
  return numbers;
}
