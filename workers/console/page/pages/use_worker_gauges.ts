/**
 * What workers use, live: the engine's samples of each second, after what it remembers.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { GAUGE_SAMPLES_MAX } from "../../../../sdk/typescript/limits.ts";
import { useLive, useTrigger } from "../kit/mod.ts";
import { WorkerGauges, type WorkerSample, type WorkerSeries } from "../model/worker_gauges.ts";

interface Sampled {
  readonly at_ms: number;
  readonly workers: readonly WorkerSample[];
}

interface Remembered {
  readonly at_ms: readonly number[];
  readonly workers: readonly WorkerSeries[];
}

/** The gauges, and how many samples came: a number that changes whenever they do. */
export function useWorkerGauges(): readonly [WorkerGauges, number] {
  const live = useLive();
  const gauges = useRef<WorkerGauges | null>(null);
  gauges.current ??= new WorkerGauges();
  const known = gauges.current;
  const [taken, setTaken] = useState(0);
  useEffect(() => {
    let isOver = false;
    live.call("engine::metrics::series", { seconds: GAUGE_SAMPLES_MAX, top: 0 }).then((series) => {
      if (isOver) return;
      const { at_ms, workers } = series as unknown as Remembered;
      known.begin(at_ms, workers);
      setTaken((count) => count + 1);
    }, () => {}); // Without what was: the samples from now on do.
    return () => {
      isOver = true;
    };
  }, [live, known]);
  useTrigger<Sampled & object>({ type: "engine::metrics-sampled" }, ({ at_ms, workers }) => {
    known.take(at_ms, workers);
    setTaken((count) => count + 1);
  });
  return [known, taken];
}
