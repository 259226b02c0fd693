/**
 * `engine worker exec`: run a command beside a worker.
 *
 * Input and output are passed on byte for byte as they come, and its exit code is that of the
 * command. A line `error: …` on standard error means that the engine could not run it.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../../mod.ts";
import { readNumber, REPLICAS_MAX, TOKEN_HELP, URL_HELP } from "../../arguments.ts";
import type { EngineAddress, EngineConnection } from "../../connect.ts";
import { EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, ExitWith, UsageError } from "../../failure.ts";
import { printable } from "../../render.ts";
import { interruptible, type Terminal } from "../../terminal.ts";

/** The engine ends a command after 10 minutes, and needs a moment to answer. */
const EXEC_MS_MAX = 660_000;
/** The engine ends a command in a terminal that is silent for an hour; at most it runs a week. */
const TTY_MS_MAX = 604_800_000;

const EXAMPLES = `
Examples:
  engine worker exec math-worker -- python3 -c 'import numpy; print(numpy.__version__)'
  engine worker exec math-worker --replica 2 -- ps aux
  engine worker exec math-worker -- sh -c 'ls | head'
  engine worker exec math-worker -- sh -c 'cat >data.csv' <data.csv
  engine worker exec math-worker --tty -- bash

The command gets the worker's directory, environment and isolation, and reads standard input.
In a loop that reads standard input itself, add </dev/null. With --tty, Ctrl-C goes to the command.

Exit code: that of the command, 128 and the number of a signal that ended it, 130 after Ctrl-C.
1 with a line "error: …" says that the engine could not run it, 2 that the usage was invalid.`;

/** The end of a command, as the engine reports it. */
interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly reason?: string;
}

/** Numbers of the signals that end a process, equal on Linux and macOS. */
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
    .argument("<command...>", "the command and its arguments, after --")
    .option("--tty", "run it in a terminal, for shells and editors")
    .option("--replica <number>", "beside which replica (default: the first that runs)")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, command, flags) => {
      if (command[0] === "") {
        throw new UsageError("Missing command. Example: engine worker exec math-worker -- ls");
      }
      const replica = flags.replica === undefined
        ? {}
        : { replica: readNumber("--replica", flags.replica, 1, REPLICAS_MAX) };
      const tty = flags.tty ? terminalShape(terminal) : {};
      const ended = await run({ name, command, ...replica, ...tty }, flags, terminal);
      if (ended.reason) terminal.err(printable(`${name}: ${ended.reason}`));
      const exitCode = exitCodeOf(ended);
      if (exitCode !== EXIT_DONE) throw new ExitWith(exitCode);
    });
}

/** What the command sees of this terminal. */
function terminalShape(terminal: Terminal): { tty: JsonObject } {
  if (!terminal.input.isTerminal) {
    throw new UsageError(
      "--tty needs a terminal as standard input; leave it out to pass on a file",
    );
  }
  const { columns, rows } = terminal.screen?.size() ?? { columns: 80, rows: 24 };
  const bounded = (cells: number): number => Math.min(Math.max(cells, 1), 1_000);
  const term = terminal.env("TERM") ?? "";
  return {
    tty: {
      columns: bounded(columns),
      rows: bounded(rows),
      term: /^[\w.+-]{1,64}$/.test(term) ? term : "xterm",
    },
  };
}

async function run(
  request: { name: string; command: string[]; replica?: number; tty?: JsonObject },
  address: EngineAddress,
  terminal: Terminal,
): Promise<Ended> {
  return await interruptible(terminal, async (signal) => {
    await using engine = await terminal.connect(address);
    const onProgress = (data: Json): void => {
      const piece = data as { stream: "stdout" | "stderr"; data: string };
      if (!signal.aborted) terminal.bytes(piece.stream, Uint8Array.fromBase64(piece.data));
    };
    const timeout_ms = request.tty ? TTY_MS_MAX : EXEC_MS_MAX;
    const input = crypto.randomUUID();
    try {
      if (request.tty) terminal.input.setRaw(true);
      const options = { timeout_ms, signal, onProgress };
      const ended = engine.call("engine::supervisor::exec", { ...request, input }, options);
      void feed(engine, terminal, input);
      return await ended as unknown as Ended;
    } catch (thrown) {
      // Cancelling the call ends the command; the terminal has shown ^C.
      throw signal.aborted ? new ExitWith(EXIT_INTERRUPTED) : thrown;
    } finally {
      if (request.tty) terminal.input.setRaw(false);
    }
  });
}

/** Passes on standard input until its end or that of the command. */
async function feed(engine: EngineConnection, terminal: Terminal, input: string): Promise<void> {
  try {
    for (;;) {
      const bytes = await terminal.input.read();
      const piece = bytes === null ? { input, end: true } : { input, data: bytes.toBase64() };
      const call = engine.call("engine::supervisor::exec_input", piece, { timeout_ms: TTY_MS_MAX });
      const { is_open } = await call as { is_open: boolean };
      if (!is_open) return;
    }
  } catch {
    // The connection ends, which the call of the command reports.
  }
}

function exitCodeOf({ code, signal }: Ended): number {
  if (code !== null) return code;
  return signal === null ? EXIT_FAILED : 128 + (SIGNALS[signal] ?? 0);
}
