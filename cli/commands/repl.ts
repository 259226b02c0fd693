/**
 * `engine repl`: call functions from a prompt.
 *
 * A line is the id of a function and its payload, as fields or as JSON. On a terminal there are
 * completion of ids and fields and a history; lines from a pipe are run one after the other. A
 * failure does not end the session; those of a pipe are printed at its end, with exit code 1.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json } from "../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineConnection } from "../connect.ts";
import { CommandError, describeFailure, EXIT_FAILED, ExitWith, UsageError } from "../failure.ts";
import { withFields } from "../payload.ts";
import { printable, renderDuration, renderJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";
import { describeFunction, type FunctionDetail } from "./functions.ts";

const EXAMPLES = `
Examples:
  engine repl
  > math::add a=2 b=3
  > orders::create {"items": ["tea"]}
  echo 'math::add a=2 b=3' | engine repl

Lines that begin with a point are commands: .functions, .help FUNCTION, .why, .exit. A line that
begins with a space is not kept in the history.`;

const HELP = `FUNCTION [key=value …]    call it, with fields
FUNCTION JSON              call it, with this payload
.functions [SEARCH]        list functions
.help FUNCTION             what it takes and returns
.why                       how to look up the last call
.exit                      end; Ctrl-D too`;

/** Lines that are kept. */
const HISTORY_LINES_MAX = 1_000;
/** How long a list of functions is used for completion. */
const LIST_MS = 2_000;
/** Functions that are listed for completion. */
const LISTED_MAX = 2_000;
const COMMANDS = [".exit", ".functions", ".help", ".why"] as const;

/** Where lines come from. */
export interface LineReader {
  /** Whether a person types them. */
  readonly isTerminal: boolean;
  /** The lines, until the input ends. */
  read(options: ReadOptions): AsyncIterable<string>;
}

/** How lines are read from a terminal. */
export interface ReadOptions {
  readonly prompt: string;
  /** The words that may stand at the end of a line, whole. */
  complete(line: string): Promise<readonly string[]>;
  /** Ctrl-C; `false`: nothing ran, so the line is discarded. */
  interrupt(): boolean;
}

/** Adds `engine repl`. */
export function addRepl(program: Command, terminal: Terminal, reader?: LineReader): void {
  program.command("repl")
    .description("Call functions from a prompt, with completion and history")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const lines = reader ?? await systemReader();
      await using engine = await terminal.connect(flags);
      const { url } = await terminal.locate(flags);
      if (lines.isTerminal) terminal.err(`Connected to ${url}; .help for help, Ctrl-D to end`);
      const failures = await new Repl(engine, terminal, lines.isTerminal).run(lines);
      if (failures.length > 0) throw new ExitWith(EXIT_FAILED, failures);
    });
}

/** One session. */
class Repl {
  readonly #engine: EngineConnection;
  readonly #terminal: Terminal;
  readonly #showsTimes: boolean;
  #running: AbortController | undefined;
  #lastTrace = "";
  #listed: { readonly ids: readonly string[]; readonly untilMs: number } | undefined;

  constructor(engine: EngineConnection, terminal: Terminal, showsTimes: boolean) {
    this.#engine = engine;
    this.#terminal = terminal;
    this.#showsTimes = showsTimes;
  }

