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
import { addStart } from "./commands/engine/start.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_UNDERSTOOD } from "./failure.ts";
import { addOutput, outputTerminal } from "./output.ts";
import type { Terminal } from "./terminal.ts";

const EXAMPLES = `
Examples:
  engine create --template quickstart --directory hello    a project to start from
  engine --config config.yaml                              start the engine
  engine worker add ./workers/math-worker                  add a worker and start it
  engine trigger math::add a=2 b=3                         call a function

Exit codes: 0 done, 1 failed, 2 invalid usage, 3 not ready in time, 130 after Ctrl-C.`;

/** Adds one or two commands to the program. */
type Add = (program: Command, terminal: Terminal) => void;

/** The module of each command. */
const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  dev: async () => (await import("./commands/engine/dev.ts")).addDev,
  start: async () => (await import("./commands/engine/daemon.ts")).addStartCommand,
  stop: async () => (await import("./commands/engine/daemon.ts")).addStop,
  status: async () => (await import("./commands/engine/daemon.ts")).addStatus,
  create: async () => (await import("./commands/create.ts")).addCreate,
  deploy: async () => (await import("./commands/deploy.ts")).addDeploy,
  trigger: async () => (await import("./commands/trigger.ts")).addTrigger,
  cluster: async () => (await import("./commands/cluster.ts")).addCluster,
  worker: async () => (await import("./commands/worker/mod.ts")).addWorker,
  repl: async () => (await import("./commands/repl.ts")).addRepl,
  ps: async () => (await import("./commands/worker/mod.ts")).addPs,
  logs: async () => (await import("./commands/worker/logs.ts")).addEngineLogs,
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
  types: async () => (await import("./commands/types.ts")).addTypes,
  openapi: async () => (await import("./commands/openapi.ts")).addOpenapi,
  top: async () => (await import("./commands/top.ts")).addTop,
  doctor: async () => (await import("./commands/engine/doctor.ts")).addDoctor,
  why: async () => (await import("./commands/why.ts")).addWhy,
  console: async () => (await import("./commands/console.ts")).addConsole,
  completions: async () => (await import("./commands/completions.ts")).addCompletions,
};

/** The groups of the help, in its order. A test compares them with the commands. */
export const HELP_GROUPS: Readonly<Record<string, readonly string[]>> = {
  "Run an engine:": ["dev", "start", "stop", "status", "logs"],
  "Projects:": ["create", "project", "deploy", "vm"],
  "Workers:": ["worker", "ps", "functions", "types", "openapi"],
  "Call functions:": ["trigger", "repl", "publish", "subscribe", "cron", "queue"],
  "Data:": ["state", "stream", "config"],
  "Look inside:": ["console", "top", "why", "doctor", "cluster"],
  "Other:": ["token", "completions"],
};

/** Other names of commands; those that a command declares itself. */
const ALIASES: Readonly<Record<string, string>> = { call: "trigger" };

/**
 * Creates the parser.
 *
 * @param args The command line that will run; commands that it does not need are left out. Default:
 * all commands.
 */
export async function createProgram(
  terminal: Terminal,
  args: readonly string[] = ["--help"],
): Promise<Command> {
  const program = createRoot(terminal);
  const output = outputTerminal(terminal);
  addStart(program, output);
  const adds = await Promise.all(namesFor(args, program).map((name) => COMMANDS[name]!()));
  for (const add of adds) add(program, output);
  arrange(program);
  addOutput(program, output);
  return program;
}

/** Puts the commands into the groups of the help. */
function arrange(program: Command): void {
  for (const [heading, names] of Object.entries(HELP_GROUPS)) {
    for (const name of names) {
      program.commands.find((command) => command.name() === name)?.helpGroup(heading);
    }
  }
}

/** The help, completions, and the suggestion for an unknown command need all commands. */
function namesFor(args: readonly string[], root: Command): string[] {
  const [first = "", second] = args;
  const name = Object.hasOwn(ALIASES, first) ? ALIASES[first]! : first;
  const needsAll = name === "completions" && second !== "--complete";
  if (Object.hasOwn(COMMANDS, name) && !needsAll) return [name];
  if (startsEngine(args, root)) return [];
  return Object.values(HELP_GROUPS).flat().filter((each) => Object.hasOwn(COMMANDS, each));
}

/** Whether there is nothing but options and their values: the engine would keep the commands. */
function startsEngine(args: readonly string[], root: Command): boolean {
  const takesValue = (word: string | undefined): boolean =>
    word !== undefined &&
    root.options.some(({ required, short, long }) => required && (word === short || word === long));
  return args.every((word, at) => {
    if (word === "-h" || word === "--help" || Object.hasOwn(COMMANDS, word)) return false;
    return word.startsWith("-") || takesValue(args[at - 1]);
  });
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
      // Commander has printed its own message, with a suggestion of the same level.
      if (thrown.exitCode === 0) return EXIT_DONE;
      if (thrown.code === "commander.unknownCommand") await suggestElsewhere(args, terminal);
      if (thrown.code === "commander.missingArgument") terminal.err(usageOf(program, args));
      return EXIT_NOT_UNDERSTOOD;
    }
    const { lines, exitCode } = describeFailure(thrown);
    for (const line of lines) terminal.err(line);
    return exitCode;
  }
}

/** How the command of a command line is used, and where its examples are. */
function usageOf(program: Command, args: readonly string[]): string {
  let command = program;
  const path = ["engine"];
  for (const word of args) {
    const child = command.commands.find((each) =>
      each.name() === word || each.aliases().includes(word)
    );
    if (!child) break;
    command = child as Command;
    path.push(child.name());
  }
  const name = path.join(" ");
  return `Usage: ${name} ${command.usage()}\nExamples: ${name} --help`;
}

/** Prints the commands of other levels that have the name of an unknown one. */
async function suggestElsewhere(args: readonly string[], terminal: Terminal): Promise<void> {
  const words = args.filter((word) => !word.startsWith("-"));
  const paths = pathsOf(await createProgram(terminal));
  const known = (path: readonly string[]): boolean =>
    paths.some((each) => each.join(" ") === path.join(" "));
  const at = words.findIndex((_, end) => !known(words.slice(0, end + 1)));
  const found = paths.filter((path) => path.length !== at + 1 && path.at(-1) === words[at]);
  if (found.length === 0) return;
  const shown = found.map((path) => ["engine", ...path, ...words.slice(at + 1)].join(" "));
  terminal.err(`Did you mean ${shown.join(" or ")}?`);
}

/** The names and aliases of all commands, each with those above it. */
function pathsOf(command: Command, above: readonly string[] = []): string[][] {
  return command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].flatMap((name) => {
      const path = [...above, name];
      return [path, ...pathsOf(child as Command, path)];
    })
  );
}
