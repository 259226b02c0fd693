/**
 * The commands as the parser knows them, and how any of them ends.
 *
 * The root is a command too: `engine` alone starts an engine. Each other command is a file that is
 * loaded when it may be meant: all of them together take 30 ms.
 *
 * @module
 */
import { Command } from "@commander-js/extra-typings";
import { CommanderError } from "commander";
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

/** Declares a command, or two. */
type Add = (program: Command, terminal: Terminal) => void;

/** Where each command is declared, in the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  create: async () => (await import("./commands/create.ts")).addCreate,
  trigger: async () => (await import("./commands/trigger.ts")).addTrigger,
  worker: async () => (await import("./commands/worker/mod.ts")).addWorker,
  vm: async () => (await import("./commands/vm.ts")).addVm,
  functions: async () => (await import("./commands/functions.ts")).addFunctions,
  top: async () => (await import("./commands/top.ts")).addTop,
  doctor: async () => (await import("./commands/doctor.ts")).addDoctor,
  why: async () => (await import("./commands/why.ts")).addWhy,
  console: async () => (await import("./commands/console.ts")).addConsole,
  completions: async () => (await import("./commands/completions.ts")).addCompletions,
};

/**
 * The program with its commands; nothing runs yet.
 *
 * @param only The command line that is going to run: commands that it cannot mean are left out.
 */
export async function createProgram(
  terminal: Terminal,
  only: readonly string[] = [],
): Promise<Command> {
  const adds = await Promise.all(namesFor(only).map((name) => COMMANDS[name]!()));
  const program = createRoot(terminal);
  addStart(program, terminal);
  for (const add of adds) add(program, terminal);
  return program;
}

/** Completions and help are about all commands, and so is a word that is none of them. */
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
 * Runs one command line and says how it ended; prints what went wrong, throws nothing.
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
      // Commander has printed its own message, with what was probably meant.
      return thrown.exitCode === 0 ? EXIT_DONE : EXIT_NOT_UNDERSTOOD;
    }
    const { lines, exitCode } = describeFailure(thrown);
    for (const line of lines) terminal.err(line);
    return exitCode;
  }
}
