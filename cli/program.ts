/**
 * The commands of `engine`: parses a command line, runs it, and ends with an exit code.
 *
 * The root is a command too: `engine` alone starts an engine. Every other command is a module that
 * is imported when the command line names it, or for the help and completions of all commands.
 *
 * @module
 */
import { Command, CommanderError } from "@commander-js/extra-typings";
import manifest from "../deno.json" with { type: "json" };
import { addStart } from "./commands/start.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_UNDERSTOOD } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

const EXAMPLES = `
Examples:
  engine create --template quickstart --directory hello    a project to start from
  engine --config config.yaml                              start the engine
  engine worker add ./workers/math-worker                  add a worker and start it
  engine trigger math::add a=2 b=3                         call a function

Exit codes: 0 done, 1 failed, 2 not understood, 3 not ready in time, 130 after Ctrl-C.`;

/** Adds one or two commands to the program. */
type Add = (program: Command, terminal: Terminal) => void;

/** The module of each command, in the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  create: async () => (await import("./commands/create.ts")).addCreate,
  trigger: async () => (await import("./commands/trigger.ts")).addTrigger,
  worker: async () => (await import("./commands/worker/mod.ts")).addWorker,
  state: async () => (await import("./commands/state.ts")).addState,
  config: async () => (await import("./commands/config.ts")).addConfig,
  stream: async () => (await import("./commands/stream.ts")).addStream,
  queue: async () => (await import("./commands/queue.ts")).addQueue,
  token: async () => (await import("./commands/token.ts")).addToken,
  vm: async () => (await import("./commands/vm.ts")).addVm,
  publish: async () => (await import("./commands/pubsub.ts")).addPublish,
  subscribe: async () => (await import("./commands/pubsub.ts")).addSubscribe,
  cron: async () => (await import("./commands/cron.ts")).addCron,
  functions: async () => (await import("./commands/functions.ts")).addFunctions,
  openapi: async () => (await import("./commands/openapi.ts")).addOpenapi,
  top: async () => (await import("./commands/top.ts")).addTop,
  doctor: async () => (await import("./commands/doctor.ts")).addDoctor,
  why: async () => (await import("./commands/why.ts")).addWhy,
  console: async () => (await import("./commands/console.ts")).addConsole,
  completions: async () => (await import("./commands/completions.ts")).addCompletions,
};

/**
 * Creates the parser.
 *
 * @param args The command line that will run; commands that it does not name are left out. Default:
 * all commands.
 */
export async function createProgram(
  terminal: Terminal,
  args: readonly string[] = [],
): Promise<Command> {
  const adds = await Promise.all(namesFor(args).map((name) => COMMANDS[name]!()));
  const program = createRoot(terminal);
  addStart(program, terminal);
  for (const add of adds) add(program, terminal);
  return program;
}

/** The help, completions, and the suggestion for an unknown command need all commands. */
function namesFor([first = ""]: readonly string[]): string[] {
  const isOne = Object.hasOwn(COMMANDS, first) && first !== "completions";
  return isOne ? [first] : Object.keys(COMMANDS);
}

function createRoot(terminal: Terminal): Command {
  return new Command("engine")
    .description("Routes calls between functions of workers in any language")
    .version(manifest.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    })
    .addHelpText("after", EXAMPLES) as Command;
}

/**
 * Runs one command line; prints a failure instead of throwing it.
 *
 * @returns The exit code.
 */
export async function runCommandLine(
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  return await runProgram(await createProgram(terminal, args), terminal, args);
}

/**
 * Runs one command line with an existing parser; prints a failure instead of throwing it.
 *
 * @returns The exit code.
 */
export async function runProgram(
  program: Command,
  terminal: Terminal,
  args: readonly string[],
): Promise<number> {
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT_DONE;
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      // Commander has printed its own message, with a suggestion.
      return thrown.exitCode === 0 ? EXIT_DONE : EXIT_NOT_UNDERSTOOD;
    }
    const { lines, exitCode } = describeFailure(thrown);
    for (const line of lines) terminal.err(line);
    return exitCode;
  }
}
