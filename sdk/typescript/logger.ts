/**
 * Logs to the console and to the engine, and marks the output of handlers with their trace.
 *
 * Logging never throws and never waits. A line that cannot be sent still appears on the console.
 *
 * @module
 */
import {
  type CallRequest,
  type ConnectionState,
  TriggerAction,
  type WorkerOptions,
} from "./options.ts";
import type { LogLevel } from "./otlp.ts";
import { attempt, builtinModule, environment, platformClock } from "./platform.ts";
import { readTraceparent, runningTraceparent } from "./trace_context.ts";
import type { Json, JsonInput, JsonObject } from "./wire/protocol.ts";

/** Log lines that one logger queues while its worker is not connected; further ones are dropped. */
const OFFLINE_LINES_MAX = 1_000;

/** The parts of a worker that a {@linkcode Logger} uses. */
export interface LogTarget {
  /** Shown in each line. */
  readonly name: string;
  /** Lines are sent while `connected`, and dropped in the final states. */
  readonly connectionState: ConnectionState;
  /** Sends a line, as a call of `engine::log::<level>`. */
  trigger(request: CallRequest): Promise<unknown>;
}

/** A log line. */
export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly data: Json | undefined;
  /** The data as text; `undefined` if there is none. */
  readonly shown: string | undefined;
  /** Name of the service. Default: that of the worker. */
  readonly service: string | undefined;
}

/** Sends log lines to the engine other than by calls. */
export interface LogSink {
  /** Sends a line; `false` if it is dropped. Never throws. */
  takeLog(entry: LogEntry): boolean;
}

/** The worker of a `new Logger()`: the one that was registered last. */
let defaultWorker: LogTarget | undefined;

/** The sinks of workers whose log lines are not sent as calls. */
const sinks = new WeakMap<LogTarget, LogSink>();

/** Sends the log lines of a worker to `sink`. */
export function setLogSink(worker: LogTarget, sink: LogSink): void {
  sinks.set(worker, sink);
}

/** Makes `worker` the one of a `new Logger()`. */
export function setDefaultWorker(worker: LogTarget): void {
  defaultWorker = worker;
}

/** Characters that {@linkcode printError} removes: they move the cursor or reverse the text. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Prints an error outside of any call, on one line. Its message may come from another worker, so
 * control characters are removed.
 */
export function printError({ message }: Error): void {
  const text = message.replace(CONTROLS, (c) => c === "\n" || c === "\t" ? " " : "");
  console.error(`[engine] ${text}`);
}

/** Stack traces that a worker prints within {@linkcode FAILURES_WINDOW_MS}. */
export const FAILURES_PRINTED_MAX = 10;
/** See {@linkcode FAILURES_PRINTED_MAX}. */
export const FAILURES_WINDOW_MS = 10_000;
/** Characters of a printed stack trace; the start is kept, where a handler failed. */
const STACK_CHARS_MAX = 32 * 1024;

/**
 * Prints the stack traces of handlers that failed unexpectedly, line by line: a caller may be far
 * away, or wait for no result. A bounded number, since a handler may fail thousands of times per
 * second.
 */
export class FailurePrinter {
  readonly #now: () => number;
  #windowStart = -Infinity;
  #printed = 0;
  #left = 0;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Prints the stack trace of a handler's error. */
  print(function_id: string, stacktrace: string): void {
    const now = this.#now();
    if (now - this.#windowStart >= FAILURES_WINDOW_MS) {
      if (this.#left > 0) {
        console.error(`[engine] ${this.#left} more failed calls were not printed`);
      }
      this.#windowStart = now;
      this.#printed = this.#left = 0;
    }
    if (this.#printed >= FAILURES_PRINTED_MAX) {
      this.#left++;
      return;
    }
    this.#printed++;
    const lines = stacktrace.slice(0, STACK_CHARS_MAX).split("\n")
      .map((line) => `  ${line.replace(CONTROLS, "")}`);
    console.error([`[engine] ${function_id.replace(CONTROLS, "")} failed:`, ...lines].join("\n"));
  }
}

/** Prints what handlers fail with; a worker in the process of the engine has no log of its own. */
export function failurePrinter(
  { dial, clock = platformClock }: Pick<WorkerOptions, "dial" | "clock">,
): ((function_id: string, stacktrace: string) => void) | undefined {
  if (dial) return undefined;
  const printer = new FailurePrinter(() => clock.now());
  return (function_id, stacktrace) => printer.print(function_id, stacktrace);
}

