/**
 * `engine completions`: print a script that completes commands and options.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { type Candidate, completionScript, type Place, SHELLS } from "../completion_scripts.ts";
import { UsageError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { ACCELERATORS, ISOLATIONS } from "./worker/words.ts";
import { LOG_LEVELS } from "./start.ts";

const EXAMPLES = `
Examples:
  source <(engine completions bash)              in ~/.bashrc
  source <(engine completions zsh)               in ~/.zshrc
  engine completions fish | source               in ~/.config/fish/config.fish`;

/** What this file reads of a command, whatever its arguments and options are. */
interface AnyCommand {
  name(): string;
  description(): string;
  readonly commands: readonly AnyCommand[];
  readonly options: readonly AnyOption[];
}

interface AnyOption {
  readonly long?: string | undefined;
  readonly description: string;
  readonly hidden: boolean;
}

/** Words that an option takes, by its long name. */
type Values = Readonly<Record<string, readonly string[]>>;

/** Adds `engine completions`. */
export function addCompletions(program: Command, terminal: Terminal): void {
  program.command("completions")
    .description("Print a script that completes commands in a shell")
    .argument("<shell>", SHELLS.join(", "))
    .addHelpText("after", EXAMPLES)
    .action(async (name) => {
      const shell = SHELLS.find((shell) => shell === name);
      if (shell === undefined) {
        throw new UsageError(`There are completions for ${SHELLS.join(", ")}; not for ${name}`);
      }
      const values = await readValues();
      terminal.out(completionScript(shell, placesOf(program, [], values)).trimEnd());
    });
}

async function readValues(): Promise<Values> {
  const { templates } = await import("../../templates/mod.ts");
  return {
    "--template": templates.map(({ name }) => name),
    "--isolation": ISOLATIONS,
    "--accel": ACCELERATORS,
    "--log-level": LOG_LEVELS,
  };
}

function placesOf(command: AnyCommand, path: readonly string[], values: Values): Place[] {
  const candidates: Candidate[] = [
    ...command.commands.map((child) => ({ word: child.name(), summary: child.description() })),
    ...command.options.filter((option) => option.long !== undefined && !option.hidden)
      .map((option) => candidateOf(option.long!, option.description, values)),
  ];
  if (!candidates.some(({ word }) => word === "--help")) {
    candidates.push({ word: "--help", summary: "print the help" });
  }
  if (command.name() === "completions") {
    candidates.unshift(...SHELLS.map((word) => ({ word, summary: `script for ${word}` })));
  }
  const below = command.commands.flatMap((child) =>
    placesOf(child, [...path, child.name()], values)
  );
  return [{ path, candidates }, ...below];
}

function candidateOf(word: string, summary: string, values: Values): Candidate {
  const own = Object.hasOwn(values, word) ? values[word] : undefined;
  return own ? { word, summary, values: own } : { word, summary };
}
