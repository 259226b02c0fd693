/**
 * Runs one command line.
 *
 * What is plain in every part is run without the parser; it is the same program, sooner. The rest
 * of the program is named in such a way that Deno does not see it before it is loaded: what an
 * import names outright is read at start, whether it runs or not (30 ms for the engine). So
 * `deno compile` has to be told of it; see the task in deno.json.
 *
 * @module
 */
import { describeFailure, EXIT_DONE } from "./failure.ts";
import { readPlain } from "./plain_words.ts";
import type { Terminal } from "./terminal.ts";

/** Runs a command line as it was typed; prints what went wrong and returns the exit code. */
export async function runCommandLine(
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    if (await runPlain(args, terminal)) return EXIT_DONE;
  } catch (thrown) {
    const { lines, exitCode } = describeFailure(thrown);
    for (const line of lines) terminal.err(line);
    return exitCode;
  }
  const program: typeof import("./program.ts") = await import(unseen("./program.ts"));
  const { createProgram, runProgram } = program;
  return await runProgram(await createProgram(terminal, args), terminal, args);
}

/** Runs it if it is plain; whether it was. */
async function runPlain(args: readonly string[], terminal: Terminal): Promise<boolean> {
  if (args[0] === "trigger") {
    const { runTrigger, TRIGGER_OPTIONS } = await import("./commands/trigger.ts");
    const plain = readPlain(args.slice(1), TRIGGER_OPTIONS);
    if (plain) await runTrigger(plain.words, plain.options, terminal);
    return plain !== undefined;
  }
  if (args[0] !== undefined && !args[0].startsWith("-")) return false;
  const start: typeof import("./commands/start.ts") = await import(unseen("./commands/start.ts"));
  const { START_OPTIONS, startPlain } = start;
  const plain = readPlain(args, START_OPTIONS);
  if (!plain || plain.words.length > 0) return false;
  await startPlain(plain.options, terminal);
  return true;
}

function unseen(path: string): string {
  return new URL(path, import.meta.url).href;
}
