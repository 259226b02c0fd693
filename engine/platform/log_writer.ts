/**
 * The engine's log on standard error: lines for people, JSON for machines.
 *
 * Control characters are removed from every text and value, so that no worker can move the cursor
 * of a terminal or forge a line.
 *
 * @module
 */
import {
  type EngineLogLine,
  type Log,
  LOG_VALUE_CHARS_MAX,
  type LogFields,
  type LogLevel,
} from "../ports/log.ts";
import type { EngineEvent } from "../ports/events.ts";

/** The form of lines: for people, or one JSON object each. */
export type LogFormat = "text" | "json";

/** What {@linkcode createLog} works with. */
export interface LogOptions {
  /** The lowest level that is written; called for each line, so that it may change. */
  level(): LogLevel;
  readonly format: LogFormat;
  /** Writes a line, which comes without its line feed. Default: standard error. */
  write?(line: string): void;
  /** Milliseconds since 1970. Default: the machine's time. */
  wall?(): number;
  /** Called with every line, also those below the level. */
  observe?(line: EngineLogLine): void;
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** C0, DEL and C1, marks that change the direction of text, and the two Unicode line ends. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const PLAIN_VALUE = /^[^\s"=]+$/;

/**
 * Makes a log. It never throws: a line that cannot be written is lost.
 *
 * Text: `2026-01-31T12:00:00.000Z info  Worker joined worker=shop functions=4`. JSON: `time`,
 * `level`, `text` and the fields; a field of one of these names gets an underscore behind it.
 */
export function createLog(options: LogOptions): Log {
  const write = options.write ?? writeToStandardError;
  const wall = options.wall ?? Date.now;
  const form = options.format === "json" ? jsonLine : textLine;
  const log = (level: LogLevel, text: string, fields: LogFields = {}): void => {
    try {
      options.observe?.({ level, text, fields, at_ms: wall() });
      if (RANK[level] < RANK[options.level()]) return;
      write(form(new Date(wall()).toISOString(), level, text, fields));
    } catch {
      // The log itself failed, so there is no place to report it.
    }
  };
  return {
    debug: (text, fields) => log("debug", text, fields),
    info: (text, fields) => log("info", text, fields),
    warn: (text, fields) => log("warn", text, fields),
    error: (text, fields) => log("error", text, fields),
  };
}

/** Writes what the core reports, each kind of event at its level. */
export function logEvent(log: Log, event: EngineEvent): void {
  switch (event.type) {
    case "worker_connected":
      return log.debug("connection opened", { id: event.worker_id, address: event.address });
    case "worker_announced":
      return log[levelFor(event.name)]("worker joined", {
        worker: event.name,
        id: event.worker_id,
        pid: event.pid,
      });
    case "worker_suspected":
      return log[event.is_suspect ? "warn" : "info"](
        event.is_suspect ? "worker does not answer" : "worker answers again",
        { worker: event.name ?? undefined, id: event.worker_id },
      );
    case "worker_disconnected":
      if (event.name === null) {
        return log.debug("connection closed", { id: event.worker_id, reason: event.reason });
      }
      return log[levelFor(event.name)]("worker left", {
        worker: event.name,
        id: event.worker_id,
        reason: event.reason,
      });
    case "functions_changed":
    case "triggers_changed":
    case "supervised_changed":
      return; // Too many: each watch of a console makes some, and the supervisor logs its own.
    case "config_changed":
      return log.debug("configuration in force");
    case "trigger_parked":
      return log.info("trigger waits for its type", {
        id: event.worker_id,
        trigger: event.trigger_id,
        trigger_type: event.trigger_type,
        function_id: event.function_id,
        why: event.why,
      });
    case "warning":
      return log.warn(event.text, {
        id: event.worker_id ?? undefined,
        detail: event.detail,
      });
  }
}

/** Each command of the CLI is a worker for a moment. */
function levelFor(name: string): "debug" | "info" {
  return name === "engine-cli" ? "debug" : "info";
}

function textLine(time: string, level: LogLevel, text: string, fields: LogFields): string {
  let line = `${time} ${level.padEnd(5)} ${clean(text)}`;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) line += ` ${clean(name)}=${textValue(value)}`;
  }
  return line;
}

function textValue(value: string | number | boolean | null): string {
  if (typeof value !== "string") return String(value);
  const text = clean(value);
  return PLAIN_VALUE.test(text) ? text : JSON.stringify(text);
}

function jsonLine(time: string, level: LogLevel, text: string, fields: LogFields): string {
  const line: Record<string, unknown> = { time, level, text: clean(text) };
  for (const [name, value] of Object.entries(fields)) {
    const free = name === "time" || name === "level" || name === "text" ? `${name}_` : name;
    line[clean(free)] = typeof value === "string" ? clean(value) : value;
  }
  return JSON.stringify(line);
}

/** One line without control characters, cut to a readable length. */
function clean(text: string): string {
  const whole = text.length <= LOG_VALUE_CHARS_MAX;
  const kept = whole ? text : text.slice(0, LOG_VALUE_CHARS_MAX) + "…";
  return kept.replaceAll(CONTROLS, (c) => c === "\n" || c === "\t" ? " " : "");
}

const encoder = new TextEncoder();

function writeToStandardError(line: string): void {
  const bytes = encoder.encode(line + "\n");
  for (let at = 0; at < bytes.length;) at += Deno.stderr.writeSync(bytes.subarray(at));
}
