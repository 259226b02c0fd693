/**
 * Samples of the engine, its functions and its workers, over the same time range.
 *
 * A series that a sample does not name was idle then and gets its idle values (0 calls, no
 * latency). A series that was idle for the whole range is dropped, so memory is bounded by the
 * range and by how many series were active in it.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { CallFailure, useLive, useTrigger } from "../../kit/mod.ts";
import { functionKey } from "../references.tsx";

/** Functions or workers in one chart. */
export const CHARTED_MAX = 5;
/** Rates and times of lists are those of the last minute, in samples. */
export const MINUTE_SAMPLES = 60;
/** Samples of the engine as a whole: 15 minutes. */
const ENGINE_SAMPLES = 900;
/** Samples of each function and worker: 5 minutes. */
const THING_SAMPLES = 300;
/** Enough of an id to tell it from others. */
const ID_CHARS = 8;
/** The key of the engine's own series. */
const ENGINE = "engine";
const LOADING = { status: "loading", error: null } as const;

/** The values of one series in one sample; missing fields have their idle value. */
type Measured<Field extends string> = Readonly<Partial<Record<Field, number | null>>>;

/** Samples of many series by key. `Field` names the values of each. */
export class SampleWindow<Field extends string> {
  readonly #capacity: number;
  readonly #idle: Readonly<Record<Field, number | null>>;
  readonly #at: Float64Array;
  readonly #rows = new Map<string, Row<Field>>();
  /** The number of samples so far. */
  #count = 0;

  /**
   * `capacity`: how many samples are kept; `idle`: the values of a series that is not in a sample.
   */
  constructor(capacity: number, idle: Readonly<Record<Field, number | null>>) {
    this.#capacity = capacity;
    this.#idle = idle;
    this.#at = new Float64Array(capacity);
  }

  /** Times of the samples in milliseconds since 1970, the oldest first. */
  get at_ms(): number[] {
    return this.#read((slot) => this.#at[slot]!);
  }

