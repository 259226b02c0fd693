/**
 * State that survives a restart of `engine-observability`, as after an edit of its configuration.
 *
 * Held in weak maps keyed by objects that live as long as the engine: its call recorder and its
 * meters.
 *
 * @module
 */
import type { CallTraces, Meters } from "../../engine/ports/telemetry.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { EngineHost } from "../kit/define.ts";
import { LogRing } from "./logs/store.ts";
import { RecentDeltas } from "./metrics/meters.ts";
import { SdkMetrics } from "./metrics/otlp.ts";
import { Rollups } from "./metrics/rollups.ts";
import { SeriesStore } from "./metrics/series.ts";
import { WorkerMonitor } from "./metrics/workers.ts";
import { SpanRing } from "./traces/ring.ts";

/** Recorded spans and logs of one engine. */
export interface RetainedRings {
  readonly spans: SpanRing;
  readonly logs: LogRing;
  /** Whether the files of a previous run have been read. */
  isRestored: boolean;
}

/** @throws {EngineError} `FORBIDDEN` unless an operator removes what is retained. */
export function checkOperator(isOperator: boolean, function_id: string): void {
  if (isOperator) return;
  throw new EngineError(
    "FORBIDDEN",
    `Only the command line and the console of the engine's own user may call ${function_id}; ` +
      "the oldest records are removed without it",
  );
}

const ringsByRecord = new WeakMap<CallTraces, RetainedRings>();

/** The rings of the engine that owns `traces`, resized to `bytesMax`. */
export function ringsOf(
  traces: CallTraces,
  bytesMax: { readonly spans: number; readonly logs: number },
): RetainedRings {
  let rings = ringsByRecord.get(traces);
  if (!rings) {
    rings = {
      spans: new SpanRing(bytesMax.spans),
      logs: new LogRing(bytesMax.logs),
      isRestored: false,
    };
    ringsByRecord.set(traces, rings);
  }
  rings.spans.resize(bytesMax.spans);
  rings.logs.resize(bytesMax.logs);
  return rings;
}

/** Recorded metrics of one engine. */
export interface MetricsHistory {
  readonly series: SeriesStore;
  readonly rollups: Rollups;
  readonly recent: RecentDeltas;
  readonly workers: WorkerMonitor;
  readonly sdk: SdkMetrics;
  /** Workers that connected and disconnected. */
  readonly workerCounts: { spawns: number; deaths: number };
}

const historyByMeters = new WeakMap<Meters, MetricsHistory>();

/** The metrics of the engine that owns `meters`. */
export function historyOf(
  { meters, directory, supervision, clock }: Pick<
    EngineHost,
    "meters" | "directory" | "supervision" | "clock"
  >,
): MetricsHistory {
  let history = historyByMeters.get(meters);
  if (!history) {
    history = {
      series: new SeriesStore(meters),
      rollups: new Rollups(meters),
      recent: new RecentDeltas(),
      workers: new WorkerMonitor(directory, supervision, clock),
      sdk: new SdkMetrics(clock),
      workerCounts: { spawns: 0, deaths: 0 },
    };
    historyByMeters.set(meters, history);
  }
  return history;
}
