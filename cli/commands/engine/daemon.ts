/**
 * `engine start`, `stop` and `status`: an engine in the background, for a machine of one's own.
 *
 * `start --daemon` runs `engine` as a process that outlives the terminal, with its output in
 * `.engine/engine.log`, and returns when it listens. `stop` ends the engine of the project here,
 * however it was started. A server has a supervisor of its own for this (`engine deploy init`).
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import {
  type EngineInfo,
  isProcessDead,
  type RunningEngine,
  type WorkerStatus,
} from "../../../engine/mod.ts";
import type { Json } from "../../../mod.ts";
import { absolutePath, readTimeout, TOKEN_HELP, URL_HELP } from "../../arguments.ts";
import type { EngineAddress } from "../../connect.ts";
import { CommandError, EXIT_NOT_READY, ExitWith } from "../../failure.ts";
import { compactJson, count, renderDuration } from "../../render.ts";
import type { Terminal } from "../../terminal.ts";
import {
  describeEngine,
  readOptions,
  runEngine,
  type StartFlags,
  startOptions,
  startReal,
} from "./start.ts";

/** Time between two looks at an engine that starts or stops. */
const LOOK_MS = 50;
/** Size from which the log of earlier starts is put aside. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;
/** Last lines of the log that are shown when a start fails. */
const LOG_LINES_SHOWN = 15;

const START_EXAMPLES = `
Examples:
  engine start                          the same as engine: until Ctrl-C
  engine start --daemon                 in the background; its log: .engine/engine.log
  engine start --daemon --config /srv/shop/config.yaml

On a server, let its supervisor start the engine.`;

const STOP_EXAMPLES = `
Examples:
  engine stop                           the engine of the project here; running calls may finish
  engine stop --timeout 5s`;

const STATUS_EXAMPLES = `
Examples:
  engine status
  engine status --json

Exit codes: 0 it runs, 1 it does not.`;

/** Processes of engines; tests provide their own. */
export interface DaemonMachine {
  /** Starts `engine` with arguments, its output at the end of a file; returns its process id. */
  spawn(args: readonly string[], directory: string, logPath: string): Promise<number>;
  isAlive(pid: number): boolean;
  /** Asks a process to end. */
  end(pid: number): void;
  /** The engines of this user on this machine. */
  running(): Promise<readonly RunningEngine[]>;
}

/** Adds `engine start`. */
export function addStartCommand(
  program: Command,
  terminal: Terminal,
  machine: DaemonMachine = thisMachine,
): void {
  startOptions(program.command("start"))
    .description("Start the engine, in the background with --daemon")
    .option("--daemon", "return when it listens; it runs until engine stop")
    .option("--timeout <time>", "with --daemon: how long to wait until it listens", "60s")
    .addHelpText("after", START_EXAMPLES)
    .action(async (flags) => {
      const options = readOptions(flags, terminal.directory);
      if (!flags.daemon) return await runEngine(options, terminal, startReal);
      await startDaemon(flags, terminal, machine, readTimeout(flags.timeout));
    });
}

async function startDaemon(
  flags: StartFlags,
  terminal: Terminal,
  machine: DaemonMachine,
  timeoutMs: number,
): Promise<void> {
  const directory = directoryOf(flags, terminal);
  const before = await engineOf(directory, machine);
  if (before) {
    throw new CommandError(
      `The engine of ${directory} runs already (${before.local}, pid ${before.pid}); ` +
        "to stop it: engine stop",
    );
  }
  const logPath = engineLogPath(directory);
  const logged = (await terminal.readFile(logPath).catch(() => "")).length;
  const pid = await machine.spawn(argumentsOf(flags), terminal.directory, logPath);
  const deadline = terminal.now() + timeoutMs;
  while (terminal.now() < deadline) {
    const engine = (await machine.running()).find((each) => each.pid === pid);
    if (engine) return await printStarted(engine, terminal, logPath);
    if (!machine.isAlive(pid)) throw await startFailed(terminal, logPath, logged);
    await terminal.wait(LOOK_MS);
  }
  throw new ExitWith(EXIT_NOT_READY, [
    `error: The engine (pid ${pid}) does not listen yet after ${renderDuration(timeoutMs)}; ` +
    `its log: ${logPath}`,
  ]);
}

