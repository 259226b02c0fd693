/**
 * `engine worker logs`: what a worker printed, with the time of each line.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { LogTail } from "../../log_tail.ts";
import { printable } from "../../render.ts";
import { type EngineAddress, readNumber, type Terminal } from "../../terminal.ts";

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
