/**
 * Launcher for plain processes, without containment: a worker may do what the engine's user may.
 *
 * {@linkcode GroupedProcess} starts, guards and ends a process; this file adds pid files, with
 * which an engine ends programs of a killed predecessor, lines of output, and commands that run
 * beside a program.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  type Ended,
  type ExecOptions,
  type Launcher,
  type LaunchSpec,
  ORPHAN_GRACE_MS,
  type OutputChunk,
  type OutputLine,
  type Running,
} from "../ports/launcher.ts";
import {
  GroupedProcess,
  type ProcessSpec,
  SHELL,
  STOP_GRACE_MS,
  type TakeOutput,
} from "./process_group.ts";
import { LineSplitter, withoutMarks } from "./output.ts";
import { OutputTurns } from "./output_turns.ts";
import { endOrphans, PidFiles } from "./orphans.ts";
import { findProgram, inTerminal } from "./programs.ts";

/** Attempts to start a process, and the time between them: half a minute in all. */
const SPAWN_ATTEMPTS = 60;
const SPAWN_RETRY_MS = 500;
/** Names a command in a terminal in the environment of its processes, which leave its group. */
const EXEC_ID_VARIABLE = "ENGINE_EXEC_ID";

/** Starts programs as processes, each the leader of a group. */
export class ProcessLauncher implements Launcher {
  readonly isolation = "process";
  readonly #pidFiles: PidFiles;
  readonly #graceMs: number;
  readonly #turns: OutputTurns;

  /**
   * Keeps pid files in `run` below the data directory. A program whose engine has died has
   * `orphanGraceMs`, in whole seconds, to exit.
   */
  constructor(
    dataDirectory: string,
    turns: OutputTurns = new OutputTurns(),
    orphanGraceMs: number = ORPHAN_GRACE_MS,
  ) {
    this.#pidFiles = new PidFiles(`${dataDirectory}/run`);
    this.#turns = turns;
    this.#graceMs = orphanGraceMs;
  }