/**
 * Writes log lines to the console and to the logs of the engine, with the trace of the handler that
 * runs. `data` is any JSON.
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
  #offlineLines = 0;

  /**
   * Needs no arguments in a program with one worker.
   *
   * @param worker Sends the lines. Default: the worker that was registered last before a line is
   * written; without one, lines only appear on the console.
   * @param service Name in the logs. Default: that of the worker.
   */
  constructor(worker?: LogTarget, service?: string) {
    this.#worker = worker;
    this.#service = service;
  }

  /** Logs details that are useful only to find a bug. */
  trace(message: string, data?: JsonInput): void {
    this.#write("trace", message, data);
  }

  /** Logs information for debugging. */
  debug(message: string, data?: JsonInput): void {
    this.#write("debug", message, data);
  }

  /** Logs a normal event. */
  info(message: string, data?: JsonInput): void {
    this.#write("info", message, data);
  }

  /** Logs an event that needs attention. */
  warn(message: string, data?: JsonInput): void {
    this.#write("warn", message, data);
  }

  /** Logs a failure. */
  error(message: string, data?: JsonInput): void {
    this.#write("error", message, data);
  }

  #write(level: LogLevel, message: string, given: JsonInput | undefined): void {
    const data = given as Json | undefined;
    const worker = this.#worker ?? defaultWorker;
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

  /** Without a connection only the first lines are queued: calls share the queue. */
  #maySend(worker: LogTarget): boolean {
    const state = worker.connectionState;
    if (state === "failed" || state === "disconnected") return false;
    if (state === "connected") this.#offlineLines = 0;
    else if (this.#offlineLines++ >= OFFLINE_LINES_MAX) return false;
    return true;
  }

  /** Sends a line; `false` if it is dropped. */
  #send(worker: LogTarget, entry: LogEntry): boolean {
    const sink = sinks.get(worker);
    if (sink) return sink.takeLog(entry);
    if (!this.#maySend(worker)) return false;
    const { level, message, data, shown, service } = entry;
    const payload: JsonObject = { message };
    // A value that JSON cannot represent is sent as the text of the console.
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
    worker.trigger(request).catch(() => {}); // The console has the line.
    return true;
  }
}

/** Looked up for each line, since user code may replace the methods of console. */
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

/** The console methods that are marked. */
const METHODS = ["log", "info", "warn", "error", "debug"] as const;

/** The methods of a console that are marked. */
export type MarkedConsole = Record<typeof METHODS[number], (...values: unknown[]) => void>;

/** Set on a marked console, so that a second copy of the SDK does not mark it again. */
const MARKED = Symbol.for("engine-sdk.output-marks");

/** Whether the line that is printed was also sent to the engine. */
let isLoggerPrinting = false;

/** Prints a line that was also sent to the engine; its mark contains `logger`. */
export function printAsLogger(print: () => void): void {
  isLoggerPrinting = true;
  try {
    print();
  } finally {
    isLoggerPrinting = false;
  }
}

/**
 * Marks the lines that handlers print with their trace, if ENGINE_OUTPUT_MARKS is `1`.
 *
 * A mark is `ESC ] engine ; <trace>-<span> [;logger] BEL` at the start of a line. The engine sets
 * the variable for the workers that it starts and removes the marks; terminals do not show them.
 */
export function markOutput(target: MarkedConsole = console): void {
  if (environment("ENGINE_OUTPUT_MARKS") !== "1" || MARKED in target) return;
  Object.defineProperty(target, MARKED, { value: true });
  for (const method of METHODS) {
    const original = target[method].bind(target);
    target[method] = (...values) => original(...attempt(() => marked(values)) ?? values);
  }
}

/** The mark of the line that is printed; `undefined` outside of handlers and loggers. */
function currentMark(): string | undefined {
  const ids = readTraceparent(runningTraceparent());
  if (!ids && !isLoggerPrinting) return undefined;
  const trace = ids ? `${ids.trace_id}-${ids.span_id}` : "";
  return `\u001b]engine;${trace}${isLoggerPrinting ? ";logger" : ""}\u0007`;
}

/** The values with a mark at the start of each line that they print. */
function marked(values: unknown[]): unknown[] {
  const mark = currentMark();
  if (mark === undefined) return values;
  const lines = (text: string): string => text.replaceAll("\n", `\n${mark}`);
  const [first, ...rest] = values;
  if (typeof first === "string" && first.includes("%") && rest.length > 0) {
    const others = rest.map((value) => typeof value === "string" ? lines(value) : value);
    return [mark + lines(first), ...others]; // The console formats them.
  }
  const texts = values.map((value) => typeof value === "string" ? value : inspect(value));
  return [mark + lines(texts.join(" "))];
}

/** A value as the console prints it. */
function inspect(value: unknown): string {
  const deno = (globalThis as { Deno?: { inspect?(value: unknown): string } }).Deno;
  if (deno?.inspect) return deno.inspect(value);
  const util = builtinModule<{ inspect(value: unknown): string }>("node:util");
  return util ? util.inspect(value) : String(value);
}
