/**
 * `engine worker exec`: run a command beside a worker, as if it ran here.
 *
 * What it prints goes through byte for byte as it comes, and the exit code is the command's own. A
 * line `error: …` on standard error tells that the engine could not run it.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json } from "../../../mod.ts";
import { EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, ExitWith, UsageError } from "../../failure.ts";
import { printable } from "../../render.ts";
import { type EngineAddress, interruptible, readNumber, type Terminal } from "../../terminal.ts";
import { REPLICAS_MAX } from "./add.ts";

/** The engine ends a command after 10 minutes; its answer needs a moment more. */
const EXEC_MS_MAX = 660_000;

const EXAMPLES = `
Examples:
  engine worker exec math-worker -- python3 -c 'import numpy; print(numpy.__version__)'
  engine worker exec math-worker --replica 2 -- ps aux
  engine worker exec math-worker -- sh -c 'ls | head'

The command gets the worker's directory, environment and isolation, and nothing to read.

Exit code: that of the command, 128 and the number of a signal that ended it, 130 after Ctrl-C.
1 with a line "error: …" says that the engine could not run it, 2 that this was not understood.`;

/** How a command ended, as the engine tells it. */
interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly reason?: string;
}

/** Numbers of signals, the same on Linux and macOS but for a few that end nothing. */
const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

/** Adds `engine worker exec`. */
export function addExec(group: Command, terminal: Terminal): void {
  group.command("exec")
    .description("Run a command beside a worker")
    .usage("[options] <name> -- <command> [args...]")
    .argument("<name>", "name of the worker")
    .argument("<command...>", "the command and its arguments, behind --")
    .option("--replica <number>", "beside which copy (default: the first that runs)")
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
    .addHelpText("after", EXAMPLES)
    .action(async (name, command, flags) => {
      if (command[0] === "") throw new UsageError("Which command? It comes behind --");
      const replica = flags.replica === undefined
        ? {}
        : { replica: readNumber("--replica", flags.replica, 1, REPLICAS_MAX) };
      const ended = await run({ name, command, ...replica }, flags, terminal);
      if (ended.reason) terminal.err(printable(`${name}: ${ended.reason}`));
      const exitCode = exitCodeOf(ended);
      if (exitCode !== EXIT_DONE) throw new ExitWith(exitCode);
    });
}

async function run(
  request: { name: string; command: string[]; replica?: number },
  address: EngineAddress,
  terminal: Terminal,
): Promise<Ended> {
  return await interruptible(terminal, async (signal) => {
    await using engine = await terminal.connect(address);
    const onProgress = (data: Json): void => {
      const piece = data as { stream: "stdout" | "stderr"; data: string };
      if (!signal.aborted) terminal.bytes(piece.stream, Uint8Array.fromBase64(piece.data));
    };
    const options = { timeout_ms: EXEC_MS_MAX, signal, onProgress };
    try {
      return await engine.call("engine::supervisor::exec", request, options) as unknown as Ended;
    } catch (thrown) {
      // The call is cancelled, which ends the command; the terminal has shown ^C.
      throw signal.aborted ? new ExitWith(EXIT_INTERRUPTED) : thrown;
    }
  });
}

function exitCodeOf({ code, signal }: Ended): number {
  if (code !== null) return code;
  return signal === null ? EXIT_FAILED : 128 + (SIGNALS[signal] ?? 0);
}
