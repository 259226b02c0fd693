/**
 * `engine types`: writes a client of the live system, with the types of all functions.
 *
 * The types come from the JSON Schemas that workers registered. Our own generator writes them
 * (`cli/types/`): there is one for TypeScript (json-schema-to-typescript, with a formatter and 20
 * packages), but none that also writes Python, and both languages have to agree.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { readChoice, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineAddress, EngineConnection } from "../connect.ts";
import { UsageError } from "../failure.ts";
import { count } from "../render.ts";
import { interruptible, type Terminal } from "../terminal.ts";
import { writePython } from "../types/python.ts";
import type { LiveFunction } from "../types/tree.ts";
import { writeTypeScript } from "../types/typescript.ts";

const EXAMPLES = `
Examples:
  engine types --lang ts --out api.ts
  engine types --lang py math:: shop:: --out api.py
  engine types --lang ts --watch --out src/api.ts        write it again whenever functions change

Then: import { createApi } from "./api.ts";  const api = createApi(worker);
      await api.math.add({ a: 2, b: 3 });`;

const WRITERS = { ts: writeTypeScript, py: writePython } as const;
const LANGUAGES = ["ts", "py"] as const;
/** Functions whose schemas are asked for in one call; the engine's bound. */
const INFO_MAX = 32;
/** Changes within this time are written together. */
const SETTLE_MS = 200;
/** A function that is gone may belong to a worker that is being restarted. */
const RESTART_MS = 5_000;
/** A schema that changed without an event is seen after this time. */
const POLL_MS = 30_000;
/** Until the next attempt to reach an engine that is away. */
const RETRY_MS = 1_000;

interface Page {
  readonly functions: readonly { readonly function_id: string; readonly namespace?: string }[];
  readonly next_cursor?: string;
}

/** What is written, and where. */
interface Target {
  readonly lang: keyof typeof WRITERS;
  readonly out: string | undefined;
  readonly prefixes: readonly string[];
  readonly namespace: string;
  readonly withInternal: boolean;
}

/** Adds `engine types`. */
export function addTypes(program: Command, terminal: Terminal): void {
  program.command("types")
    .description("Write a typed client of all functions, in TypeScript or Python")
    .argument("[prefixes...]", "only functions whose ids start with one of these")
    .option("--lang <ts|py>", "the language: ts or py")
    .option("--out <file>", "write it to a file instead of standard output")
    .option("--watch", "write the file again whenever functions change, until Ctrl-C")
    .option("--all", "also the engine's own and internal functions")
    .option("--namespace <name>", "functions of this namespace", "default")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (prefixes, { lang, out, watch, all, namespace, ...address }) => {
      if (lang === undefined) {
        throw new UsageError("Missing --lang. Example: engine types --lang ts");
      }
      const chosen = readChoice("--lang", lang, LANGUAGES);
      const target = { lang: chosen, out, prefixes, namespace, withInternal: all ?? false };
      if (watch) {
        if (out === undefined) throw new UsageError("--watch: add --out FILE, the file to write");
        return await interruptible(terminal, (signal) => {
          return keepWritten(terminal, address, target, signal);
        });
      }
      await using engine = await terminal.connect(address);
      const functions = await readFunctions(engine, target);
      const text = textOf(functions, target);
      if (out === undefined) return terminal.out(text.trimEnd());
      await terminal.writeFile(out, text);
      terminal.err(`Wrote ${count(functions.length, "function")} to ${out}`);
    });
}

function textOf(functions: readonly LiveFunction[], { lang, namespace }: Target): string {
  return WRITERS[lang](functions, namespace === "default" ? undefined : namespace);
}

/** Follows the functions until the signal is aborted, also over restarts of the engine. */
async function keepWritten(
  terminal: Terminal,
  address: EngineAddress,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const file = new WatchedFile(terminal, target);
  let isKnown = false;
  while (!signal.aborted) {
    try {
      await using engine = await terminal.connect(address);
      await follow(engine, file, terminal, signal, () => isKnown = true);
    } catch (thrown) {
      // At the start a wrong address is a mistake; later an engine may be restarting.
      if (!isKnown || signal.aborted) throw thrown;
      file.say("Not connected; retrying in the background");
      await terminal.wait(RETRY_MS, signal);
    }
  }
}

