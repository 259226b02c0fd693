/**
 * `engine worker logs`: print the output of a worker, with the time of each line.
 *
 * The engine returns the last lines only, so new lines are found by their overlap with those seen
 * before. Every line has its time, so two equal lines are the same line.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { readNumber, TOKEN_HELP, URL_HELP } from "../../arguments.ts";
import type { EngineAddress, EngineConnection } from "../../connect.ts";
import { printable } from "../../render.ts";
import { interruptible, type Terminal } from "../../terminal.ts";
import { CommandError } from "../../failure.ts";
import { engineLogPath } from "../engine/daemon.ts";

/** Time between two reads with `-f`. */
const READ_MS = 300;
/** Time between two reads of the engine's own log. */
const FILE_READ_MS = 1_000;
/** Most lines at once. */
const TAIL_LINES_MAX = 100_000;

const EXAMPLES = `
Examples:
  engine worker logs math-worker
  engine worker logs math-worker --tail 500
  engine worker logs math-worker -f              until Ctrl-C`;

const ENGINE_EXAMPLES = `
Examples:
  engine logs math-worker -f           what a worker printed
  engine logs --tail 20                the log of the engine that engine start --daemon started`;

/** Adds `engine logs`. */
export function addEngineLogs(program: Command, terminal: Terminal): void {
  program.command("logs")
    .description("Print the log of a worker, or of an engine started with --daemon")
    .argument("[name]", "name of the worker (default: the engine)")
    .option("-f, --follow", "print new lines as they arrive, until Ctrl-C")
    .option("--tail <lines>", "number of lines from the end", "100")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", ENGINE_EXAMPLES)
    .action(async (name, flags) => {
      const tail = readNumber("--tail", flags.tail, 0, TAIL_LINES_MAX);
      const follow = flags.follow ?? false;
      if (name !== undefined) return await print(name, tail, follow, flags, terminal);
      await interruptible(terminal, (signal) => printFile(tail, follow, signal, terminal));
    });
}

/** Prints the log file of the engine of the project here. */
async function printFile(
  tail: number,
  follow: boolean,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<void> {
  const path = engineLogPath(terminal.directory);
  const read = (): Promise<string> =>
    terminal.readFile(path).catch(() => {
      throw new CommandError(
        `${path} not found: an engine that was not started with engine start --daemon prints ` +
          "its log where it was started",
      );
    });
  let log = await read();
  const lines = log.trimEnd().split("\n");
  if (tail > 0 && log !== "") {
    for (const line of lines.slice(-tail)) {
      terminal.out(printable(line));
    }
  }
  while (follow && !signal.aborted) {
    await terminal.wait(FILE_READ_MS, signal);
    const now = await read();
    const end = now.lastIndexOf("\n") + 1;
    const fresh = now.slice(now.startsWith(log) ? log.length : 0, end);
    if (fresh !== "") terminal.out(printable(fresh.trimEnd()));
    log = now.slice(0, end);
  }
}

/** Adds `engine worker logs`. */
export function addLogs(group: Command, terminal: Terminal): void {
  group.command("logs")
    .description("Print the output of a worker")
    .argument("<name>", "name of the worker")
    .option("-f, --follow", "print new lines as they arrive, until Ctrl-C")
    .option("--tail <lines>", "number of lines from the end", "100")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, flags) => {
      const tail = readNumber("--tail", flags.tail, 0, TAIL_LINES_MAX);
      await print(name, tail, flags.follow ?? false, flags, terminal);
    });
}

async function print(
  name: string,
  tail: number,
  follow: boolean,
  address: EngineAddress,
  terminal: Terminal,
): Promise<void> {
  const ending = new AbortController();
  const stopListening = follow ? terminal.onInterrupt(() => ending.abort()) : () => {};
  try {
    await using engine = await terminal.connect(address);
    const log = new LogTail(engine, name);
    do {
      for (const line of await log.next(tail)) terminal.out(printable(line));
      if (follow) await terminal.wait(READ_MS, ending.signal);
    } while (follow && !ending.signal.aborted);
  } finally {
    stopListening();
  }
}

/** Lines per later read; further lines between two reads are lost. */
const READ_LINES = 1_000;

/** The new lines of one worker's log. */
export class LogTail {
  readonly #engine: EngineConnection;
  readonly #name: string;
  #seen: readonly string[] | undefined;

  constructor(engine: EngineConnection, name: string) {
    this.#engine = engine;
    this.#name = name;
  }

  /** The last `first` lines at the first call; later all lines since the call before. */
  async next(first: number): Promise<string[]> {
    const tail = this.#seen === undefined ? Math.max(1, first) : READ_LINES;
    const payload = { name: this.#name, tail };
    const answer = await this.#engine.call("engine::supervisor::logs", payload);
    const { lines } = answer as { lines: string[] };
    const atFirst = lines.slice(lines.length - Math.min(first, lines.length));
    const fresh = this.#seen === undefined ? atFirst : newLines(this.#seen, lines);
    // A log that was rotated away is empty; the lines that were seen stay known.
    if (this.#seen === undefined || lines.length > 0) this.#seen = lines;
    return fresh;
  }
}

/** The lines of `now` behind its overlap with the end of `seen`. */
export function newLines(seen: readonly string[], now: readonly string[]): string[] {
  const last = seen.at(-1);
  if (last === undefined) return [...now];
  for (let end = now.length; end > 0; end--) {
    if (now[end - 1] !== last) continue;
    const overlap = Math.min(end, seen.length);
    const isSame = Array.from({ length: overlap })
      .every((_, i) => now[end - 1 - i] === seen[seen.length - 1 - i]);
    if (isSame) return now.slice(end);
  }
  return [...now];
}
