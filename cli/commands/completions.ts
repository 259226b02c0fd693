/**
 * `engine completions`: print a script that completes commands and options in a shell.
 *
 * A script contains all words, so completing starts no program. Where no word fits, the shell
 * offers files.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { ACCELERATORS, ISOLATIONS } from "../arguments.ts";
import { UsageError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { LOG_LEVELS } from "./engine/start.ts";

const EXAMPLES = `
Examples:
  source <(engine completions bash)              in ~/.bashrc
  source <(engine completions zsh)               in ~/.zshrc
  engine completions fish | source               in ~/.config/fish/config.fish`;

/** A word that is offered. */
export interface Candidate {
  /** Such as `trigger` or `--payload`. */
  readonly word: string;
  /** What it does, in one line. */
  readonly summary: string;
  /** The values of an option that has few. */
  readonly values?: readonly string[];
}

/** What may follow a path of commands, such as `["worker", "add"]`; the root has an empty path. */
export interface Place {
  readonly path: readonly string[];
  readonly candidates: readonly Candidate[];
}

/** Shells with a script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of {@linkcode SHELLS}. */
export type Shell = typeof SHELLS[number];

/** The part of a command that is read here, whatever its arguments and options are. */
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

/** The values of options, by long name. */
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

/** The script of a shell for all places of the program. */
export function completionScript(shell: Shell, places: readonly Place[]): string {
  switch (shell) {
    case "bash":
      return bashScript(places);
    case "zsh":
      return zshScript(places);
    case "fish":
      return fishScript(places);
  }
}

function bashScript(places: readonly Place[]): string {
  const answers = places.map(({ path, candidates }) => {
    const words = candidates.map(({ word }) => word).join(" ");
    return `    ${quote(nameOf(path))}) words=${quote(words)} ;;`;
  });
  const values = valuesOf(places).map(([at, words]) =>
    `    ${at}) words=${quote(words.join(" "))} ;;`
  );
  return `# Completion of engine for bash. Load it with: source <(engine completions bash)
_engine() {
  local word="\${COMP_WORDS[COMP_CWORD]}" place="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place/\${COMP_WORDS[i]}" in
      ${alternatives(places)}) place="$place/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place" in
${answers.join("\n")}
  esac
  local before=$((COMP_CWORD - 1))
  # Bash takes --option=value for three words.
  if [[ $word == "=" ]]; then
    word=""
  elif [[ "\${COMP_WORDS[before]}" == "=" ]]; then
    before=$((before - 1))
  fi
  case "$place \${COMP_WORDS[before]}" in
${values.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -o bashdefault -F _engine engine
`;
}

function zshScript(places: readonly Place[]): string {
  const answers = places.map(({ path, candidates }) => {
    const words = candidates.map(({ word, summary }) =>
      quote(`${word.replaceAll(":", "\\:")}:${summary}`)
    );
    return `    ${quote(nameOf(path))}) candidates=(${words.join(" ")}) ;;`;
  });
  const values = valuesOf(places).map(([at, words]) =>
    `    ${at}) candidates=(${words.map(quote).join(" ")}) ;;`
  );
  return `#compdef engine
# Completion of engine for zsh. Load it with: source <(engine completions zsh)
_engine() {
  local place="" i
  local -a candidates
  for ((i = 2; i < CURRENT; i++)); do
    case "$place/\${words[i]}" in
      ${alternatives(places)}) place="$place/\${words[i]}" ;;
    esac
  done
  case "$place" in
${answers.join("\n")}
  esac
  case "$place \${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  _describe engine candidates || _files
}
compdef _engine engine
`;
}

function fishScript(places: readonly Place[]): string {
  const offers = places.flatMap(({ path, candidates }) =>
    candidates.map(({ word, summary, values }) => {
      // Not quoted here: the whole condition is quoted below.
      const place = `__engine_at ${nameOf(path)}`;
      const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${quote(word)}`;
      const choice = values ? ` -x -a ${quote(values.join(" "))}` : "";
      return `complete -c engine -n ${quote(place)} ${what}${choice} -d ${quote(summary)}`;
    })
  );
  return `# Completion of engine for fish. Load it with: engine completions fish | source
function __engine_at
    set -l place ""
    for word in (commandline -opc)[2..-1]
        switch "$place/$word"
            case ${alternatives(places).replaceAll("|", " ")}
                set place "$place/$word"
        end
    end
    test "$place" = "$argv[1]"
end
${offers.join("\n")}
`;
}

/** Patterns of a place and the option before the cursor, such as `'/create --template'`. */
function valuesOf(places: readonly Place[]): [string, readonly string[]][] {
  return places.flatMap(({ path, candidates }) =>
    candidates.flatMap(({ word, values }): [string, readonly string[]][] =>
      values ? [[quote(`${nameOf(path)} ${word}`), values]] : []
    )
  );
}

/** The name of a place in the scripts: `/worker/add`; empty for the root. */
function nameOf(path: readonly string[]): string {
  return path.map((part) => `/${part}`).join("");
}

function alternatives(places: readonly Place[]): string {
  return places.filter(({ path }) => path.length > 0).map(({ path }) => nameOf(path)).join("|");
}

/** Single quotes; those in the text, which would end it, become typographic ones. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
