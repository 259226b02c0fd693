/**
 * What a worker says: to its console, and to the engine's logs.
 *
 * Logging never throws and never waits. A line that cannot be sent is still on the console.
 *
 * @module
 */
import { type CallRequest, type ConnectionState, TriggerAction } from "./options.ts";
import type { LogLevel } from "./otlp.ts";
import { attempt, builtinModule, environment } from "./platform.ts";
import { readTraceparent, runningTraceparent } from "./trace_context.ts";
import { OFFLINE_LOG_LINES_MAX } from "./wire/limits.ts";
import type { Json, JsonObject } from "./wire/protocol.ts";

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

/** The methods that print a line. */
const METHODS = ["log", "info", "warn", "error", "debug"] as const;

/** The part of a console that is marked. */
export type MarkedConsole = Record<typeof METHODS[number], (...values: unknown[]) => void>;

/** Set on a console that is marked, so that a second copy of the SDK leaves it alone. */
const MARKED = Symbol.for("engine-sdk.output-marks");

/** Whether what is printed now was sent to the engine's logs as well. */
let isLoggerPrinting = false;

/** Prints a line that was sent to the engine's logs as well: its mark says so. */
export function printAsLogger(print: () => void): void {
  isLoggerPrinting = true;
  try {
    print();
  } finally {
    isLoggerPrinting = false;
  }
}

/** From now on what handlers print is marked, if whoever started this program asked for it. */
export function markOutput(target: MarkedConsole = console): void {
  if (environment("ENGINE_OUTPUT_MARKS") !== "1" || MARKED in target) return;
  Object.defineProperty(target, MARKED, { value: true });
  for (const method of METHODS) {
    const original = target[method].bind(target);
    target[method] = (...values) => original(...attempt(() => marked(values)) ?? values);
  }
}

/** The mark of what is printed here and now; `undefined` when there is nothing to say. */
function currentMark(): string | undefined {
  const ids = readTraceparent(runningTraceparent());
  if (!ids && !isLoggerPrinting) return undefined;
  const trace = ids ? `${ids.trace_id}-${ids.span_id}` : "";
  return `\u001b]engine;${trace}${isLoggerPrinting ? ";logger" : ""}\u0007`;
}

/** The same values with a mark at the start of each line they become. */
function marked(values: unknown[]): unknown[] {
  const mark = currentMark();
  if (mark === undefined) return values;
  const lines = (text: string): string => text.replaceAll("\n", `\n${mark}`);
  const [first, ...rest] = values;
  if (typeof first === "string" && first.includes("%") && rest.length > 0) {
    const others = rest.map((value) => typeof value === "string" ? lines(value) : value);
    return [mark + lines(first), ...others]; // The console puts them into each other.
  }
  const texts = values.map((value) => typeof value === "string" ? value : inspect(value));
  return [mark + lines(texts.join(" "))];
}

/** A value as the console shows it. */
function inspect(value: unknown): string {
  const deno = (globalThis as { Deno?: { inspect?(value: unknown): string } }).Deno;
  if (deno?.inspect) return deno.inspect(value);
  const util = builtinModule<{ inspect(value: unknown): string }>("node:util");
  return util ? util.inspect(value) : String(value);
}
