/**
 * Gauges of workers: calls in flight, memory, processor, event-loop delay.
 *
 * They come from `engine::metrics::series` at first, then from `engine::metrics-sampled`, which has
 * all workers in each sample. A fixed number of samples is kept, of the workers in the newest one.
 *
 * @module
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { SPARK_POINTS_MAX } from "../../kit/charts.tsx";
import { useLive, useTrigger } from "../../kit/mod.ts";

/** Samples kept per worker: five minutes at one a second. */
export const GAUGE_SAMPLES_MAX = 300;
/** Workers whose last minutes are fetched at first. */
const WORKERS_MAX = 500;

/** The part of a sample that belongs to one worker. */
export interface WorkerSample {
  readonly worker_id: string;
  readonly name: string;
  readonly in_flight: number | null;
  readonly memory_bytes: number | null;
  readonly cpu_percent: number | null;
  readonly event_loop_lag_ms: number | null;
}

/** A measurement of a worker. */
export type Gauge = "in_flight" | "memory_bytes" | "cpu_percent" | "event_loop_lag_ms";

/** The part of `engine::metrics::series` of one worker; `null`: no sample. */
type WorkerSeries =
  & { readonly worker_id: string; readonly name: string }
  & Partial<
    Readonly<Record<Gauge, readonly (number | null)[]>>
  >;

/** The id of the engine's process, which all built-in workers share. */
export const ENGINE_GAUGES = "(engine)";

const GAUGES: readonly Gauge[] = ["in_flight", "memory_bytes", "cpu_percent", "event_loop_lag_ms"];

/** Samples of the gauges of all workers. */
export class WorkerGauges {
  readonly #max: number;
  #at_ms: number[] = [];
  #rings = new Map<string, Record<Gauge, (number | null)[]>>();

  /** `max`: how many samples are kept. */
  constructor(max: number = GAUGE_SAMPLES_MAX) {
    this.#max = max;
  }

  /** When the samples were taken, in milliseconds since 1970. */
  get at_ms(): readonly number[] {
    return this.#at_ms;
  }

  /** Adds earlier samples from the engine; samples that are known stay as they are. */
  addPast(at_ms: readonly number[], workers: readonly WorkerSeries[]): void {
    const times = [...new Set([...at_ms, ...this.#at_ms])].sort((a, b) => a - b).slice(-this.#max);
    const known = new Map(this.#at_ms.map((ms, at) => [ms, at]));
    const remembered = new Map(at_ms.map((ms, at) => [ms, at]));
    for (const { worker_id } of workers) this.#ring(worker_id);
    for (const [id, ring] of this.#rings) {
      const series = workers.find(({ worker_id }) => worker_id === id);
      for (const gauge of GAUGES) {
        const [mine, past] = [ring[gauge], series?.[gauge]];
        ring[gauge] = times.map((ms) =>
          mine[known.get(ms) ?? -1] ?? past?.[remembered.get(ms) ?? -1] ?? null
        );
      }
    }
    this.#at_ms = times;
  }

  /** Adds a sample; workers that it does not name are dropped. */
  add(at_ms: number, workers: readonly WorkerSample[]): void {
    this.#at_ms = [...this.#at_ms, at_ms].slice(-this.#max);
    const before = this.#rings;
    this.#rings = new Map();
    for (const worker of workers) {
      const ring = before.get(worker.worker_id) ?? this.#ring(worker.worker_id);
      for (const gauge of GAUGES) {
        const values = ring[gauge];
        values.push(worker[gauge]);
        while (values.length < this.#at_ms.length) values.unshift(null);
        if (values.length > this.#at_ms.length) values.shift();
      }
      this.#rings.set(worker.worker_id, ring);
    }
  }

  /** A gauge of several connections, the oldest first: their sum, or the longest delay. */
  history(ids: readonly string[], gauge: Gauge): (number | null)[] {
    const rings = ids.flatMap((id) => {
      const ring = this.#rings.get(id);
      return ring === undefined ? [] : [ring[gauge]];
    });
    return this.#at_ms.map((_, at) => joined(rings.map((ring) => ring[at] ?? null), gauge));
  }

  /** The newest value of {@linkcode history}; `null`: unknown. */
  now(ids: readonly string[], gauge: Gauge): number | null {
    return joined(ids.map((id) => this.#rings.get(id)?.[gauge].at(-1) ?? null), gauge);
  }

  #ring(id: string): Record<Gauge, (number | null)[]> {
    const known = this.#rings.get(id);
    if (known) return known;
    const gaps = () => this.#at_ms.map(() => null);
    const ring = {
      in_flight: gaps(),
      memory_bytes: gaps(),
      cpu_percent: gaps(),
      event_loop_lag_ms: gaps(),
    };
    this.#rings.set(id, ring);
    return ring;
  }
}

function joined(values: readonly (number | null)[], gauge: Gauge): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  if (gauge === "event_loop_lag_ms") return Math.max(...known);
  return known.reduce((sum, value) => sum + value, 0);
}

type EngineUse = Omit<WorkerSample, "worker_id" | "name" | "in_flight">;

interface Sampled {
  readonly at_ms: number;
  readonly engine: EngineUse;
  readonly workers: readonly WorkerSample[];
}

interface Remembered {
  readonly at_ms: readonly number[];
  readonly engine: Omit<WorkerSeries, "worker_id" | "name" | "in_flight">;
  readonly workers: readonly WorkerSeries[];
}

/** The gauges of all workers. */
export interface GaugesState {
  readonly gauges: WorkerGauges;
  /** Changes with every sample. */
  readonly version: number;
  /** Fetches everything that the engine has of these connections. */
  readonly loadPast: (ids: readonly string[]) => void;
}

/** Keeps the gauges of all workers while a component is mounted. */
export function useWorkerGauges(): GaugesState {
  const live = useLive();
  const held = useRef<WorkerGauges | null>(null);
  held.current ??= new WorkerGauges();
  const gauges = held.current;
  const [version, setVersion] = useState(0);
  const fetchPast = useCallback(async (payload: JsonObject) => {
    try {
      const series = await live.call("engine::metrics::series", payload);
      const { at_ms, engine, workers } = series as unknown as Remembered;
      const whole = { ...engine, worker_id: ENGINE_GAUGES, name: "engine", in_flight: [] };
      gauges.addPast(at_ms, [...workers, whole]);
      setVersion((count) => count + 1);
    } catch {
      // Without earlier samples, new ones are shown.
    }
  }, [live, gauges]);
  useEffect(() => {
    // An unknown function, because series of functions are not needed.
    const payload = { seconds: SPARK_POINTS_MAX, top: WORKERS_MAX, function_id: "-" };
    void fetchPast(payload);
  }, [fetchPast]);
  useTrigger<Sampled & object>({ type: "engine::metrics-sampled" }, (sample) => {
    const whole = { ...sample.engine, worker_id: ENGINE_GAUGES, name: "engine", in_flight: null };
    gauges.add(sample.at_ms, [...sample.workers, whole]);
    setVersion((count) => count + 1);
  });
  const loadPast = useCallback((ids: readonly string[]) => {
    for (const worker_id of ids) {
      void fetchPast({ seconds: GAUGE_SAMPLES_MAX, top: 1, function_id: "-", worker_id });
    }
  }, [fetchPast]);
  return { gauges, version, loadPast };
}
