/**
 * What workers use, live: the engine's samples of each second, after what it remembers.
 *
 * @module
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { GAUGE_SAMPLES_MAX } from "./worker_gauges.ts";
import { SPARK_POINTS_MAX } from "../../kit/spark_path.ts";
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { useLive, useTrigger } from "../../kit/mod.ts";
import {
  ENGINE_GAUGES,
  WorkerGauges,
  type WorkerSample,
  type WorkerSeries,
} from "./worker_gauges.ts";

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

/** What workers use, and how to fetch more of the past. */
export interface GaugesState {
  readonly gauges: WorkerGauges;
  /** Changes with every sample. */
  readonly taken: number;
  /** Fetches all that is known of these lines. */
  readonly remember: (ids: readonly string[]) => void;
}

/** Workers whose last minute is fetched at first. */
const WORKERS_MAX = 500;

/** See the module. */
export function useWorkerGauges(): GaugesState {
  const live = useLive();
  const held = useRef<WorkerGauges | null>(null);
  held.current ??= new WorkerGauges();
  const gauges = held.current;
  const [taken, setTaken] = useState(0);
  const fetchPast = useCallback(async (payload: JsonObject) => {
    try {
      const series = await live.call("engine::metrics::series", payload);
      const { at_ms, engine, workers } = series as unknown as Remembered;
      const whole = { ...engine, worker_id: ENGINE_GAUGES, name: "engine", in_flight: [] };
      gauges.begin(at_ms, [...workers, whole]);
      setTaken((count) => count + 1);
    } catch {
      // Without what was: the samples from now on do.
    }
  }, [live, gauges]);
  useEffect(() => {
    // Of functions nothing is wanted, so one is named that is not there.
    const payload = { seconds: SPARK_POINTS_MAX, top: WORKERS_MAX, function_id: "-" };
    void fetchPast(payload);
  }, [fetchPast]);
  useTrigger<Sampled & object>({ type: "engine::metrics-sampled" }, (sample) => {
    const whole = { ...sample.engine, worker_id: ENGINE_GAUGES, name: "engine", in_flight: null };
    gauges.take(sample.at_ms, [...sample.workers, whole]);
    setTaken((count) => count + 1);
  });
  const remember = useCallback((ids: readonly string[]) => {
    for (const worker_id of ids) {
      void fetchPast({ seconds: GAUGE_SAMPLES_MAX, top: 1, function_id: "-", worker_id });
    }
  }, [fetchPast]);
  return { gauges, taken, remember };
}
