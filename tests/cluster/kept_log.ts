/**
 * A log for tests that read what was logged.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";

/** A log that keeps its lines for the test. */
export function keptLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const note = (level: string) => (text: string, fields?: object): void => {
    lines.push(`${level} ${text} ${JSON.stringify(fields ?? {})}`);
  };
  return {
    lines,
    debug: note("debug"),
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
  };
}
