/**
 * What a command may touch: the terminal, time, and the engine.
 *
 * Commands get a {@linkcode Terminal} as a parameter, so that a test can provide one that remembers
 * what was printed and connects to an engine of the test. {@linkcode systemTerminal} is the real
 * one.
 *
 * @module
 */
import type { EngineAddress, EngineConnection } from "./connect.ts";
import { EXIT_FAILED, EXIT_INTERRUPTED, ExitWith } from "./failure.ts";
import type { FoundEngine } from "./find_engine.ts";
import { printable } from "./render.ts";
import type { Screen } from "./screen.ts";

/** The outside world of a command. */
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
  /** A variable of the environment; an empty one counts as not set. */
  env(name: string): string | undefined;
  /** Reads a text file; the path is relative to `directory`. */
  readFile(path: string): Promise<string>;
  /** Writes a text file, also over one that is there; the path is relative to `directory`. */
  writeFile(path: string, text: string): Promise<void>;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /** Standard input, piece by piece. */
  readonly input: TerminalInput;
  /**
   * Finds the engine that a command is for: the named one, that of the project here, or the one on
   * the usual port.
   *
   * @throws {EngineError} `config_invalid` when the project's config.yaml cannot be read.
   */
  locate(address: EngineAddress): Promise<FoundEngine>;
  /**
   * Connects to a running engine, to the one that locate() finds.
   *
   * @throws {CommandError} With what to do.
   */
  connect(address: EngineAddress): Promise<EngineConnection>;
  /** Milliseconds since an unspecified start. */
  now(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Resolves after `ms` milliseconds, at once when `signal` is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `listener` for every SIGINT, SIGTERM and SIGHUP; the result removes the listener. */
  onInterrupt(listener: () => void): () => void;
  /**
   * Calls `listener` with every error that nothing awaited; the process ends unless it returns
   * `true`. The result removes the listener.
   */
  onFault(listener: (thrown: unknown) => boolean): () => void;
  /** Ends the process with 1 after this time, if it has not ended by itself. */
  exitWithin(ms: number): void;
}

/** Standard input of a command. */
export interface TerminalInput {
  /** Whether a person types it. */
  readonly isTerminal: boolean;
  /** The next bytes; `null` at its end. */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Whether keys arrive at once and unchanged, Ctrl-C included; for a terminal only. */
  setRaw(isRaw: boolean): void;
}

/** Bytes of standard input that are read at once. */
const INPUT_BYTES = 16 * 1024;

/** The terminal in which this process was started. */
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
    writeFile: (path, text) => Deno.writeTextFile(path, text),
    readInput: () => new Response(Deno.stdin.readable).text(),
    input: {
      isTerminal: Deno.stdin.isTerminal(),
      async read() {
        const buffer = new Uint8Array(INPUT_BYTES);
        // A terminal that is gone has ended.
        const count = await Deno.stdin.read(buffer).catch(() => null);
        return count === null ? null : buffer.subarray(0, count);
      },
      setRaw: (isRaw) => Deno.stdin.setRaw(isRaw),
    },
    locate: async (address) => {
      const { findEngine } = await import("./find_engine.ts");
      return await findEngine(address, { directory, env });
    },
    async connect(address) {
      const { connectToFound, findEngine } = await import("./find_engine.ts");
      return await connectToFound(await findEngine(address, { directory, env }), address);
    },
    now: () => performance.now(),
    wall: () => Date.now(),
    wait,
    onInterrupt,
    onFault,
    exitWithin: (ms) => Deno.unrefTimer(setTimeout(() => Deno.exit(EXIT_FAILED), ms)),
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
 * Runs a task whose signal is aborted by Ctrl-C.
 *
 * @throws {ExitWith} 130 when the task fails after Ctrl-C without an exit code of its own.
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

/** A stream to which this process writes. */
type Stream = typeof Deno.stdout | typeof Deno.stderr;

function write(stream: Stream, text: string): void {
  // Text of workers must not control a terminal; a file or a pipe gets it unchanged.
  const shown = stream.isTerminal() ? printable(text) : text;
  writeBytes(stream, new TextEncoder().encode(`${shown}\n`));
}

function writeBytes(stream: Stream, bytes: Uint8Array): void {
  let rest = bytes;
  try {
    while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
  } catch (thrown) {
    // The reader has closed the pipe, as in `engine functions | head -1`.
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
        return { columns: 80, rows: 24 }; // A terminal that does not report its size.
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

function onFault(listener: (thrown: unknown) => boolean): () => void {
  const error = (event: ErrorEvent): void => {
    if (listener(event.error)) event.preventDefault();
  };
  const rejection = (event: PromiseRejectionEvent): void => {
    if (listener(event.reason)) event.preventDefault();
  };
  globalThis.addEventListener("error", error);
  globalThis.addEventListener("unhandledrejection", rejection);
  return () => {
    globalThis.removeEventListener("error", error);
    globalThis.removeEventListener("unhandledrejection", rejection);
  };
}
