/**
 * One shape for all logs: what workers say by their logger or print, what functions are told to
 * log, and what the engine says of itself.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/protocol.ts";

/** How important a line is, the least important first. */
export const SEVERITIES = ["trace", "debug", "info", "warn", "error"] as const;

/** One of {@linkcode SEVERITIES}. */
export type Severity = typeof SEVERITIES[number];

/** Where a line comes from: an SDK's logger, what a process printed, the engine, `engine::log::*`. */
export type LogSource = "logger" | "output" | "engine" | "function";

/** A line of a log. */
export interface LogRecord {
  /** Grows with every record; never used twice in an engine's life. */
  readonly seq: number;
  /** When it was said, in milliseconds since 1970, with fractions. */
  readonly at_ms: number;
  /** When the engine got it. */
  readonly observed_ms: number;
  readonly severity: Severity;
  readonly body: string;
  /** Redacted; without the names that begin with `engine.`, which are fields here. */
  readonly attributes: Readonly<Record<string, Json>>;
  /** 32 and 16 hexadecimal digits; `null`: it belongs to no call. */
  readonly trace_id: string | null;
  readonly span_id: string | null;
  /** Worker or program that said it. */
  readonly service_name: string;
  /** Name of the worker; `null`: the engine, or nobody knows. */
  readonly worker: string | null;
  /** From 1; `null`: not one of a supervised worker. */
  readonly replica: number | null;
  readonly source: LogSource;
  /** The function that was running. */
  readonly function_id: string | null;
  readonly scope_name: string | null;
}

/** Records as they come. */
export interface LogFeed {
  /** Hears of every record that is kept, at once; must not throw. Call the result to stop. */
  listen(listener: (record: LogRecord) => void): () => void;
}
