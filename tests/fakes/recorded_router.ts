/**
 * A router whose calls are recorded, with somebody who offers and somebody who calls.
 *
 * @module
 */
import type { RouterSettings } from "../../engine/core/router.ts";
import type { CallSpan, TraceSettings } from "../../engine/ports/telemetry.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { type Calling, calling } from "./calling.ts";

/** Everything is recorded. */
export const RECORD_ALL: TraceSettings = {
  enabled: true,
  ratio: 1,
  rules: [],
  memory_bytes: 1024 * 1024,
  payload_chars: 200,
};

/** The router and its recorder. */
export interface RecordedRouter extends Calling {
  readonly recorder: CallRecorder;
  /** The calls that ended since last time, in that order. */
  take(): CallSpan[];
}

/** As {@linkcode calling}; what was recorded so far is taken. */
export function recordedRouter(
  settings: Partial<TraceSettings> = {},
  routing: Partial<RouterSettings> = {},
): RecordedRouter {
  let recorder!: CallRecorder;
  const engine = calling(routing, (clock) => {
    recorder = new CallRecorder({ clock });
    recorder.configure({ ...RECORD_ALL, ...settings });
    return recorder;
  });
  let cursor = 0;
  const take = (): CallSpan[] => {
    const next = recorder.ended(cursor, 1_000_000);
    cursor = next.cursor;
    return next.spans;
  };
  take();
  return { ...engine, recorder, take };
}
