/**
 * What a worker says: to its console, and to the engine's logs.
 *
 * Logging never throws and never waits. A line that cannot be sent is still on the console.
 *
 * @module
 */
import { runningTraceparent } from "./call_scope.ts";
import { attempt } from "./platform.ts";
import { OFFLINE_LOG_LINES_MAX } from "./wire/limits.ts";
import { type CallRequest, type ConnectionState, TriggerAction } from "./options.ts";
import type { LogLevel } from "./otlp.ts";
import { printAsLogger } from "./output_marks.ts";
import type { Json, JsonObject } from "./wire/protocol.ts";
import { readTraceparent } from "./traceparent.ts";

/** What a {@linkcode Logger} needs of a worker. */
export interface LogTarget {
  /** Shown with every line. */
  readonly name: string;
  /** Lines are sent when connected; a bounded number of them waits otherwise. */
  readonly connectionState: ConnectionState;
  /** Sends a line. */
  trigger(request: CallRequest): Promise<unknown>;
}

/** A line that somebody wrote. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly data: Json | undefined;
  /** The data as the console shows it; `undefined` when there is none. */
  readonly shown: string | undefined;
  /** Who speaks, if that is not the worker itself. */
  readonly service: string | undefined;
}

/** Takes log lines to the engine by a way of its own. */
export interface LogSink {
  /** Takes a line; `false` when it cannot. Never throws. */
  takeLog(line: LogLine): boolean;
}

/** The worker that was registered last: whom a `new Logger()` speaks for. */
let latest: LogTarget | undefined;

/** Of workers whose log lines do not travel as calls. */
const sinks = new WeakMap<LogTarget, LogSink>();

/** From now on the lines of this worker go there. */
export function sendLogsTo(worker: LogTarget, sink: LogSink): void {
  sinks.set(worker, sink);
}

/** From now on a `new Logger()` speaks for this worker. */
export function logFor(worker: LogTarget): void {
  latest = worker;
}

/** As {@linkcode printFailure} leaves them out: what moves a cursor or turns text round. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Says on the console what went wrong outside of any call, on one line. Its words may be those of
 * another worker, so they lose their control characters.
 */
export function printFailure({ message }: Error): void {
  const text = message.replace(CONTROLS, (c) => c === "\n" || c === "\t" ? " " : "");
  console.error(`[engine] ${text}`);
}

/**
 * Writes to the console and to the engine's logs.
 *
 * @example
 * ```ts
 * import { Logger } from "engine-sdk";
 *
 * const logger = new Logger();
 * logger.info("order accepted", { order: 7 });
 * ```
 */
export class Logger {
  readonly #worker: LogTarget | undefined;
  readonly #service: string | undefined;
  #waitingLines = 0;

  /**
   * Speaks for `worker`, else for the one registered last when a line is written. `service` is
   * the name in the engine's logs; the worker's if left out.
   */
  constructor(worker?: LogTarget, service?: string) {
    this.#worker = worker;
    this.#service = service;
  }

  /** Says what only somebody who looks for a bug wants to read. */
  trace(message: string, data?: Json): void {
    this.#write("trace", message, data);
  }

  /** Says what helps to follow what happens. */
  debug(message: string, data?: Json): void {
    this.#write("debug", message, data);
  }

  /** Says what happened. */
  info(message: string, data?: Json): void {
    this.#write("info", message, data);
  }

  /** Says what somebody should look at. */
  warn(message: string, data?: Json): void {
    this.#write("warn", message, data);
  }

  /** Says what failed. */
  error(message: string, data?: Json): void {
    this.#write("error", message, data);
  }

  #write(level: LogLevel, message: string, data: Json | undefined): void {
    const worker = this.#worker ?? latest;
    const service = this.#service ?? worker?.name;
    const shown = data === undefined ? undefined : showData(data);
    const text = attempt(() => String(message)) ?? "";
    const isSent = worker !== undefined &&
      this.#send(worker, { level, message: text, data, shown, service });
    const name = service === undefined ? "" : ` [${service}]`;
    const line = `${level.toUpperCase().padEnd(5)}${name} ${text}`;
    const print = (): void => printer(level)(shown === undefined ? line : `${line} ${shown}`);
    attempt(() => isSent ? printAsLogger(print) : print());
  }

  /** While there is no line only the first lines wait for one: calls need the room more. */
  #maySend(worker: LogTarget): boolean {
    const state = worker.connectionState;
    if (state === "failed" || state === "disconnected") return false;
    if (state === "connected") this.#waitingLines = 0;
    else if (this.#waitingLines++ >= OFFLINE_LOG_LINES_MAX) return false;
    return true;
  }

  /** Whether the line is on its way to the engine. */
  #send(worker: LogTarget, line: LogLine): boolean {
    const sink = sinks.get(worker);
    if (sink) return sink.takeLog(line);
    if (!this.#maySend(worker)) return false;
    const { level, message, data, shown, service } = line;
    const payload: JsonObject = { message };
    // What JSON cannot hold is sent the way the console shows it.
    if (data !== undefined) payload.data = isJson(data) ? data : shown ?? null;
    if (service !== undefined) payload.service_name = service;
    const ids = readTraceparent(runningTraceparent());
    if (ids) {
      payload.trace_id = ids.trace_id;
      payload.span_id = ids.span_id;
    }
    const request = {
      function_id: `engine::log::${level}`,
      payload,
      action: TriggerAction.Void(),
    };
    worker.trigger(request).catch(() => {}); // The line is on the console already.
    return true;
  }
}

/** Looked up for each line, so that whoever replaces a method of console is heard. */
function printer(level: LogLevel): (line: string) => void {
  switch (level) {
    case "error":
      return (line) => console.error(line);
    case "warn":
      return (line) => console.warn(line);
    case "info":
      return (line) => console.info(line);
    default:
      return (line) => console.debug(line);
  }
}

function isJson(data: Json): boolean {
  return attempt(() => JSON.stringify(data)) !== undefined;
}

function showData(data: Json): string {
  return attempt(() => JSON.stringify(data)) ?? attempt(() => String(data)) ?? "?";
}