/** Where an engine in the background writes its log. */
export function engineLogPath(directory: string): string {
  return `${directory}/.engine/engine.log`;
}

/** The folder whose engine is started. */
function directoryOf({ config }: StartFlags, terminal: Terminal): string {
  if (config === undefined) return terminal.directory;
  return absolutePath(terminal.directory, config).replace(/\/[^/]*$/, "") || "/";
}

/** The options that are passed on. */
function argumentsOf({ config, port, logLevel, acceptEmptyState }: StartFlags): string[] {
  return [
    ...config === undefined ? [] : ["--config", config],
    ...port === undefined ? [] : ["--port", port],
    ...logLevel === undefined ? [] : ["--log-level", logLevel],
    ...acceptEmptyState ? ["--accept-empty-state"] : [],
  ];
}

async function printStarted(
  engine: RunningEngine,
  terminal: Terminal,
  logPath: string,
): Promise<void> {
  await using connection = await terminal.connect({ url: engine.local });
  const info = await connection.call("engine::supervisor::info", {}) as unknown as EngineInfo;
  for (const line of describeEngine(info)) terminal.out(line);
  terminal.err(`Its log: ${logPath}; to stop it: engine stop`);
}

async function startFailed(
  terminal: Terminal,
  logPath: string,
  logged: number,
): Promise<CommandError> {
  const log = await terminal.readFile(logPath).catch(() => "");
  // A large log was put aside, so this one may be shorter than it was.
  const last = log.slice(logged < log.length ? logged : 0).trimEnd().split("\n").slice(
    -LOG_LINES_SHOWN,
  ).map((line) => `  ${line}`);
  return new CommandError(["The engine did not start; its log ends with:", ...last].join("\n"));
}

/** Adds `engine stop`. */
export function addStop(
  program: Command,
  terminal: Terminal,
  machine: DaemonMachine = thisMachine,
): void {
  program.command("stop")
    .description("Stop the engine of the project here")
    .option("--timeout <time>", "how long running calls may take to finish", "30s")
    .option("--url <url>", "address of another engine on this machine")
    .addHelpText("after", STOP_EXAMPLES)
    .action(async ({ timeout, url }) => {
      const timeoutMs = readTimeout(timeout);
      const engine = await runningAt({ url }, terminal, machine);
      machine.end(engine.pid);
      if (!await hasEnded(engine.pid, timeoutMs, terminal, machine)) {
        terminal.err(`It still runs after ${renderDuration(timeoutMs)}; its calls end now`);
        machine.end(engine.pid); // The second signal ends the drain.
        if (!await hasEnded(engine.pid, timeoutMs, terminal, machine)) {
          throw new ExitWith(EXIT_NOT_READY, [`error: Process ${engine.pid} has not ended`]);
        }
      }
      terminal.out(`${engine.local} stopped`);
    });
}

async function hasEnded(
  pid: number,
  timeoutMs: number,
  terminal: Terminal,
  machine: DaemonMachine,
): Promise<boolean> {
  const deadline = terminal.now() + timeoutMs;
  while (machine.isAlive(pid)) {
    if (terminal.now() >= deadline) return false;
    await terminal.wait(LOOK_MS);
  }
  return true;
}