async function follow(
  engine: EngineConnection,
  file: WatchedFile,
  terminal: Terminal,
  signal: AbortSignal,
  followed: () => void,
): Promise<void> {
  let changed = Promise.withResolvers<void>();
  const hear = (): void => changed.resolve();
  const { lost } = await engine.follow("engine::functions-available", {}, hear);
  // A worker that is edited may register the same ids with other schemas.
  await engine.follow("engine::workers-available", {}, hear);
  followed();
  while (!signal.aborted) {
    changed = Promise.withResolvers<void>();
    const isCertain = await Promise.race([file.write(engine), lost]);
    const waiting = terminal.wait(isCertain ? POLL_MS : RESTART_MS, signal);
    await Promise.race([changed.promise, waiting, lost]);
    await Promise.race([terminal.wait(SETTLE_MS, signal), lost]);
  }
}

/** The file that is written, and what is in it. */
class WatchedFile {
  readonly #terminal: Terminal;
  readonly #target: Target;
  #written = "";
  #ids: ReadonlySet<string> = new Set();
  /** When functions were first missing. */
  #missingSinceMs: number | undefined;
  #said = "";

  constructor(terminal: Terminal, target: Target) {
    this.#terminal = terminal;
    this.#target = target;
  }

  /** Writes the file if it would differ; `false` if functions are missing, which may return. */
  async write(engine: EngineConnection): Promise<boolean> {
    const functions = await readFunctions(engine, this.#target);
    const ids = new Set(functions.map(({ function_id }) => function_id));
    if (this.#mayReturn(ids)) return false;
    const out = this.#target.out!;
    const text = textOf(functions, this.#target);
    if (text !== this.#written) {
      // What an editor has open is not touched while nothing changes.
      const found = this.#written === "" ? await this.#read(out) : this.#written;
      if (found !== text) await this.#terminal.writeFile(out, text);
      this.#said = "";
      this.say(`Wrote ${count(functions.length, "function")} to ${out}`);
    }
    this.#written = text;
    this.#ids = ids;
    return true;
  }

  /** Whether functions are missing, for less time than a restart takes. */
  #mayReturn(ids: ReadonlySet<string>): boolean {
    if (this.#ids.isSubsetOf(ids)) {
      this.#missingSinceMs = undefined;
      return false;
    }
    const now = this.#terminal.now();
    this.#missingSinceMs ??= now;
    if (now - this.#missingSinceMs < RESTART_MS) return true;
    this.#missingSinceMs = undefined;
    return false;
  }

  async #read(path: string): Promise<string> {
    try {
      return await this.#terminal.readFile(path);
    } catch {
      return ""; // There is none yet.
    }
  }

  /** Prints a line, unless it is the last one again. */
  say(text: string): void {
    if (text === this.#said) return;
    this.#said = text;
    this.#terminal.err(text);
  }
}

async function readFunctions(
  engine: EngineConnection,
  { prefixes, namespace, withInternal }: Target,
): Promise<LiveFunction[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const payload = { include_internal: withInternal, ...cursor !== undefined && { cursor } };
    const page = await engine.call("engine::functions::list", payload) as unknown as Page;
    for (const found of page.functions) {
      const isWanted = prefixes.length === 0 ||
        prefixes.some((prefix) => found.function_id.startsWith(prefix));
      if (isWanted && (found.namespace ?? "default") === namespace) ids.push(found.function_id);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  const batches = Array.from({ length: Math.ceil(ids.length / INFO_MAX) }, (_, i) => {
    return ids.slice(i * INFO_MAX, (i + 1) * INFO_MAX);
  });
  const found: LiveFunction[] = [];
  for (const function_ids of batches) {
    const answer = await engine.call("engine::functions::info", { function_ids, namespace });
    const { functions } = answer as { functions: JsonObject[] };
    // One that has gone meanwhile has an error instead.
    const live = functions.filter(({ error }: { error?: Json }) => error === undefined);
    found.push(...live as unknown as LiveFunction[]);
  }
  return found;
}
