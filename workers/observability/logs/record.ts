/**
 * One shape for all logs: what workers say by their logger or print, what functions are told to
 * log, and what the engine says of itself.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";

/** How important a line is, the least important first. */
export const SEVERITIES = ["trace", "debug", "info", "warn", "error"] as const;

/** One of {@linkcode SEVERITIES}. */
export type Severity = typeof SEVERITIES[number];

/** Where a line comes from: an SDK's logger, a process's output, the engine, `engine::log::*`. */
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

/** What is known of a line before it is kept. */
export type NewLog = Omit<LogRecord, "seq">;

/** As OpenTelemetry counts: 1, 5, 9, 13, 17. */
export function severityNumber(severity: Severity): number {
  return 4 * SEVERITIES.indexOf(severity) + 1;
}

/** A severity by its name or its number; `info` when neither says anything. */
export function severityOf(text: string | null | undefined, number = 0): Severity {
  const lower = text?.toLowerCase() ?? "";
  const named = SEVERITIES.find((severity) => lower.startsWith(severity));
  if (named !== undefined) return named;
  if (lower === "fatal" || lower === "critical") return "error";
  if (!Number.isFinite(number) || number <= 0) return "info";
  return SEVERITIES[Math.min(4, Math.floor((number - 1) / 4))] ?? "info";
}

/** Whether a line is at least as important. */
export function isAtLeast(severity: Severity, least: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least);
}

/** A record as PROTOCOL 5.8 has it, and its `seq`. Nanoseconds are numbers. */
export function wireLog(record: LogRecord): JsonObject {
  const { seq, severity, body, trace_id, span_id, service_name, worker, replica } = record;
  return {
    seq,
    timestamp_unix_nano: Math.round(record.at_ms * 1e3) * 1e3,
    observed_timestamp_unix_nano: Math.round(record.observed_ms * 1e3) * 1e3,
    severity_number: severityNumber(severity),
    severity_text: severity.toUpperCase(),
    body,
    attributes: {
      ...record.attributes,
      ...worker !== null && { "engine.worker": worker },
      ...replica !== null && { "engine.replica": replica },
      "engine.source": record.source,
      ...record.function_id !== null && { "engine.function_id": record.function_id },
    },
    trace_id,
    span_id,
    resource: { "service.name": service_name },
    service_name,
    instrumentation_scope_name: record.scope_name,
    instrumentation_scope_version: null,
  };
}
