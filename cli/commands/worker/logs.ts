/**
 * `engine worker logs`: what a worker printed, with the time of each line.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { printable } from "../../render.ts";
import { type EngineAddress, type EngineLine, readNumber, type Terminal } from "../../terminal.ts";

/** Time between two looks with `-f`. */
const LOOK_MS = 300;
/** Most lines at once. */
const TAIL_LINES_MAX = 100_000;

const EXAMPLES = `
Examples:
  engine worker logs math-worker
  engine worker logs math-worker --tail 500
  engine worker logs math-worker -f              until Ctrl-C`;

/** Adds `engine worker logs`. */
export function addLogs(group: Command, terminal: Terminal): void {
  group.command("logs")
    .description("Print what a worker printed")
    .argument("<name>", "name of the worker")
    .option("-f, --follow", "go on with what comes, until Ctrl-C")
    .option("--tail <lines>", "how many of the last lines", "100")
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
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
      if (follow) await terminal.wait(LOOK_MS, ending.signal);
    } while (follow && !ending.signal.aborted);
  } finally {
    stopListening();
  }
}

/** Lines asked for with every later look; more than that between two looks are lost. */
const LOOK_LINES = 1_000;

/** Follows one worker's log. */
export class LogTail {
  readonly #engine: EngineLine;
  readonly #name: string;
  #seen: readonly string[] | undefined;

  /** Asks for nothing yet. */
  constructor(engine: EngineLine, name: string) {
    this.#engine = engine;
    this.#name = name;
  }

  /** The last `first` lines at the first look, later all that came since. */
  async next(first: number): Promise<string[]> {
    const tail = this.#seen === undefined ? Math.max(1, first) : LOOK_LINES;
    const payload = { name: this.#name, tail };
    const answer = await this.#engine.call("engine::supervisor::logs", payload);
    const { lines } = answer as { lines: string[] };
    const atFirst = lines.slice(lines.length - Math.min(first, lines.length));
    const fresh = this.#seen === undefined ? atFirst : newLines(this.#seen, lines);
    // A log of which nothing is left (rotated away) says nothing about what was seen.
    if (this.#seen === undefined || lines.length > 0) this.#seen = lines;
    return fresh;
  }
}

/** The lines at the end of `now` that `seen` does not end with. */
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