/** Adds `engine status`. */
export function addStatus(
  program: Command,
  terminal: Terminal,
  machine: DaemonMachine = thisMachine,
): void {
  program.command("status")
    .description("Show whether the engine runs, its addresses and the status of its workers")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", STATUS_EXAMPLES)
    .action(async ({ json, ...address }) => {
      if (address.url === undefined) await refuseStopped(terminal, machine);
      await using engine = await terminal.connect(address);
      const info = await engine.call("engine::supervisor::info", {}) as unknown as EngineInfo;
      const answer = await engine.call("engine::supervisor::list", {});
      const { workers } = answer as unknown as { workers: readonly WorkerStatus[] };
      if (json) return terminal.out(compactJson({ ...info, workers } as unknown as Json));
      for (const line of describeEngine(info)) terminal.out(line);
      terminal.out(`up       ${renderDuration(terminal.wall() - info.started_at_ms)}`);
      terminal.out(`workers  ${countStates(workers)}`);
    });
}

/** Fails with what to do if the project here has an engine that does not run. */
async function refuseStopped(terminal: Terminal, machine: DaemonMachine): Promise<void> {
  const { project } = await terminal.locate({});
  if (!project || await engineOf(project.directory, machine)) return;
  throw new CommandError(
    `The engine of ${project.directory} is not running; to start it: engine start --daemon`,
  );
}

function countStates(workers: readonly WorkerStatus[]): string {
  const states = new Map<string, number>();
  for (const { state } of workers) states.set(state, (states.get(state) ?? 0) + 1);
  const parts = [...states].map(([state, number]) => `${number} ${state}`);
  return parts.length === 0 ? "none" : `${count(workers.length, "worker")}: ${parts.join(", ")}`;
}

/** @throws {CommandError} No engine of this user runs there. */
async function runningAt(
  address: EngineAddress,
  terminal: Terminal,
  machine: DaemonMachine,
): Promise<RunningEngine> {
  const found = await terminal.locate(address);
  const engine = (await machine.running())
    .find(({ url, local }) => url === found.url || local === found.url);
  if (engine && !(found.project && engine.project !== found.project.directory)) return engine;
  throw new CommandError(`No engine of this user runs at ${found.url} on this machine`);
}

/** The engine that runs for a folder. */
async function engineOf(
  directory: string,
  machine: DaemonMachine,
): Promise<RunningEngine | undefined> {
  return (await machine.running()).find(({ project }) => project === directory);
}

const thisMachine: DaemonMachine = {
  async spawn(args, directory, logPath) {
    const { spawn } = await import("node:child_process");
    const { closeSync, openSync } = await import("node:fs");
    await Deno.mkdir(logPath.replace(/\/[^/]*$/, ""), { recursive: true, mode: 0o700 });
    await putAside(logPath);
    const output = openSync(logPath, "a", 0o600);
    try {
      const stdio = ["ignore" as const, output, output];
      const options = { cwd: directory, detached: true, stdio };
      const child = spawn(Deno.execPath(), [...ownArguments(), ...args], options);
      const failed = new Promise<Error>((resolve) => child.once("error", resolve));
      if (child.pid === undefined) throw notSpawned(await failed);
      child.unref();
      return child.pid;
    } finally {
      closeSync(output);
    }
  },
  isAlive: (pid) => !isProcessDead(pid),
  end: (pid) => Deno.kill(pid, "SIGTERM"),
  async running() {
    const { runningEngines } = await import("../../../engine/mod.ts");
    return await runningEngines();
  },
};

/** The system refused a process. */
function notSpawned({ message }: Error): CommandError {
  const what = message.replace(/^Error: /, "");
  const isFull = /EMFILE|too many open files/i.test(message);
  const hint = isFull ? "; raise the limit of open files (`ulimit -n 4096`)" : "";
  return new CommandError(`The system started no process for the engine: ${what}${hint}`);
}

/** How this program was started, without its own arguments. */
function ownArguments(): string[] {
  if (Deno.build.standalone) return [];
  return ["run", "-A", "--quiet", "--unstable-lazy-dynamic-imports", Deno.mainModule];
}

/** Renames the log of earlier starts if it is large. */
async function putAside(logPath: string): Promise<void> {
  const info = await Deno.stat(logPath).catch(() => undefined);
  if (info && info.size > LOG_BYTES_MAX) await Deno.rename(logPath, `${logPath}.1`);
}
