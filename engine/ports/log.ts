/**
 * The engine's log.
 *
 * @module
 */

/** Longest value of a field in the log; the rest is cut off. */
export const LOG_VALUE_CHARS_MAX = 4_000;

/** From the most verbose to the most severe. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Fields of a log line; `undefined` ones are omitted. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The text is constant, the values are fields. */
export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
}

/** A line of the engine's own log. */
export interface EngineLogLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields: LogFields;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
}

/** Receives the engine's log at every level; must not throw. */
export type EngineLogListener = (line: EngineLogLine) => void;
