/**
 * `engine config`: the configurations of an engine: what there is, one value, another value.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineAddress } from "../connect.ts";
import { UsageError } from "../failure.ts";
import { readPayload, withFields } from "../payload.ts";
import { compactJson, renderJson, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine config list
  engine config get shop
  engine config set shop port=8080 db.host=localhost   some members, the others stay
  engine config set shop --value @shop.json            the whole value
  engine config history shop`;

/** Characters of a value in a table. */
const VALUE_CHARS = 60;

interface Flags extends EngineAddress {
  readonly json?: boolean | undefined;
}

/** A page of `configuration::list`. */
interface Page {
  readonly configurations: readonly EntryView[];
  readonly cursor?: string;
}

/** A configuration, as `configuration::list` describes it. */
interface EntryView {
  readonly id: string;
  readonly name: string;
  readonly value: Json;
  readonly has_value: boolean;
  readonly version: number;
  readonly problem: string | null;
}

/** A change, as `configuration::history` describes it. */
interface ChangeView {
  readonly version: number;
  readonly at_ms: number;
  readonly by: string | null;
  readonly new_value: Json;
}

/** Adds `engine config`. */
export function addConfig(program: Command, terminal: Terminal): void {
  const config = program.command("config")
    .description("List, read and change configurations, values that workers follow")
    .addHelpText("after", EXAMPLES);
  addList(config, terminal);
  addGet(config, terminal);
  addSet(config, terminal);
  addHistory(config, terminal);
}

function addList(config: Command, terminal: Terminal): void {
  config.command("list")
    .description("List the configurations; secrets are masked")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const configurations = await listAll(terminal, flags);
      if (flags.json) return terminal.out(compactJson(configurations as unknown as Json));
      const rows = configurations.map((each) => [
        each.id,
        String(each.version),
        each.has_value ? shortValue(each.value) : "-",
        each.problem ?? "",
      ]);
      const head = ["ID", "VERSION", "VALUE", "PROBLEM"];
      for (const line of renderTable(head, rows)) terminal.out(line);
    });
}

function addGet(config: Command, terminal: Terminal): void {
  config.command("get")
    .description(
      "Print the value of a configuration with its references expanded; secrets are masked",
    )
    .argument("<id>", "id of the configuration")
    .option("--secrets", "also print secrets")
    .option("--raw", "references as they were set, secrets masked")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (id, flags) => {
      const { raw = false, secrets = false } = flags;
      if (raw && secrets) throw new UsageError("Give either --raw or --secrets, not both");
      const { value } = await ask(terminal, flags, "get", { id, raw, masked: !secrets });
      terminal.out(flags.json ? compactJson(value!) : renderJson(value!));
    });
}

function addSet(config: Command, terminal: Terminal): void {
  config.command("set")
    .description("Change some members of a value, or all of it")
    .argument("<id>", "id of the configuration")
    .argument("[fields...]", "members as key=value")
    .option("--value <json>", "the whole value: JSON, @file, or - for standard input")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (id, fields, flags) => {
      if (fields.length === 0 && flags.value === undefined) {
        throw new UsageError("Missing value. Example: engine config set shop port=8080");
      }
      const value = flags.value === undefined
        ? await changed(terminal, flags, id, fields)
        : await whole(terminal, flags.value, fields);
      const { new_value } = await ask(terminal, flags, "set", { id, value });
      terminal.out(flags.json ? compactJson(new_value!) : renderJson(new_value!));
    });
}

function addHistory(config: Command, terminal: Terminal): void {
  config.command("history")
    .description("List the last changes of a configuration; secrets are masked")
    .argument("<id>", "id of the configuration")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (id, flags) => {
      const { changes } = await ask(terminal, flags, "history", { id });
      if (flags.json) return terminal.out(compactJson(changes!));
      const rows = (changes as unknown as readonly ChangeView[]).map((change) => [
        String(change.version),
        new Date(change.at_ms).toISOString(),
        change.by ?? "-",
        shortValue(change.new_value),
      ]);
      for (const line of renderTable(["VERSION", "TIME", "BY", "VALUE"], rows)) terminal.out(line);
    });
}

function whole(terminal: Terminal, payload: string, fields: readonly string[]): Promise<Json> {
  const { readFile, readInput } = terminal;
  return readPayload({ fields, payload, option: "--value", readFile, readInput });
}

/** The value that there is, with other members; its secrets stay as they are. */
async function changed(
  terminal: Terminal,
  flags: Flags,
  id: string,
  fields: readonly string[],
): Promise<Json> {
  const value = await rawValue(terminal, flags, id);
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return withFields(value, fields);
  }
  throw new UsageError(`The value of ${id} is not an object; give all of it with --value`);
}

/** The value with its references and masked secrets; an empty object if there is none yet. */
async function rawValue(terminal: Terminal, flags: Flags, id: string): Promise<Json> {
  try {
    const { value } = await ask(terminal, flags, "get", { id, raw: true });
    return value ?? {};
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code === "NOT_FOUND") return {};
    throw thrown;
  }
}

/** All entries, page after page. */
async function listAll(terminal: Terminal, flags: Flags): Promise<EntryView[]> {
  await using engine = await terminal.connect(flags);
  const entries: EntryView[] = [];
  let cursor: string | undefined;
  do {
    const payload = cursor === undefined ? {} : { cursor };
    const page = await engine.call("configuration::list", payload) as unknown as Page;
    entries.push(...page.configurations);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return entries;
}

async function ask(
  terminal: Terminal,
  flags: Flags,
  name: string,
  payload: Json,
): Promise<JsonObject> {
  await using engine = await terminal.connect(flags);
  return await engine.call(`configuration::${name}`, payload) as JsonObject;
}

function shortValue(value: Json): string {
  const text = compactJson(value);
  return text.length <= VALUE_CHARS ? text : `${text.slice(0, VALUE_CHARS - 1)}…`;
}
