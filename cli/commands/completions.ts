/**
 * `engine completions`: print a script that completes commands and options in a shell.
 *
 * A script contains the words of the program. For ids of functions and names of workers it asks
 * `engine completions --complete`, which connects to the engine of the folder or of `ENGINE_URL`,
 * and is silent when none runs. Where no word fits, the shell offers files.
 *
 * @module
 */
import { type Command, Option } from "@commander-js/extra-typings";
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

/** What is asked of the engine while a command line is typed. */
export const LIVE = ["functions", "workers"] as const;

/** One of {@linkcode LIVE}. */
export type Live = typeof LIVE[number];

/** Commands with a live word as argument; `engine trigger` also takes it as an option. */
const LIVE_ARGUMENTS: Readonly<Record<Live, readonly string[]>> = {
  functions: ["/trigger", "/call", "/cron/list", "/cron/run", "/queue/add"],
  workers: [
    ...["remove", "rm", "status", "start", "stop", "restart", "logs", "exec"]
      .map((name) => `/worker/${name}`),
    "/logs",
  ],
};
const LIVE_OPTION = "--function-id";
/** Any worker can register an id with other characters, which a shell could take for a command. */
const OFFERED = /^[\w.:/@+-]{1,256}$/;
/** An engine that does not answer by then counts as one that does not run. */
const ANSWER_MS_MAX = 1_000;

/** Shells with a script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of {@linkcode SHELLS}. */
export type Shell = typeof SHELLS[number];

/** The part of a command that is read here, whatever its arguments and options are. */
interface AnyCommand {
  name(): string;
  description(): string;
  aliases(): readonly string[];
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
    .argument("[shell]", SHELLS.join(", "))
    .addOption(new Option("--complete <kind>").hideHelp())
    .addHelpText("after", EXAMPLES)
    .action(async (name, { complete }) => {
      const kind = LIVE.find((kind) => kind === complete);
      if (kind !== undefined) return await printLive(kind, terminal);
      const shell = SHELLS.find((shell) => shell === name);
      if (shell === undefined) {
        const wanted = name === undefined ? "" : `; not for ${name}`;
        throw new UsageError(`There are completions for ${SHELLS.join(", ")}${wanted}`);
      }
      const values = await readValues();
      terminal.out(completionScript(shell, placesOf(program, [], values)).trimEnd());
    });
}

/** Prints what there is now, one a line; nothing when no engine answers. */
async function printLive(kind: Live, terminal: Terminal): Promise<void> {
  const words = await Promise.race([
    readLive(kind, terminal).catch(() => []), // No engine, or one that wants a token.
    terminal.wait(ANSWER_MS_MAX).then(() => []),
  ]);
  for (const word of words) if (OFFERED.test(word)) terminal.out(word);
}

async function readLive(kind: Live, terminal: Terminal): Promise<string[]> {
  await using engine = await terminal.connect({ isShort: true });
  switch (kind) {
    case "functions": {
      const answer = await engine.call("engine::functions::list", { include_internal: false });
      const { functions } = answer as unknown as { functions: { function_id: string }[] };
      return functions.map(({ function_id }) => function_id);
    }
    case "workers": {
      const answer = await engine.call("engine::supervisor::list", {});
      const { workers } = answer as unknown as { workers: { name: string }[] };
      return workers.map(({ name }) => name);
    }
  }
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
    [child.name(), ...child.aliases()].flatMap((name) => placesOf(child, [...path, name], values))
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
    `    ${at}) words=${quote(words.join(" "))} live="" ;;`
  );
  return `# Completion of engine for bash. Load it with: source <(engine completions bash)
_engine() {
  # Bash splits words at : and =, so the line is read instead.
  local text="\${COMP_LINE:0:COMP_POINT}" place="" words="" live="" before option id i
  local word="\${text##*[[:space:]]}"
  read -ra before <<< "\${text%"$word"}"
  option="\${before[\${#before[@]} - 1]}"
  for ((i = 1; i < \${#before[@]}; i++)); do
    case "$place/\${before[i]}" in
      ${alternatives(places)}) place="$place/\${before[i]}" ;;
    esac
  done
  case "$place" in
${answers.join("\n")}
  esac
  case "$place" in
${liveCases((kind) => `live=${kind}`)}
  esac
  # Fields follow the id of a function.
  [[ $live == functions && " \${before[*]} " == *::* ]] && live=""
  if [[ $word == --*=* ]]; then
    option="\${word%%=*}"
    word="\${word#*=}"
  fi
  case "$place $option" in
${values.join("\n")}
    *' ${LIVE_OPTION}') words="" live=functions ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ $live == "" || $word == -* ]] && return
  local typed=""
  [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] && typed="\${word%:*}:"
  while read -r id; do
    [[ $id == "$word"* ]] && COMPREPLY+=("\${id#"$typed"}")
  done < <("\${before[0]}" completions --complete $live 2>/dev/null)
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
    `    ${at}) candidates=(${words.map(quote).join(" ")}) live="" ;;`
  );
  return `#compdef engine
# Completion of engine for zsh. Load it with: source <(engine completions zsh)
_engine() {
  local place="" live="" i
  local -a candidates ids
  for ((i = 2; i < CURRENT; i++)); do
    case "$place/\${words[i]}" in
      ${alternatives(places)}) place="$place/\${words[i]}" ;;
    esac
  done
  case "$place" in
${answers.join("\n")}
  esac
  case "$place" in
${liveCases((kind) => `live=${kind}`)}
  esac
  # Fields follow the id of a function.
  [[ $live == functions && "\${words[1,CURRENT-1]}" == *::* ]] && live=""
  case "$place \${words[CURRENT-1]}" in
${values.join("\n")}
    *' ${LIVE_OPTION}') candidates=() live=functions ;;
  esac
  if [[ $live != "" && $PREFIX != -* ]]; then
    ids=(\${(f)"$(\${words[1]} completions --complete $live 2>/dev/null)"})
    compadd -a ids && return
  fi
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
  const live = LIVE.flatMap((kind) =>
    LIVE_ARGUMENTS[kind].map((place) =>
      `complete -c engine -n ${quote(`__engine_at ${place}`)} -f ` +
      `-a '(engine completions --complete ${kind} 2>/dev/null)'`
    )
  );
  live.push(
    `complete -c engine -n '__engine_at /trigger' -l ${LIVE_OPTION.slice(2)} -x ` +
      "-a '(engine completions --complete functions 2>/dev/null)'",
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
${[...offers, ...live].join("\n")}
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

/** Cases of the commands with a live word, for bash and zsh. */
function liveCases(command: (kind: Live) => string): string {
  return LIVE.map((kind) => `    ${LIVE_ARGUMENTS[kind].join("|")}) ${command(kind)} ;;`).join(
    "\n",
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
