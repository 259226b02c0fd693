/**
 * Log lines, read from the store's format (PROTOCOL 5.8), and the lines that a page holds.
 *
 * A page gets lines from three sources: stored lines, fired ones, and older ones on demand.
 * {@linkcode LogTail} joins them by their number, so the order of arrival does not matter.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { STACK_NAMES } from "../../kit/stack.tsx";
import { type Attributes, attributesOf, msOf, numberOf, objectOf, textOf } from "../../kit/json.ts";

/** The least severe first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
/** Where lines come from: an SDK's logger, a process's output, the engine, `engine::log::*`. */
export const LOG_SOURCES = ["logger", "output", "engine", "function"] as const;
/** Lines that a page holds; new ones push out the oldest. */
const LOG_LINES_MAX = 20_000;

/** One of {@linkcode LOG_LEVELS}. */
export type LogLevel = typeof LOG_LEVELS[number];

/** A log line. */
export interface LogLine {
  /** Increases with every line of an engine, until that restarts. */
  readonly seq: number;
  /** Name of the other engine that has it; `null`: the one of this page. */
  readonly engine: string | null;
  /** Which start of that engine: its numbers begin anew, and its name need not be unique. */
  readonly engineLife: string | null;
  /** What no other line has. */
  readonly key: LogKey;
  /** Milliseconds since 1970, with fractions. */
  readonly atMs: number;
  readonly level: LogLevel;
  readonly text: string;
  /** The name of the worker or program. */
  readonly worker: string;
  /** `null` if the worker is not managed. */
  readonly replica: number | null;
  readonly source: string;
  /** The function that was running; `null`: unknown. */
  readonly functionId: string | null;
  readonly traceId: string | null;
  readonly spanId: string | null;
  /** The other attributes. */
  readonly attributes: Attributes;
}

/** Names a line. */
export type LogKey = number | string;

/** A filter for log lines; empty texts filter nothing. */
export interface LogFilter {
  /** This level and above. */
  readonly level: LogLevel;
  readonly worker: string;
  readonly functionId: string;
  readonly traceId: string;
  /** In the text or in an attribute, ignoring case. */
  readonly text: string;
  readonly source: string;
}

/** The filter that all lines match. */
export const ALL_LOGS: LogFilter = {
  level: "trace",
  worker: "",
  functionId: "",
  traceId: "",
  text: "",
  source: "",
};

/** OpenTelemetry's severity numbers of the levels. */
export const SEVERITY_OF: Readonly<Record<LogLevel, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
};

/** Reads a log record; missing members become empty. */
export function readLogLine(raw: Json): LogLine {
  const record = objectOf(raw);
  const attributes = attributesOf(record.attributes);
  const own = Object.entries(attributes).filter(([name]) => !name.startsWith("engine."));
  const replica = attributes["engine.replica"];
  const [seq, engine] = [numberOf(record.seq), textOf(record.engine) || null];
  const engineLife = engine === null ? null : textOf(record.engine_life) || engine;
  return {
    seq,
    engine,
    engineLife,
    key: engineLife === null ? seq : `${engineLife}/${seq}`,
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

/** Fields that a line shows beside its text, and their characters. */
const FIELDS_MAX = 6;
const FIELDS_CHARS_MAX = 300;

/** The fields of a line, without what is shown elsewhere: stacks, and which output it came from. */
export function fieldsOf({ attributes, source }: LogLine): Attributes {
  const own = Object.entries(attributes).filter(([name]) =>
    !STACK_NAMES.some((stack) => stack === name) && !(name === "stream" && source === "output")
  );
  return Object.fromEntries(own);
}

/** The first fields as text: `customer=7 items=["tea"]`. */
export function fieldsText(line: LogLine): string {
  return Object.entries(fieldsOf(line)).slice(0, FIELDS_MAX).map(([name, value]) =>
    `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
  ).join(" ").slice(0, FIELDS_CHARS_MAX);
}

/** Whether a line matches a filter, for lines that the engine cannot filter itself. */
export function matchesFilter(line: LogLine, filter: LogFilter): boolean {
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

/** A level by its name, or by its severity number if the name is unknown; 0 is `info`. */
export function levelOf(name: string, severity = 0): LogLevel {
  const lower = name.toLowerCase();
  const known = LOG_LEVELS.find((level) => lower.startsWith(level));
  if (known !== undefined) return known;
  if (lower === "fatal" || severity >= 17) return "error";
  if (severity >= 13) return "warn";
  if (severity >= 9 || severity === 0) return "info";
  return severity >= 5 ? "debug" : "trace";
}

/** A part of a text. */
interface TextPart {
  readonly text: string;
  /** Whether it is the searched word. */
  readonly isHit: boolean;
}

/** A text split at the occurrences of a word, ignoring case. */
export function splitAtWord(text: string, word: string): readonly TextPart[] {
  const wanted = word.toLowerCase();
  const lower = text.toLowerCase();
  // Some letters change their length with their case, which would shift positions.
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

/** The text without terminal escape sequences. */
export function plainText(text: string): string {
  return text.includes("\x1b") ? text.replaceAll(TERMINAL_CODES, "") : text;
}

/** Lines of one start of an engine are in the order of their numbers, others by time. */
function compare(one: LogLine, other: LogLine): number {
  if (one.engineLife === other.engineLife) return one.seq - other.seq;
  return one.atMs - other.atMs || ((one.engineLife ?? "") < (other.engineLife ?? "") ? -1 : 1);
}

/** The lines that a page holds, in order. */
export class LogTail {
  readonly #max: number;
  #lines: LogLine[] = [];
  #dropped = 0;

  /** `max`: how many lines are held. */
  constructor(max: number = LOG_LINES_MAX) {
    this.#max = max;
  }

  /** The lines, the oldest first. A new array after every change. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** How many lines were pushed out or missed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds new lines and returns how many of them were unknown. */
  add(lines: readonly LogLine[]): number {
    const fresh = this.#unknown(lines);
    if (fresh.length === 0) return 0;
    const joined = this.#joined(fresh);
    const over = joined.length - this.#max;
    if (over > 0) this.#dropped += over;
    this.#lines = over > 0 ? joined.slice(over) : joined;
    return fresh.length;
  }

  /** Adds older lines as far as there is room, and returns whether any were added. */
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

  /** Counts lines that the engine left out. */
  miss(count: number): void {
    this.#dropped += count;
  }

  /** Drops all lines. */
  clear(): void {
    this.#lines = [];
    this.#dropped = 0;
  }

  #unknown(lines: readonly LogLine[]): LogLine[] {
    const last = this.#lines.at(-1);
    const sorted = [...lines].sort(compare);
    const distinct = sorted.filter(({ key }, i) => key !== sorted[i - 1]?.key);
    // The usual case: all of them are newer.
    if (!last || !distinct[0] || compare(distinct[0], last) > 0) return distinct;
    const held = new Set(this.#lines.map(({ key }) => key));
    return distinct.filter(({ key }) => !held.has(key));
  }

  #joined(fresh: readonly LogLine[]): LogLine[] {
    const held = this.#lines;
    if (held.length === 0 || compare(fresh[0]!, held.at(-1)!) > 0) return [...held, ...fresh];
    return [...held, ...fresh].sort(compare);
  }
}

/** How many lines come after one; all when it is not there. */
export function countNewer(lines: readonly LogLine[], key: LogKey | undefined): number {
  return lines.length - 1 - lines.findLastIndex((line) => line.key === key);
}
