/**
 * All commands together, and how any of them ends.
 *
 * The root is a command too: `engine` alone starts an engine.
 *
 * @module
 */
import { Command } from "@commander-js/extra-typings";
import { CommanderError } from "commander";
import manifest from "../deno.json" with { type: "json" };
import { addCompletions } from "./commands/completions.ts";
import { addConsole } from "./commands/console.ts";
import { addCreate } from "./commands/create.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addFunctions } from "./commands/functions.ts";
import { addStart } from "./commands/start.ts";
import { addTop } from "./commands/top.ts";
import { addTrigger } from "./commands/trigger.ts";
import { addVm } from "./commands/vm.ts";
import { addWhy } from "./commands/why.ts";
import { addWorker } from "./commands/worker.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_UNDERSTOOD } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

const EXAMPLES = `
Examples:
  engine create --template quickstart --directory hello    a project to start from
  engine --config config.yaml                              start the engine
  engine worker add ./workers/math-worker                  add a worker and start it
  engine trigger math::add a=2 b=3                         call a function

Exit codes: 0 done, 1 failed, 2 not understood, 3 not ready in time, 130 after Ctrl-C.`;

/** The program with all its commands; nothing runs yet. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command("engine")
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
    .addHelpText("after", EXAMPLES);
  addStart(program as Command, terminal);
  addCreate(program as Command, terminal);
  addTrigger(program as Command, terminal);
  addWorker(program as Command, terminal);
  addVm(program as Command, terminal);
  addFunctions(program as Command, terminal);
  addTop(program as Command, terminal);
  addDoctor(program as Command, terminal);
  addWhy(program as Command, terminal);
  addConsole(program as Command, terminal);
  addCompletions(program as Command, terminal);
  return program as Command;
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
