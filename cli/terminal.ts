/**
 * What a command may touch: the terminal, time, and the engine.
 *
 * Commands get a {@linkcode Terminal} handed in, so that a test can lend one that remembers what
 * was printed and an engine that lives in the test. {@linkcode systemTerminal} is the real one.
 *
 * @module
 */
import type { Json } from "../mod.ts";
import { EXIT_INTERRUPTED, ExitWith, UsageError } from "./failure.ts";
import { printable } from "./render.ts";

/** An engine that answers calls; disposing of it ends the line. */
export interface EngineLine extends AsyncDisposable {
  /**
   * Calls a function; `undefined` when it returned nothing.
   *
   * @throws {InvocationError} When the call failed.
   */
  call(function_id: string, payload: Json, options?: CallOptions): Promise<Json | undefined>;
}

/** How a call is made. */
export interface CallOptions {
  /** Milliseconds to wait for the result. Default: 30,000. */
  readonly timeout_ms?: number | undefined;
  /** W3C trace context. Default: none, and the engine begins a trace. */
  readonly traceparent?: string;
  /** Cancels the call when aborted. */
  readonly signal?: AbortSignal;
  /** Gets what the handler tells while it runs, in order. */
  readonly onProgress?: (data: Json) => void;
}

/** A terminal that obeys control sequences: lines can be rewritten there. */
export interface Screen {
  /** Characters in a line, and lines, as they are now. */
  size(): { readonly columns: number; readonly rows: number };
  /** Writes text with its control sequences. */
  write(text: string): void;
}

/** Which engine to talk to. */
export interface EngineAddress {
  /** Such as `ws://127.0.0.1:49134`. Default: `ENGINE_URL`, else the port on this machine. */
  readonly url?: string | undefined;
  /** Default: `ENGINE_TOKEN`. */
  readonly token?: string | undefined;
  /** The line is over in a moment: it is opened faster, and nothing pings on it. */
  readonly isShort?: boolean | undefined;
}

/** The outside world, as commands see it. */
export interface Terminal {
  /** Writes lines of result to standard output. */
  out(text: string): void;
  /** Writes lines of progress or failure to standard error. */
  err(text: string): void;
  /** Writes what another program printed, byte for byte. */
  bytes(stream: "stdout" | "stderr", bytes: Uint8Array): void;
  /** Standard error, if it is a terminal on which lines can be rewritten. */
  readonly screen: Screen | undefined;
  /** Where relative paths start: absolute, without a slash at its end. */
  readonly directory: string;
  /** A variable of the environment; empty counts as not set. */
  env(name: string): string | undefined;
  /** Reads a text file; the path is relative to `directory`. */
  readFile(path: string): Promise<string>;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /**
   * Opens a line to a running engine, or says within 2 s that there is none.
   *
   * @throws {CommandError} With what to do.
   */
  connect(address: EngineAddress): Promise<EngineLine>;
  /** Milliseconds since an unspecified start. */
  now(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Resolves after `ms` milliseconds, at once when `signal` is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `listener` for every SIGINT, SIGTERM and SIGHUP; call the result to stop. */
  onInterrupt(listener: () => void): () => void;
}

/** The terminal this process was started in. */
export function systemTerminal(): Terminal {
  const directory = Deno.cwd();
  const env = (name: string) => Deno.env.get(name) || undefined;
  return {
    out: (text) => write(Deno.stdout, text),
    err: (text) => write(Deno.stderr, text),
    bytes: (stream, bytes) => writeBytes(Deno[stream], bytes),
    screen: env("TERM") !== "dumb" && Deno.stderr.isTerminal() ? systemScreen() : undefined,
    directory,
    env,
    readFile: (path) => Deno.readTextFile(path),
    readInput: () => new Response(Deno.stdin.readable).text(),
    async connect(address) {
      const { connectToEngine } = await import("./connect.ts");
      return connectToEngine({
        url: address.url ?? env("ENGINE_URL"),
        token: address.token ?? env("ENGINE_TOKEN"),
        isShort: address.isShort,
      });
    },
    now: () => performance.now(),
    wall: () => Date.now(),
    wait,
    onInterrupt,
  };
}

/** Resolves after `ms` milliseconds, at once when `signal` is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const stop = () => resolve();
  signal?.addEventListener("abort", stop);
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  });
}

/**
 * Runs a task that Ctrl-C asks to end, by the signal it gets.
 *
 * @throws {ExitWith} 130 when the task failed after that and had nothing to say of it.
 */
export async function interruptible<T>(
  terminal: Pick<Terminal, "onInterrupt">,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const stopListening = terminal.onInterrupt(() => ending.abort());
  try {
    return await task(ending.signal);
  } catch (thrown) {
    if (!ending.signal.aborted || thrown instanceof ExitWith) throw thrown;
    throw new ExitWith(EXIT_INTERRUPTED, ["interrupted"]);
  } finally {
    stopListening();
  }
}

/**
 * A whole number that was typed, within bounds.
 *
 * @throws {UsageError} Naming the option and the bounds.
 */
export function readNumber(option: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`${option}: expected ${least} to ${most}, received ${JSON.stringify(text)}`);
}

/** Where this process writes. */
type Stream = typeof Deno.stdout | typeof Deno.stderr;

function write(stream: Stream, text: string): void {
  // Text of workers must not steer a terminal; a file or a pipe gets it as it is.
  const shown = stream.isTerminal() ? printable(text) : text;
  writeBytes(stream, new TextEncoder().encode(`${shown}\n`));
}

function writeBytes(stream: Stream, bytes: Uint8Array): void {
  let rest = bytes;
  try {
    while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
  } catch (thrown) {
    // The reader has seen enough, as in `engine functions | head -1`.
    if (thrown instanceof Deno.errors.BrokenPipe) Deno.exit(0);
    throw thrown;
  }
}

function systemScreen(): Screen {
  return {
    size: () => {
      try {
        return Deno.consoleSize();
      } catch {
        return { columns: 80, rows: 24 }; // A terminal that does not tell.
      }
    },
    write: (text) => writeBytes(Deno.stderr, new TextEncoder().encode(text)),
  };
}

function onInterrupt(listener: () => void): () => void {
  const signals: Deno.Signal[] = Deno.build.os === "windows"
    ? ["SIGINT", "SIGBREAK"]
    : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) Deno.addSignalListener(signal, listener);
  return () => {
    for (const signal of signals) Deno.removeSignalListener(signal, listener);
  };
}
