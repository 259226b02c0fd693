/**
 * Log records: one form for SDK loggers (OTLP), printed output, `engine::log::*` and the engine's
 * own log.
 *
 * @module
 */
import type { PrintedLine } from "../../../engine/ports/telemetry.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import {
  cut,
  type FrameItems,
  readAttributes,
  readItems,
  readNanos,
  readValue,
  TELEMETRY_NAME_CHARS_MAX,
  TELEMETRY_TEXT_CHARS_MAX,
} from "../intake.ts";
import type { Redactor } from "../redact.ts";

/** In ascending order. */
export const SEVERITIES = ["trace", "debug", "info", "warn", "error"] as const;

/** One of {@linkcode SEVERITIES}. */
export type Severity = typeof SEVERITIES[number];

/** Origin of a record: SDK logger, process output, engine, or `engine::log::*`. */
export type LogSource = "logger" | "output" | "engine" | "function";

/** A stored log record. */
export interface LogRecord {
  /** Increases with every record; unique within an engine's life. */
  readonly seq: number;
  /** Time of the event, in milliseconds since 1970, with fractions. */
  readonly at_ms: number;
  /** When the engine received it. */
  readonly observed_ms: number;
  readonly severity: Severity;
  readonly body: string;
  /** Redacted; without names that begin with `engine.`, which are fields here. */
  readonly attributes: Readonly<Record<string, Json>>;
  /** 32 and 16 hexadecimal digits; `null`: outside of any call. */
  readonly trace_id: string | null;
  readonly span_id: string | null;
  /** Worker or program that wrote it. */
  readonly service_name: string;
  /** Name of the worker; `null`: the engine, or unknown. */
  readonly worker: string | null;
  /** From 1; `null`: not a supervised worker. */
  readonly replica: number | null;
  readonly source: LogSource;
  /** The function that was running. */
  readonly function_id: string | null;
  readonly scope_name: string | null;
}

/** Delivers records as they are stored. */
export interface LogFeed {
  /** Calls the listener synchronously; it must not throw. Call the result to stop. */
  listen(listener: (record: LogRecord) => void): () => void;
}

/** A record before it is stored. */
export type NewLog = Omit<LogRecord, "seq">;

/** OpenTelemetry's severity number: 1, 5, 9, 13 or 17. */
export function severityNumber(severity: Severity): number {
  return 4 * SEVERITIES.indexOf(severity) + 1;
}

/** A severity from its name or else its number; `info` if neither is valid. */
export function severityOf(text: string | null | undefined, number = 0): Severity {
  const lower = text?.toLowerCase() ?? "";
  const named = SEVERITIES.find((severity) => lower.startsWith(severity));
  if (named !== undefined) return named;
  if (lower === "fatal" || lower === "critical") return "error";
  if (!Number.isFinite(number) || number <= 0) return "info";
  return SEVERITIES[Math.min(4, Math.floor((number - 1) / 4))] ?? "info";
}

/** Whether `severity` is `least` or more severe. */
export function isAtLeast(severity: Severity, least: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least);
}

/** The engine of a record, for readers at another one. */
export interface LogOrigin {
  /** Two engines may have one name. */
  readonly name: string;
  readonly life: string;
}

