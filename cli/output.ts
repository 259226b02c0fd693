/**
 * The options `--output` and `--quiet`, which commands do not have to know.
 *
 * A command that can print JSON has `--json`. From that, `--output json|yaml|table` follows for
 * all of them: `json` is `--json`, `table` is its absence, and `yaml` is the JSON in another form,
 * one document per value. `--quiet` drops what a command writes to standard error while it runs;
 * failures are printed all the same.
 *
 * @module
 */
import { type Command, Option } from "@commander-js/extra-typings";
import type { Terminal } from "./terminal.ts";

/** What `--output` accepts. */
export const OUTPUTS = ["json", "yaml", "table"] as const;

/** The terminal as commands see it: what they print takes the form that the user chose. */
export interface OutputTerminal extends Terminal {
  /** Takes the options of the command that is going to run. */
  choose(options: OutputFlags): Promise<void>;
}

/** The options that are read here. */
export interface OutputFlags {
  readonly output?: typeof OUTPUTS[number] | undefined;
  readonly quiet?: boolean | undefined;
}

/** Wraps a terminal; until {@linkcode OutputTerminal.choose} is called it is as that one. */
export function outputTerminal(terminal: Terminal): OutputTerminal {
  let isQuiet = false;
  let toYaml: ((json: string) => string) | undefined;
  let documents = 0;
  return {
    out(text) {
      if (!toYaml) return terminal.out(text);
      terminal.out(`${documents++ > 0 ? "---\n" : ""}${toYaml(text).trimEnd()}`);
    },
    err: (text) => isQuiet ? undefined : terminal.err(text),
    get screen() {
      return isQuiet ? undefined : terminal.screen;
    },
    async choose({ output, quiet }) {
      isQuiet = quiet ?? false;
      if (output !== "yaml") return;
      const { stringify } = await import("yaml");
      toYaml = (json) => stringify(JSON.parse(json), { lineWidth: 0 });
    },
    directory: terminal.directory,
    bytes: (stream, bytes) => terminal.bytes(stream, bytes),
    env: (name) => terminal.env(name),
    readFile: (path) => terminal.readFile(path),
    writeFile: (path, text) => terminal.writeFile(path, text),
    readInput: () => terminal.readInput(),
    input: terminal.input,
    locate: (address) => terminal.locate(address),
    connect: (address) => terminal.connect(address),
    now: () => terminal.now(),
    wall: () => terminal.wall(),
    wait: (ms, signal) => terminal.wait(ms, signal),
    onInterrupt: (listener) => terminal.onInterrupt(listener),
    onFault: (listener) => terminal.onFault(listener),
    exitWithin: (ms) => terminal.exitWithin(ms),
  };
}

/** Adds both options to the program and all its commands. */
export function addOutput(program: Command, terminal: OutputTerminal): void {
  for (const command of commandsOf(program)) {
    command.option("-q, --quiet", "print results and errors only");
    if (!command.options.some(({ long }) => long === "--json")) continue;
    command.addOption(
      new Option("-o, --output <format>", "format of the result").choices(OUTPUTS),
    );
  }
  program.hook("preAction", async (_program, command) => {
    const flags = command.opts() as OutputFlags & { readonly json?: boolean };
    if (flags.output !== undefined) {
      command.setOptionValue("json", flags.output !== "table");
    }
    await terminal.choose(flags);
  });
}

/** A command and all below it. */
function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap((child) => commandsOf(child as Command))];
}