  /** Keys of the series that were active in the range. */
  get keys(): string[] {
    return [...this.#rows.keys()];
  }

  /** Adds a sample and drops the oldest. One that is not newer than the last is ignored. */
  add(at_ms: number, measured: Iterable<readonly [key: string, values: Measured<Field>]>): boolean {
    if (this.#count > 0 && at_ms <= this.#at[this.#slotOf(this.#count - 1)]!) return false;
    const number = this.#count++;
    const slot = this.#slotOf(number);
    this.#at[slot] = at_ms;
    for (const row of this.#rows.values()) this.#write(row, slot, {} as Measured<Field>);
    for (const [key, values] of measured) {
      let row = this.#rows.get(key);
      if (!row) this.#rows.set(key, row = this.#makeRow());
      row.seen = number;
      this.#write(row, slot, values);
    }
    for (const [key, { seen }] of this.#rows) {
      if (number - seen >= this.#capacity) this.#rows.delete(key);
    }
    return true;
  }

  /** The values of a series, the oldest first; `null`: not measured. */
  series(key: string, field: Field, newest = this.#capacity): (number | null)[] {
    const column = this.#rows.get(key)?.columns[field];
    const idle = this.#idle[field];
    return this.#read((slot) => {
      if (!column) return idle;
      const value = column[slot]!;
      return Number.isNaN(value) ? null : value;
    }, newest);
  }

  /** The newest value of a series; `null`: not measured. */
  latest(key: string, field: Field): number | null {
    if (this.#count === 0) return null;
    return this.series(key, field, 1)[0] ?? null;
  }

  /** The newest value that is not `null`; `null`: none in the range. */
  last(key: string, field: Field): number | null {
    const column = this.#rows.get(key)?.columns[field];
    const oldest = Math.max(0, this.#count - this.#capacity);
    for (let number = this.#count - 1; column && number >= oldest; number--) {
      const value = column[this.#slotOf(number)]!;
      if (!Number.isNaN(value)) return value;
    }
    return null;
  }

  /** The mean of the newest samples of a series; `null`: none was measured. */
  mean(key: string, field: Field, newest: number): number | null {
    return meanOf(this.series(key, field, newest));
  }

  /** Whether a series was active in the range. */
  has(key: string): boolean {
    return this.#rows.has(key);
  }

  /** Keys of the series with the largest sums of a value, the largest first. */
  largest(field: Field, count: number): string[] {
    const sums = this.keys.map((key) => ({
      key,
      sum: this.series(key, field).reduce<number>((sum, value) => sum + (value ?? 0), 0),
    }));
    sums.sort((a, b) => b.sum - a.sum || (a.key < b.key ? -1 : 1));
    return sums.slice(0, count).map(({ key }) => key);
  }

  /** Drops everything. */
  clear(): void {
    this.#rows.clear();
    this.#count = 0;
  }

  #slotOf(number: number): number {
    return number % this.#capacity;
  }

  #read<T>(at: (slot: number) => T, newest = this.#capacity): T[] {
    const length = Math.min(this.#count, this.#capacity, newest);
    const first = this.#count - length;
    return Array.from({ length }, (_, i) => at(this.#slotOf(first + i)));
  }

  #write(row: Row<Field>, slot: number, values: Measured<Field>): void {
    for (const field of Object.keys(this.#idle) as Field[]) {
      const value = values[field] === undefined ? this.#idle[field] : values[field];
      row.columns[field][slot] = value ?? NaN;
    }
  }

  #makeRow(): Row<Field> {
    const columns = {} as Record<Field, Float32Array>;
    for (const field of Object.keys(this.#idle) as Field[]) {
      columns[field] = new Float32Array(this.#capacity).fill(this.#idle[field] ?? NaN);
    }
    return { columns, seen: 0 };
  }
}

interface Row<Field extends string> {
  readonly columns: Readonly<Record<Field, Float32Array>>;
  /** The number of the last sample that named it. */
  seen: number;
}

/** A value of the engine. */
const ENGINE_FIELDS = [
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
/** A value of a function. */
export type FunctionField = "calls_per_s" | "errors_per_s" | "p50_ms" | "p99_ms" | "in_flight";
/** A value of a worker. */
export type WorkerField = "memory_bytes" | "cpu_percent" | "in_flight" | "event_loop_lag_ms";

type Numbers<Field extends string> = Readonly<Partial<Record<Field, number | null>>>;

/** The payload of `engine::metrics-sampled`. */
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

/** The result of `engine::metrics::series`. */
interface EngineSeries {
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

/** The traffic of a function in the last minute. */
export interface FunctionTraffic {
  readonly calls_per_s: number;
  readonly errors_per_s: number;
  /** Of each second, in proportion to its calls. */
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
}

/** The mean of the values that are not `null`, in proportion to their weights. */
export function meanOf(
  values: readonly (number | null)[],
  weights?: readonly (number | null)[],
): number | null {
  let sum = 0, weight = 0;
  values.forEach((value, i) => {
    if (value === null) return;
    const part = weights === undefined ? 1 : weights[i] ?? 0;
    sum += value * part;
    weight += part;
  });
  return weight === 0 ? null : sum / weight;
}

/** The samples of the engine, its functions and its workers. */
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

  /** Replaces everything by the samples that the engine has stored. */
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

  /** Adds a sample. */
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

  /** A value of the engine over time, the oldest first. */
  engineSeries(field: EngineField): (number | null)[] {
    return this.engine.series(ENGINE, field);
  }

  /** The newest value of the engine. */
  engineLatest(field: EngineField): number | null {
    return this.engine.latest(ENGINE, field);
  }

  /** The mean of a value of the engine over the last minute. */
  engineMinute(field: EngineField): number | null {
    return this.engine.mean(ENGINE, field, MINUTE_SAMPLES);
  }

  /** The traffic of a function in the last minute; `undefined`: none in the whole range. */
  traffic(key: string): FunctionTraffic | undefined {
    if (!this.functions.has(key)) return undefined;
    const minute = (field: FunctionField) => this.functions.series(key, field, MINUTE_SAMPLES);
    const calls = minute("calls_per_s");
    return {
      calls_per_s: meanOf(calls) ?? 0,
      errors_per_s: meanOf(minute("errors_per_s")) ?? 0,
      p50_ms: meanOf(minute("p50_ms"), calls) ?? this.functions.last(key, "p50_ms"),
      p99_ms: meanOf(minute("p99_ms"), calls) ?? this.functions.last(key, "p99_ms"),
    };
  }

  /** The name of a worker, or the start of its id if it has none. */
  workerName(id: string): string {
    return this.#workerNames.get(id) ?? id.slice(0, ID_CHARS);
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

/** The samples, which are changed in place; `version` changes with them. */
export interface SamplesState {
  readonly samples: EngineSamples;
  /** Increases with every sample. */
  readonly version: number;
  readonly status: "loading" | "ready" | "failed";
  readonly error: CallFailure | null;
  /** Fetches the stored samples again. */
  readonly retry: () => void;
}

/** Keeps samples while a component is mounted: stored ones, and a new one each second. */
export function useSamples(): SamplesState {
  const live = useLive();
  const samples = useRef<EngineSamples>();
  samples.current ??= new EngineSamples();
  const [version, setVersion] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [asked, setAsked] = useState<Pick<SamplesState, "status" | "error">>(LOADING);
  const engine = live.status.value.engine;
  useEffect(() => {
    if (engine === false) return;
    const abort = new AbortController();
    const payload = { seconds: ENGINE_SAMPLES, top: 200 };
    live.call("engine::metrics::series", payload, { signal: abort.signal }).then((series) => {
      samples.current!.fill(series as unknown as EngineSeries);
      setAsked({ status: "ready", error: null });
      setVersion((version) => version + 1);
    }, (thrown: unknown) => {
      if (abort.signal.aborted) return;
      setAsked({ status: "failed", error: thrown instanceof CallFailure ? thrown : null });
    });
    return () => abort.abort();
    // Fetched again when the engine is back, since its workers may have changed.
  }, [live, engine, attempt]);
  useTrigger<EngineSample>({ type: "engine::metrics-sampled" }, (sample) => {
    samples.current!.add(sample);
    setVersion((version) => version + 1);
  });
  return {
    samples: samples.current,
    version,
    ...asked,
    retry: () => (setAsked(LOADING), setAttempt(attempt + 1)),
  };
}