  async start(spec: LaunchSpec, output: (line: OutputLine) => void): Promise<Running> {
    await this.#pidFiles.endLeftovers(spec.name, this.#graceMs);
    const removePidFile = (pid: number): Promise<void> => this.#pidFiles.remove(spec.name, pid);
    const tools = { graceMs: this.#graceMs, turns: this.#turns, removePidFile };
    const program = await whenPossible(() => {
      return spawn(spec, () => new Program(spec, output, tools));
    });
    const launchId = spec.env.ENGINE_LAUNCH_ID ?? null;
    try {
      await program.open(() => this.#pidFiles.write(spec.name, program.pid, launchId));
    } catch (thrown) {
      throw launchFailed(spec, thrown);
    }
    return program;
  }
}

/** What a {@linkcode Program} works with. */
interface ProgramTools {
  /** How long the program may take to exit when the engine is gone. */
  readonly graceMs: number;
  readonly turns: OutputTurns;
  readonly removePidFile: (pid: number) => Promise<void>;
}

/** One program and the commands that run beside it. */
class Program implements Running {
  readonly ended: Promise<Ended>;
  readonly accelerator = null;
  readonly #spec: LaunchSpec;
  readonly #tools: ProgramTools;
  readonly #process: GroupedProcess;
  readonly #commands = new Set<GroupedProcess>();
  #isEnding = false;

  constructor(
    spec: LaunchSpec,
    output: (line: OutputLine) => void,
    tools: ProgramTools,
  ) {
    const { command, directory, env } = spec;
    const splitter = (stream: OutputLine["stream"]): LineSplitter =>
      new LineSplitter((text) => output({ stream, text }));
    const lines = { stdout: splitter("stdout"), stderr: splitter("stderr") };
    this.#spec = spec;
    this.#tools = tools;
    this.#process = new GroupedProcess(
      { argv: [SHELL, "-c", command], directory, env },
      ({ stream, bytes }) => tools.turns.pass(bytes, (piece) => lines[stream].add(piece)),
    );
    this.ended = this.#process.ended.then(async (ended) => {
      lines.stdout.end();
      lines.stderr.end();
      await this.#endCommands(STOP_GRACE_MS);
      await endOrphans(env.ENGINE_LAUNCH_ID ?? null, STOP_GRACE_MS);
      await tools.removePidFile(this.pid);
      return ended;
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Lets the program run after `beforehand`. */
  async open(beforehand: () => Promise<void>): Promise<void> {
    await this.#process.open(this.#tools.graceMs, beforehand);
  }

  async stop(graceMs: number): Promise<Ended> {
    await Promise.all([this.#process.stop(graceMs), this.#endCommands(graceMs)]);
    return await this.ended;
  }

  async exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    { input, tty }: ExecOptions = {},
  ): Promise<Ended> {
    const { name, directory } = this.#spec;
    const file = await findCommand(this.#spec, command[0] ?? "");
    const plain = { command: [file, ...command.slice(1)], env: withoutMarks(this.#spec.env) };
    const execId = tty ? crypto.randomUUID() : null;
    const { command: argv, env } = tty ? await inTerminal(plain, tty) : plain;
    if (signal.aborted) return { code: null, signal: "SIGTERM" };
    if (this.#isEnding) throw new EngineError("launch_failed", `Worker ${name} is being ended`);
    const spec: ProcessSpec = {
      argv,
      directory,
      env: execId === null ? env : { ...env, [EXEC_ID_VARIABLE]: execId },
      ...input && { input },
    };
    const { graceMs, turns } = this.#tools;
    const take: TakeOutput = ({ stream, bytes }) =>
      turns.pass(bytes, (piece) => output({ stream, bytes: piece }), bytes.length);
    const beside = spawn(this.#spec, () => new GroupedProcess(spec, take));
    this.#commands.add(beside);
    const stop = (): void => void beside.stop(STOP_GRACE_MS);
    signal.addEventListener("abort", stop, { once: true });
    try {
      await beside.open(graceMs, () => Promise.resolve());
      const ended = await beside.ended;
      if (!tty) return ended;
      await endOrphans(execId, 0, EXEC_ID_VARIABLE);
      // The program that made the terminal may exit with 0 when it is asked to end.
      return signal.aborted || this.#isEnding ? { code: null, signal: "SIGTERM" } : ended;
    } catch (thrown) {
      if (signal.aborted || this.#isEnding) return await beside.ended;
      throw launchFailed(this.#spec, thrown);
    } finally {
      signal.removeEventListener("abort", stop);
      this.#commands.delete(beside);
    }
  }

  async #endCommands(graceMs: number): Promise<void> {
    this.#isEnding = true;
    await Promise.all([...this.#commands].map((command) => command.stop(graceMs)));
  }
}

/** The file of a command: on the worker's PATH, or relative to its directory. */
async function findCommand({ name, directory, env }: LaunchSpec, command: string): Promise<string> {
  const isPath = command.includes("/");
  if (isPath) {
    const file = command.startsWith("/") ? command : `${directory}/${command}`;
    if (await Deno.stat(file).then((info) => info.isFile, () => false)) return file;
  } else if (command !== "") {
    const file = await findProgram(command, env.PATH ?? Deno.env.get("PATH") ?? "");
    if (file) return file;
  }
  const where = isPath ? "in its directory or on this machine" : "on its PATH";
  const message = `Worker ${name} finds no program ${JSON.stringify(command)} ${where}`;
  throw new EngineError("launch_failed", message, { details: { program: command } });
}

function spawn<Spawned>(spec: LaunchSpec, make: () => Spawned): Spawned {
  try {
    return make();
  } catch (thrown) {
    throw launchFailed(spec, thrown);
  }
}

/**
 * Tries again for a while when the process has no descriptor left: sockets come and go, and a
 * worker must not be given up because of them.
 */
async function whenPossible<Made>(make: () => Made): Promise<Made> {
  for (let attempt = 1;; attempt++) {
    try {
      return make();
    } catch (thrown) {
      const isFull = /too many open files/i.test(String(thrown));
      if (!isFull || attempt === SPAWN_ATTEMPTS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, SPAWN_RETRY_MS));
    }
  }
}

function launchFailed({ name, directory }: LaunchSpec, thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown;
  const what = thrown instanceof Deno.errors.NotFound
    ? `${directory} or ${SHELL} does not exist`
    : String(thrown);
  return new EngineError("launch_failed", `Worker ${name} cannot be started: ${what}`, {
    cause: thrown,
  });
}
