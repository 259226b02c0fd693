/**
 * What the engine says about itself.
 *
 * @module
 */

/** From the most talkative to the one that wakes somebody up. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Values that belong to a line; `undefined` ones are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The text is constant, the values are fields. */
export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
}