  /**
   * Runs all lines. Returns how those failed that no person typed, since these are to be printed
   * with `--quiet`, too.
   */
  async run(lines: LineReader): Promise<string[]> {
    const failures: string[] = [];
    const options: ReadOptions = {
      prompt: "> ",
      complete: (line) => this.#complete(line).catch(() => []),
      interrupt: () => {
        this.#running?.abort();
        return this.#running !== undefined;
      },
    };
    for await (const line of lines.read(options)) {
      const text = line.trim();
      if (text === ".exit") break;
      if (text === "" || text.startsWith("#")) continue;
      try {
        await (text.startsWith(".") ? this.#command(text) : this.#call(text));
      } catch (thrown) {
        const text = describeFailure(thrown).lines;
        if (lines.isTerminal) { for (const each of text) this.#terminal.err(each); }
        else failures.push(...text);
      }
    }
    return failures;
  }

  async #call(text: string): Promise<void> {
    const { function_id, payload } = readCall(text);
    const running = this.#running = new AbortController();
    this.#lastTrace = crypto.getRandomValues(new Uint8Array(16)).toHex();
    const span = crypto.getRandomValues(new Uint8Array(8)).toHex();
    const traceparent = `00-${this.#lastTrace}-${span}-01`;
    const onProgress = (data: Json): void => this.#terminal.err(`… ${renderJson(data)}`);
    const beganMs = this.#terminal.now();
    try {
      const options = { traceparent, onProgress, signal: running.signal };
      const result = await this.#engine.call(function_id, payload, options);
      this.#terminal.out(renderJson(result ?? null));
      if (!this.#showsTimes) return;
      this.#terminal.err(`(${renderDuration(this.#terminal.now() - beganMs)})`);
    } finally {
      this.#running = undefined;
    }
  }

  async #command(text: string): Promise<void> {
    const [name, ...words] = text.split(/\s+/);
    switch (name) {
      case ".functions": {
        for (const id of await this.#ids(words[0])) this.#terminal.out(printable(id));
        return;
      }
      case ".help": {
        if (words[0] === undefined) return this.#terminal.out(HELP);
        for (const line of describeFunction(await this.#infoOf(words[0]))) this.#terminal.out(line);
        return;
      }
      case ".why": {
        if (this.#lastTrace === "") throw new CommandError("Nothing was called yet");
        return this.#terminal.out(`engine why ${this.#lastTrace}`);
      }
      default:
        throw new UsageError(`Unknown command ${name}; there are ${COMMANDS.join(", ")}`);
    }
  }

  async #complete(line: string): Promise<readonly string[]> {
    const words = line.trimStart().split(/\s+/);
    const last = words.at(-1)!;
    if (words.length === 1) {
      return [...await this.#ids(), ...COMMANDS].filter((word) => word.startsWith(last));
    }
    if (words[0] === ".help") return (await this.#ids()).filter((id) => id.startsWith(last));
    if (words[0]!.startsWith(".")) return [];
    const schema = (await this.#infoOf(words[0]!)).request_schema;
    const { properties = {} } = (schema ?? {}) as { properties?: Record<string, Json> };
    const given = new Set(words.slice(1, -1).map((word) => word.split("=")[0]));
    return Object.keys(properties).filter((key) => !given.has(key)).map((key) => `${key}=`)
      .filter((word) => word.startsWith(last));
  }

  /** Ids of functions, those for completion from a list of a moment ago. */
  async #ids(search?: string): Promise<readonly string[]> {
    if (search === undefined && this.#listed && this.#listed.untilMs > this.#terminal.now()) {
      return this.#listed.ids;
    }
    const payload = { limit: LISTED_MAX, ...search !== undefined && { search } };
    const answer = await this.#engine.call("engine::functions::list", payload);
    const { functions } = answer as unknown as { functions: readonly { function_id: string }[] };
    const ids = functions.map(({ function_id }) => function_id);
    if (search === undefined) this.#listed = { ids, untilMs: this.#terminal.now() + LIST_MS };
    return ids;
  }

  async #infoOf(function_id: string): Promise<FunctionDetail> {
    const detail = await this.#engine.call("engine::functions::info", { function_id });
    return detail as unknown as FunctionDetail;
  }
}

/**
 * Reads a line as a call: the id, then fields or one JSON value.
 *
 * @throws {UsageError} A field or the JSON is invalid, or a quote is not closed.
 */
export function readCall(text: string): { readonly function_id: string; readonly payload: Json } {
  const [, function_id = "", rest = ""] = /^(\S+)\s*([^]*)$/.exec(text) ?? [];
  if (function_id.includes("=")) {
    throw new UsageError(`The id of the function comes first: FUNCTION ${text}`);
  }
  if (!/^["[{\d-]|^(?:null|true|false)$/.test(rest)) {
    return { function_id, payload: withFields({}, splitWords(rest)) };
  }
  try {
    return { function_id, payload: JSON.parse(rest) };
  } catch (thrown) {
    throw new UsageError(`The payload is not JSON: ${(thrown as Error).message}`);
  }
}

/** A piece of a word: in quotes, escaped, or plain. */
const PIECE = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)/gy;

/**
 * Splits a line at spaces, except in quotes. JSON in a field needs no quotes around it as long as
 * it contains no space.
 *
 * @throws {UsageError} A quote is not closed.
 */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  let at = 0;
  while (at < line.length) {
    if (/\s/.test(line[at]!)) {
      at++;
      continue;
    }
    let word = "";
    while (at < line.length && !/\s/.test(line[at]!)) {
      PIECE.lastIndex = at;
      const found = PIECE.exec(line);
      if (!found) throw new UsageError(`A quote is not closed: ${line.slice(at)}`);
      const [whole, single, double, escaped, plain] = found;
      // Quotes at the start of a word or value are the shell's; inside of JSON they are JSON's.
      const isJson = double !== undefined && /[[{,:]$/.test(word);
      word += isJson ? whole : single ?? double?.replaceAll(/\\(.)/g, "$1") ?? escaped ?? plain;
      at += whole.length;
    }
    words.push(word);
  }
  return words;
}

/** Lines of standard input. */
async function systemReader(): Promise<LineReader> {
  const { createInterface } = await import("node:readline");
  const { stdin, stderr } = await import("node:process");
  const isTerminal = Deno.stdin.isTerminal();
  return {
    isTerminal,
    async *read({ prompt, complete, interrupt }) {
      if (!isTerminal) return yield* createInterface({ input: stdin });
      const history = await openHistory();
      const input = createInterface({
        input: stdin,
        output: stderr, // Standard output is for results.
        prompt,
        history: [...history.lines],
        historySize: HISTORY_LINES_MAX,
        removeHistoryDuplicates: true,
        completer: (line: string, done: (error: null, found: [string[], string]) => void) => {
          const last = /\S*$/.exec(line)![0];
          void complete(line).then((words) => done(null, [[...words], last]));
        },
      });
      input.on("SIGINT", () => {
        if (interrupt()) return;
        if (input.line === "") return input.close();
        input.write(null, { ctrl: true, name: "e" });
        input.write(null, { ctrl: true, name: "u" });
      });
      input.prompt();
      for await (const line of input) {
        if (!line.startsWith(" ")) await history.add(line);
        yield line;
        input.prompt();
      }
      stderr.write("\n");
    },
  };
}

/** The history of this user: the newest line first, in a file that only the user reads. */
async function openHistory() {
  const { keyFolder } = await import("../../engine/mod.ts");
  const path = `${keyFolder()}/repl_history`;
  const text = await Deno.readTextFile(path).catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "").slice(-HISTORY_LINES_MAX);
  return {
    lines: lines.toReversed(),
    async add(line: string): Promise<void> {
      if (line.trim() === "" || line === lines.at(-1)) return;
      lines.push(line);
      lines.splice(0, lines.length - HISTORY_LINES_MAX);
      await Deno.mkdir(keyFolder(), { recursive: true, mode: 0o700 });
      const whole = lines.map((each) => `${each}\n`).join("");
      // Without a home the history ends with the session.
      await Deno.writeTextFile(path, whole, { mode: 0o600 }).catch(() => {});
    },
  };
}
