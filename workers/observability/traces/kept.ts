/**
 * What outlives a restart of `engine-observability`, such as after an edit of its configuration.
 *
 * The rings belong to the engine's life, not to one configuration, and hang from what lives as
 * long: its record of calls.
 *
 * @module
 */
import type { CallTraces } from "../../../engine/ports/telemetry.ts";
import { LogRing } from "../logs/ring.ts";
import { SpanRing } from "./spans_ring.ts";

/** The rings of one engine. */
export interface KeptRings {
  readonly spans: SpanRing;
  readonly logs: LogRing;
  /** Whether what an engine before this one left on disk has been read. */
  isRestored: boolean;
}

const kept = new WeakMap<CallTraces, KeptRings>();

/** The rings of the engine whose record of calls this is, at the sizes given. */
export function ringsOf(
  traces: CallTraces,
  bytesMax: { readonly spans: number; readonly logs: number },
): KeptRings {
  let rings = kept.get(traces);
  if (!rings) {
    rings = {
      spans: new SpanRing(bytesMax.spans),
      logs: new LogRing(bytesMax.logs),
      isRestored: false,
    };
    kept.set(traces, rings);
  }
  rings.spans.resize(bytesMax.spans);
  rings.logs.resize(bytesMax.logs);
  return rings;
}
