/**
 * `engine completions`: print a script that completes commands and options.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { type Candidate, completionScript, type Place, SHELLS } from "../completion_scripts.ts";
import { UsageError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";

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

/** Adds `engine completions`. */
export function addCompletions(program: Command, terminal: Terminal): void {
  program.command("completions")
    .description("Print a script that completes commands in a shell")
    .argument("<shell>", SHELLS.join(", "))
    .addHelpText("after", EXAMPLES)
    .action((name) => {
      const shell = SHELLS.find((shell) => shell === name);
      if (shell === undefined) {
        throw new UsageError(`There are completions for ${SHELLS.join(", ")}; not for ${name}`);
      }
      terminal.out(completionScript(shell, placesOf(program, [])).trimEnd());
    });
}

function placesOf(command: AnyCommand, path: readonly string[]): Place[] {
  const candidates: Candidate[] = [
    ...command.commands.map((child) => ({ word: child.name(), summary: child.description() })),
    ...command.options.filter((option) => option.long !== undefined && !option.hidden)
      .map((option) => ({ word: option.long!, summary: option.description })),
  ];
  if (!candidates.some(({ word }) => word === "--help")) {
    candidates.push({ word: "--help", summary: "print the help" });
  }
  if (command.name() === "completions") {
    candidates.unshift(...SHELLS.map((word) => ({ word, summary: `script for ${word}` })));
  }
  const below = command.commands.flatMap((child) => placesOf(child, [...path, child.name()]));
  return [{ path, candidates }, ...below];
}
