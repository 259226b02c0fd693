/**
 * A stored log record (PROTOCOL 5.8) as the Logs page uses it, and which ones fit a filter.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type Attributes, attributesOf, msOf, numberOf, objectOf, textOf } from "../../kit/json.ts";

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

/** Lines that a page holds; new ones push out the oldest. */
const LOG_LINES_MAX = 20_000;

/** See the module. Ordered by number, the oldest first. */
export class LogTail {
  readonly #max: number;
  #lines: LogLine[] = [];
  #dropped = 0;

  /** `max`: lines that are held. */
  constructor(max: number = LOG_LINES_MAX) {
    this.#max = max;
  }

  /** The lines, the oldest first. A fresh array after every change, so one may compare it. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** Lines that were pushed out to make room, or never came. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds new lines; says how many of them were not known. */
  add(lines: readonly LogLine[]): number {
    const fresh = this.#unknown(lines);
    if (fresh.length === 0) return 0;
    const joined = this.#joined(fresh);
    const over = joined.length - this.#max;
    if (over > 0) this.#dropped += over;
    this.#lines = over > 0 ? joined.slice(over) : joined;
    return fresh.length;
  }

  /** Adds lines from before the oldest, as far as there is room; says whether any were added. */
  addOlder(lines: readonly LogLine[]): boolean {
    const room = this.#max - this.#lines.length;
    if (room <= 0) return false;
    const fresh = this.#unknown(lines).slice(-room);
    if (fresh.length === 0) return false;
    this.#lines = this.#joined(fresh);
    return true;
  }

  /** Whether there is room for older lines. */
  get hasRoom(): boolean {
    return this.#lines.length < this.#max;
  }

  /** Counts lines that somebody else left out. */
  miss(count: number): void {
    this.#dropped += count;
  }

  /** Forgets all lines. */
  clear(): void {
    this.#lines = [];
    this.#dropped = 0;
  }

  #unknown(lines: readonly LogLine[]): LogLine[] {
    const last = this.#lines.at(-1)?.seq ?? -Infinity;
    const sorted = [...lines].sort((a, b) => a.seq - b.seq);
    const distinct = sorted.filter((line, i) => line.seq !== sorted[i - 1]?.seq);
    // The usual case: all of them are newer than what is held.
    if ((distinct[0]?.seq ?? 0) > last) return distinct;
    return distinct.filter(({ seq }) => !this.#has(seq));
  }

  #has(seq: number): boolean {
    let low = 0;
    let high = this.#lines.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#lines[middle]!.seq;
      if (found === seq) return true;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }

  #joined(fresh: readonly LogLine[]): LogLine[] {
    const held = this.#lines;
    if (held.length === 0 || fresh[0]!.seq > held.at(-1)!.seq) return [...held, ...fresh];
    return [...held, ...fresh].sort((a, b) => a.seq - b.seq);
  }
}

/** How many lines stand behind the one with a number, or behind where it stood. */
export function newerThan(lines: readonly LogLine[], seq: number): number {
  let count = 0;
  while (count < lines.length && lines[lines.length - 1 - count]!.seq > seq) count++;
  return count;
}