/** A record as PROTOCOL 5.8 specifies it, plus its `seq`. Nanoseconds are numbers. */
export function wireLog(record: LogRecord, origin?: LogOrigin): JsonObject {
  const { seq, severity, body, trace_id, span_id, service_name, worker, replica } = record;
  return {
    seq,
    ...origin !== undefined && { engine: origin.name, engine_life: origin.life },
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

const List = v.nullish(v.array(v.unknown()), []);
const Nanos = v.nullish(v.union([v.string(), v.number()]));

const LISTS = ["resourceLogs", "scopeLogs", "logRecords"] as const;

const OtlpRecord = v.object({
  timeUnixNano: Nanos,
  observedTimeUnixNano: Nanos,
  severityNumber: v.nullish(v.number()),
  severityText: v.nullish(v.string()),
  body: v.optional(v.unknown()),
  attributes: List,
  traceId: v.nullish(v.string()),
  spanId: v.nullish(v.string()),
});

/** Attributes that name the running function. */
const FUNCTION_NAMES = ["engine.function.id", "engine.function_id"];

/**
 * Reads an OTLP frame of logs. `ahead` says how far the clock of a worker is ahead of the engine's,
 * in milliseconds. @throws {Error} The frame is malformed.
 */
export function readLogs(
  frame: unknown,
  redactor: Redactor,
  observed_ms: number,
  ahead: (worker_id: string | null) => number = () => 0,
): FrameItems<NewLog> {
  let origin = { service_name: "unknown", worker: "unknown", scope_name: null as string | null };
  let aheadMs = 0;
  return readItems(frame, LISTS, ({ resource, scope_name }) => {
    const attributes = readAttributes(resource, redactor);
    const service = attributes.get("service.name");
    const instance = attributes.get("service.instance.id");
    aheadMs = ahead(typeof instance === "string" ? instance : null);
    const name = typeof service === "string" && service !== "" ? service : "unknown";
    const service_name = cut(name, TELEMETRY_NAME_CHARS_MAX);
    const scope = scope_name === null ? null : cut(scope_name, TELEMETRY_NAME_CHARS_MAX);
    origin = { service_name, worker: service_name, scope_name: scope };
  }, (raw) => {
    const read = v.safeParse(OtlpRecord, raw);
    if (!read.success) return undefined;
    return { ...logOf(read.output, redactor, { observed_ms, aheadMs }), ...origin };
  });
}

function logOf(
  raw: v.InferOutput<typeof OtlpRecord>,
  redactor: Redactor,
  { observed_ms, aheadMs }: { readonly observed_ms: number; readonly aheadMs: number },
): Omit<NewLog, "service_name" | "worker" | "scope_name"> {
  const sent_ms = readNanos(raw.timeUnixNano) ?? readNanos(raw.observedTimeUnixNano);
  const body = readValue(raw.body, 0);
  const attributes = readAttributes(raw.attributes, redactor);
  const function_id = FUNCTION_NAMES.map((name) => attributes.get(name))
    .find((value) => typeof value === "string");
  return {
    at_ms: sent_ms === undefined ? observed_ms : sent_ms - aheadMs,
    observed_ms,
    severity: severityOf(raw.severityText, raw.severityNumber ?? 0),
    body: cut(
      typeof body === "string" ? body : textOf(redactor.value(body)),
      TELEMETRY_TEXT_CHARS_MAX,
    ),
    attributes: Object.fromEntries(
      [...attributes].filter(([name]) => !name.startsWith("engine.")),
    ),
    trace_id: idOf(raw.traceId, 32),
    span_id: idOf(raw.spanId, 16),
    replica: null,
    source: "logger",
    function_id: typeof function_id === "string" ? function_id : null,
  };
}

const WORDS = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL";
/** A severity at or near the start of a printed line. */
const SEVERITY_WORD = new RegExp(
  `^[\\s[(<]*(${WORDS})\\b|\\b(${WORDS})\\b[\\])>: ]`,
);
/** Characters of a line that are searched for it. */
const WORD_WITHIN = 60;
/** ANSI escape sequences. */
// deno-lint-ignore no-control-regex
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;

/** A record for a line of output: without escape sequences, `severity` guessed from the text. */
export function logOfPrint(line: PrintedLine, observed_ms: number): NewLog {
  const body = line.text.includes("\u001b") ? line.text.replace(SEQUENCE, "") : line.text;
  return {
    at_ms: line.at_ms,
    observed_ms,
    severity: guess(body, line.stream),
    body: cut(body, TELEMETRY_TEXT_CHARS_MAX),
    attributes: { stream: line.stream },
    trace_id: line.trace?.trace_id ?? null,
    span_id: line.trace?.span_id ?? null,
    service_name: line.worker,
    worker: line.worker,
    replica: line.replica,
    source: "output",
    function_id: null,
    scope_name: null,
  };
}

function guess(text: string, stream: "stdout" | "stderr"): Severity {
  const found = SEVERITY_WORD.exec(text.slice(0, WORD_WITHIN));
  const word = found?.[1] ?? found?.[2];
  if (word !== undefined) return severityOf(word);
  return stream === "stdout" ? "info" : "warn";
}

function idOf(text: string | null | undefined, digits: number): string | null {
  const id = text?.toLowerCase() ?? "";
  return id.length === digits && /^[0-9a-f]+$/.test(id) && !/^0+$/.test(id) ? id : null;
}

function textOf(value: Json): string {
  return value === null ? "" : JSON.stringify(value);
}
