/**
 * `engine` without a command, and `engine start`: start an engine and run until it is stopped.
 *
 * Standard output lists what it serves, one line per address. The first SIGINT or SIGTERM lets
 * running calls finish, the second one does not. `engine start --daemon` is in `daemon.ts`.
 *
 * @module
 */
import { Command } from "@commander-js/extra-typings";
import type { Engine, EngineInfo, StartOptions } from "../../../engine/mod.ts";
import { readNumber } from "../../arguments.ts";
import { EXIT_FAILED, ExitWith, UsageError } from "../../failure.ts";
import type { Terminal } from "../../terminal.ts";

/** What `--log-level` accepts. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** An engine that stops after a fault ends after this long, in order or not. */
const FAULT_STOP_MS_MAX = 45_000;

/** Starts an engine; tests provide another one. */
export type Start = (options: StartOptions) => Promise<Engine>;

/** Makes `engine` without a command start the engine. */
export function addStart(program: Command, terminal: Terminal, start: Start = startReal): void {
  const root = startOptions(
    program
      .usage("[--config <file>] [--port <port>] | engine <command> ...")
      .argument("[command...]"),
  );
  root.hook("preSubcommand", (_root, command) => {
    const given = Object.keys(root.opts())[0];
    if (given === undefined) return;
    throw new UsageError(
      `--${dashed(given)} is for starting the engine, not for ${command.name()}`,
    );
  });
  root.action(async (words, flags) => {
    if (words.length > 0) refuseCommand(words, program);
    await runEngine(readOptions(flags, terminal.directory), terminal, start);
  });
}

/** Adds the options of a start to a command. */
export function startOptions<Args extends unknown[]>(command: Command<Args>) {
  return command
    .option(
      "--config <file>",
      "configuration file (default: config.yaml here, else embedded defaults)",
    )
    .option("--port <port>", "port for workers, instead of engine.port of the file")
    .option("--log-level <level>", `minimum log level: ${LOG_LEVELS.join(", ")}`)
    .option(
      "--accept-empty-state",
      "start once although the state file is missing or was replaced",
    );
}

/** The options that {@linkcode startOptions} adds. */
export interface StartFlags {
  readonly config?: string | undefined;
  readonly port?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly acceptEmptyState?: boolean | undefined;
}

/**
 * The options of a start.
 *
 * @throws {UsageError} A value is invalid.
 */
export function readOptions(flags: StartFlags, directory: string): StartOptions {
  const level = LOG_LEVELS.find((level) => level === flags.logLevel);
  if (flags.logLevel !== undefined && level === undefined) {
    throw new UsageError(
      `--log-level: expected ${LOG_LEVELS.join(", ")}, received ${JSON.stringify(flags.logLevel)}`,
    );
  }
  return {
    ...flags.config === undefined ? { directory } : { configPath: flags.config },
    ...flags.port === undefined ? {} : { port: readNumber("--port", flags.port, 0, 65_535) },
    ...level === undefined ? {} : { logLevel: level },
    ...flags.acceptEmptyState ? { acceptsEmptyState: true } : {},
  };
}

/** Refuses words that name no command, with the command that was probably meant. */
function refuseCommand(words: readonly string[], program: Command): never {
  // The root has an action, so commander accepts any words there; a parser without one suggests.
  const parser = new Command("engine").exitOverride()
    .configureOutput(program.configureOutput())
    .showHelpAfterError("see engine --help");
  for (const command of program.commands) parser.addCommand(command as Command);
  parser.parse([...words], { from: "user" });
  throw new UsageError(`unknown command '${words[0]}'`);
}

function dashed(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Starts an engine in this process. */
export async function startReal(options: StartOptions): Promise<Engine> {
  const { startEngine } = await import("../../../engine/mod.ts");
  return await startEngine(options);
}

/** Runs an engine until it is stopped, and what `accompany` starts as long. */
export async function runEngine(
  options: StartOptions,
  terminal: Terminal,
  start: Start,
  accompany?: (engine: Engine) => Promise<AsyncDisposable>,
): Promise<void> {
  let engine: Engine | undefined;
  let interrupts = 0;
  const stop = () => {
    interrupts++;
    if (!engine) return;
    if (interrupts === 1) terminal.err("Stopping; running calls may finish (again: stop at once)");
    void engine.stop({ drain: interrupts === 1 });
  };
  const stopListening = terminal.onInterrupt(stop);
  let hasFault = false;
  const stopWatching = terminal.onFault((thrown) => {
    if (!engine) return false; // The start fails, or has failed.
    if (engine.handleFault(thrown) === "kept") return true;
    hasFault = true;
    terminal.exitWithin(FAULT_STOP_MS_MAX);
    return true;
  });
  try {
    engine = await start(options);
    for (const line of describeEngine(engine.info())) terminal.out(line);
    if (interrupts > 0) void engine.stop({ drain: interrupts === 1 });
    else if (accompany) await finishBeside(engine, accompany);
    await engine.finished;
  } finally {
    stopListening();
    stopWatching();
  }
  if (hasFault) throw new ExitWith(EXIT_FAILED, ["Stopped after an error; see the log"]);
  terminal.err("Stopped");
}

/** Ends what accompanies an engine when that stops, and the engine when that cannot start. */
async function finishBeside(
  engine: Engine,
  accompany: (engine: Engine) => Promise<AsyncDisposable>,
): Promise<void> {
  try {
    await using _beside = await accompany(engine);
    await engine.finished;
  } catch (thrown) {
    await engine.stop({ drain: false });
    throw thrown;
  }
}

/** What an engine runs and serves, as lines. */
export function describeEngine(info: EngineInfo): string[] {
  const { version, pid, config_path, endpoints } = info;
  const source = config_path === null
    ? "embedded defaults (no config.yaml here): state and HTTP are on"
    : config_path;
  const width = Math.max(...endpoints.map(({ name }) => name.length), 7);
  return [
    `engine ${version}, pid ${pid}`,
    `${"config".padEnd(width)}  ${source}`,
    ...endpoints.map(({ name, url }) => `${name.padEnd(width)}  ${url}`),
  ];
}
