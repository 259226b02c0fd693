/**
 * The engine's log.
 *
 * @module
 */

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
