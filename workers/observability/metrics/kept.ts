/**
 * What is known of the past, and outlives a restart of `engine-observability`, as after an edit
 * of its configuration.
 *
 * It belongs to the engine's life, not to one configuration, and hangs from what lives as long: its
 * meters.
 *
 * @module
 */
import type { Meters } from "../../../engine/ports/telemetry.ts";
import type { EngineHost } from "../../kit/define.ts";
import { SdkMetrics } from "./frames.ts";
import { Rollups } from "./rollups.ts";
import { RecentDeltas } from "./samples_recent.ts";
import { SeriesBook } from "./samples_series.ts";
import { WorkerLook } from "./samples_workers.ts";

/** The past of one engine. */
export interface MetricsHistory {
  readonly series: SeriesBook;
  readonly rollups: Rollups;
  readonly recent: RecentDeltas;
  readonly workers: WorkerLook;
  readonly sdk: SdkMetrics;
  /** Workers that came and left. */
  readonly comings: { spawns: number; deaths: number };
}

const kept = new WeakMap<Meters, MetricsHistory>();

/** The past of the engine that lends this. */
export function historyOf(
  { meters, directory, supervision, clock }: Pick<
    EngineHost,
    "meters" | "directory" | "supervision" | "clock"
  >,
): MetricsHistory {
  let history = kept.get(meters);
  if (!history) {
    history = {
      series: new SeriesBook(meters),
      rollups: new Rollups(meters),
      recent: new RecentDeltas(),
      workers: new WorkerLook(directory, supervision, clock),
      sdk: new SdkMetrics(clock),
      comings: { spawns: 0, deaths: 0 },
    };
    kept.set(meters, history);
  }
  return history;
}
