/**
 * The engine's measurements while a component stands: what was kept, and each second what is new.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { CallFailure, useLive, useTrigger } from "../../kit/mod.ts";
import {
  ENGINE_SAMPLES,
  type EngineSample,
  EngineSamples,
  type EngineSeries,
} from "./engine_samples.ts";

/** What is known; `samples` is changed in place, `version` says when. */
export interface SamplesState {
  readonly samples: EngineSamples;
  /** Grows with every sample. */
  readonly version: number;
  readonly status: "loading" | "ready" | "failed";
  readonly error: CallFailure | null;
  /** Asks for what was kept anew. */
  readonly retry: () => void;
}

/** See the module. */
export function useSamples(): SamplesState {
  const live = useLive();
  const samples = useRef<EngineSamples>();
  samples.current ??= new EngineSamples();
  const [version, setVersion] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [asked, setAsked] = useState<Pick<SamplesState, "status" | "error">>(LOADING);
  const engine = live.connection.value.engine;
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
    // Asked anew when the engine is back: its clock and its workers may be others.
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

const LOADING = { status: "loading", error: null } as const;
