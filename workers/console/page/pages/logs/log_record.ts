/**
 * A stored log record (PROTOCOL 5.8) as the Logs page uses it, and which ones fit a filter.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  type Attributes,
  attributesOf,
  msOf,
  numberOf,
  objectOf,
  textOf,
} from "../../kit/stored_json.ts";

/** The least important first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;

/** One of {@linkcode LOG_LEVELS}. */
export type LogLevel = typeof LOG_LEVELS[number];

/** Where a line comes from: an SDK's logger, a process's output, the engine, `engine::log::*`. */
export const LOG_SOURCES = ["logger", "output", "engine", "function"] as const;

/** One line. */
export interface LogLine {
  /** Grows with every line of an engine's life. */
  readonly seq: number;
  /** Milliseconds since 1970, with fractions. */
  readonly atMs: number;
  readonly level: LogLevel;
  readonly text: string;
  /** Name of the worker or program that said it. */
  readonly worker: string;
  /** `null` when it is not one of a managed worker. */
  readonly replica: number | null;
  readonly source: string;
  /** The function that was running; `null` when nobody knows. */
  readonly functionId: string | null;
  readonly traceId: string | null;
  readonly spanId: string | null;
  /** What else came with it, without what is a field here. */
  readonly attributes: Attributes;
}

/** What to show; an empty text or `null` asks for nothing. */
export interface LogFilter {
  /** This level and above. */
  readonly level: LogLevel;
  readonly worker: string;
  readonly functionId: string;
  readonly traceId: string;
  /** In the text or an attribute, whatever the case. */
  readonly text: string;
  readonly source: string;
}

/** A filter that everything fits. */
export const ALL_LOGS: LogFilter = {
  level: "trace",
  worker: "",
  functionId: "",
  traceId: "",
  text: "",
  source: "",
};

/** Severity numbers of the levels, as OpenTelemetry counts. */
export const SEVERITY_OF: Readonly<Record<LogLevel, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
};

/** Reads one record; missing members become empty. */
export function readLogLine(raw: Json): LogLine {
  const record = objectOf(raw);
  const attributes = attributesOf(record.attributes);
  const own = Object.entries(attributes).filter(([name]) => !name.startsWith("engine."));
  const replica = attributes["engine.replica"];
  return {
    seq: numberOf(record.seq),
    atMs: msOf(record.timestamp_unix_nano) || msOf(record.observed_timestamp_unix_nano),
    level: levelOf(textOf(record.severity_text), numberOf(record.severity_number)),
    text: plainText(textOf(record.body)),
    worker: textOf(attributes["engine.worker"]) || textOf(record.service_name),
    replica: replica === undefined || replica === null ? null : numberOf(replica),
    source: textOf(attributes["engine.source"]),
    functionId: textOf(attributes["engine.function_id"]) || null,
    traceId: textOf(record.trace_id) || null,
    spanId: textOf(record.span_id) || null,
    attributes: Object.fromEntries(own),
  };
}

/** Whether a line is to be shown; for what the engine cannot sort out before it sends. */
export function fitsFilter(line: LogLine, filter: LogFilter): boolean {
  if (SEVERITY_OF[line.level] < SEVERITY_OF[filter.level]) return false;
  if (filter.worker !== "" && line.worker !== filter.worker) return false;
  if (filter.functionId !== "" && line.functionId !== filter.functionId) return false;
  if (filter.traceId !== "" && line.traceId !== filter.traceId) return false;
  if (filter.source !== "" && line.source !== filter.source) return false;
  if (filter.text === "") return true;
  const text = filter.text.toLowerCase();
  return line.text.toLowerCase().includes(text) ||
    JSON.stringify(line.attributes).toLowerCase().includes(text);
}

/** A level by its name; unknown names count by their number, 0 as `info`. */
export function levelOf(name: string, severity = 0): LogLevel {
  const lower = name.toLowerCase();
  const known = LOG_LEVELS.find((level) => lower.startsWith(level));
  if (known !== undefined) return known;
  if (lower === "fatal" || severity >= 17) return "error";
  if (severity >= 13) return "warn";
  if (severity >= 9 || severity === 0) return "info";
  return severity >= 5 ? "debug" : "trace";
}

/** A stretch of a text. */
export interface TextPart {
  readonly text: string;
  /** It is what was looked for. */
  readonly isHit: boolean;
}

/** A text cut where a word stands in it, whatever the case. */
export function partsOf(text: string, word: string): readonly TextPart[] {
  const wanted = word.toLowerCase();
  const lower = text.toLowerCase();
  // Some letters change their length with their case; then places would not fit.
  if (wanted === "" || lower.length !== text.length) return [{ text, isHit: false }];
  const parts: TextPart[] = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), isHit: false });
    from = at + wanted.length;
    parts.push({ text: text.slice(at, from), isHit: true });
  }
  if (from < text.length || parts.length === 0) {
    parts.push({ text: text.slice(from), isHit: false });
  }
  return parts;
}

// deno-lint-ignore no-control-regex -- They are what is taken out.
const TERMINAL_CODES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;

/** Without what tells a terminal about colours. */
export function plainText(text: string): string {
  return text.includes("\x1b") ? text.replaceAll(TERMINAL_CODES, "") : text;
}
