/**
 * The engine's log as `engine-observability` writes to it: what it writes there comes back to it,
 * and must neither be kept twice nor fire the triggers it is about.
 *
 * @module
 */
import type { Log, LogFields, LogLevel } from "../../../engine/ports/log.ts";

/** Name of the worker that keeps logs and fires triggers for them. */
export const OWN_NAME = "engine-observability";

/** Two ways to write to the engine's log. */
export interface OwnLog {
  /** For what is kept already; what is written does not come back, see {@linkcode isSpeaking}. */
  readonly said: Log;
  /** For what is to be kept: the lines have a field `by`, so that they fire no trigger. */
  readonly own: Log;
  /** Whether a line that comes back now is one of `said`. */
  isSpeaking(): boolean;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Makes both from the engine's log, which hands lines back while they are written. */
export function ownLog(log: Log): OwnLog {
  let isSpeaking = false;
  const speak = (level: LogLevel, text: string, fields?: LogFields): void => {
    isSpeaking = true;
    try {
      log[level](text, fields);
    } finally {
      isSpeaking = false;
    }
  };
  return {
    said: logOf(speak),
    own: logOf((level, text, fields) => log[level](text, { by: OWN_NAME, ...fields })),
    isSpeaking: () => isSpeaking,
  };
}

function logOf(write: (level: LogLevel, text: string, fields?: LogFields) => void): Log {
  const entries = LEVELS.map((level) => [
    level,
    (text: string, fields?: LogFields) => write(level, text, fields),
  ]);
  return Object.fromEntries(entries) as unknown as Log;
}
