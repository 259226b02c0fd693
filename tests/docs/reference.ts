/**
 * `deno task reference`: writes docs/reference from the code.
 *
 * Functions and trigger types are those that a running engine lists, keys of files those of the
 * schemas that editors get, metrics those of the page `/metrics`. reference_test.ts beside it fails
 * when a page is out of date.
 *
 * @module
 */
import { configSchema } from "../../engine/config/config.ts";
import { manifestSchema } from "../../engine/install/manifest.ts";
import { startEngine } from "../../engine/mod.ts";
import { type Json, type JsonObject, registerWorker } from "../../mod.ts";
import { ERRORS } from "../../sdk/typescript/wire/errors.ts";
import { metricsPage } from "../../workers/observability/metrics/prometheus.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { completeMetrics } from "./complete_metrics.ts";
import { type SchemaRow, schemaRows, typeText } from "./schema_rows.ts";

/** Where the pages are. */
export const REFERENCE = new URL("../../docs/reference/", import.meta.url);

const ROOT = new URL("../../", import.meta.url);
const HEAD = "<!-- Written by `deno task reference` from the code; edits here are lost. -->\n\n";
/** Built-in workers with ports of their own. */
const SERVERS = ["engine-http", "engine-stream"];
/** It offers functions for its pages only, with names that change. */
const PAGES_ONLY = "engine-console";

/** What a listing says of a function or trigger type. */
interface Listed {
  readonly id: string;
  readonly worker: string;
  readonly description: string;
  readonly info: JsonObject;
}

/** All pages by file name. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const { functions, triggers } = await listBuiltins();
  return new Map([
    ["functions.md", HEAD + functionsPage(functions)],
    ["triggers.md", HEAD + triggersPage(triggers)],
    ["config.md", HEAD + configPage()],
    ["manifest.md", HEAD + manifestPage()],
    ["errors.md", HEAD + await errorsPage()],
    ["metrics.md", HEAD + await metricsReference()],
  ]);
}

/** Starts an engine with all built-in workers and asks it what it offers. */
async function listBuiltins(): Promise<{ functions: Listed[]; triggers: Listed[] }> {
  await using stack = new AsyncDisposableStack();
  const directory = await Deno.makeTempDir({ prefix: "engine-reference-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  const names = builtinWorkers.map(({ name }) => name).filter((name) => name !== PAGES_ONLY);
  const entries = names.map((name) =>
    `  - { name: ${name}${SERVERS.includes(name) ? ", config: { port: 0 }" : ""} }\n`
  );
  const configPath = `${directory}/config.yaml`;
  await Deno.writeTextFile(configPath, `engine: { port: 0 }\nworkers:\n${entries.join("")}`);
  const engine = await startEngine({ configPath, logLevel: "error" });
  stack.defer(() => engine.stop({ drain: false }));
  const url = engine.endpoints.find(({ name }) => name === "workers")!.url;
  const worker = registerWorker(url, { workerName: "reference", telemetry: false });
  stack.defer(() => worker.shutdown());
  const ask = (function_id: string, payload: JsonObject) =>
    worker.trigger<Json, JsonObject>({ function_id, payload });

  const list = await ask("engine::functions::list", { include_internal: true });
  const functions = await Promise.all((list.functions as JsonObject[]).map(async (each) => {
    const id = each.function_id as string;
    return listed(id, each, await ask("engine::functions::info", { function_id: id }));
  }));
  const types = await ask("engine::triggers::list", {});
  const triggers = await Promise.all((types.triggers as JsonObject[]).map(async (each) => {
    const id = each.id as string;
    return listed(id, each, await ask("engine::triggers::info", { id }));
  }));
  return { functions, triggers };
}

function listed(id: string, { worker_name, description }: JsonObject, info: JsonObject): Listed {
  return { id, worker: `${worker_name}`, description: `${description ?? ""}`, info };
}

function functionsPage(functions: readonly Listed[]): string {
  const parts = [
    "# Functions\n\n",
    "Every function that the engine and its built-in workers offer. ",
  ];
  parts.push("`engine trigger FUNCTION --help` shows the same of any function.\n");
  for (const [worker, own] of groupBy(functions)) {
    parts.push(`\n## ${worker}\n`);
    for (const { id, description, info } of own) {
      parts.push(`\n### \`${id}\`\n\n${sentence(description)}\n`);
      parts.push(schemaText("Payload", info.request_schema));
      parts.push(schemaText("Result", info.response_schema));
    }
  }
  return parts.join("");
}

function triggersPage(triggers: readonly Listed[]): string {
  const parts = [
    "# Trigger types\n\n",
    "What the `config` of a trigger of each type may have, and ",
  ];
  parts.push("what its function receives and may return.\n");
  for (const [worker, own] of groupBy(triggers)) {
    parts.push(`\n## ${worker}\n`);
    for (const { id, description, info } of own) {
      parts.push(`\n### \`${id}\`\n\n${sentence(description)}\n`);
      parts.push(schemaText("Config", info.configuration_schema));
      parts.push(schemaText("Payload of the function", info.request_schema));
      parts.push(schemaText("Result of the function", info.response_schema));
    }
  }
  return parts.join("");
}

/** By worker, in order of its name. */
function groupBy(all: readonly Listed[]): [string, Listed[]][] {
  const groups = Object.groupBy(all, ({ worker }) => worker) as Record<string, Listed[]>;
  return Object.entries(groups).sort(([a], [b]) => a < b ? -1 : 1);
}

/** One line for a value without members, else a table of them. */
function schemaText(title: string, schema: Json | undefined): string {
  if (schema === undefined || schema === null) return "";
  const rows = schemaRows(schema);
  if (rows.length > 0) return `\n${title}:\n\n${rowsText(rows)}`;
  const { description } = schema as JsonObject;
  const type = typeText(schema);
  const what = typeof description === "string" ? description : type === "object" ? "" : type;
  return what === "" ? "" : `\n${title}: ${sentence(what)}\n`;
}

function rowsText(rows: readonly SchemaRow[]): string {
  const lines = rows.map(({ path, type, required, meaning }) => {
    const text = `${required ? "required" : ""}${required && meaning ? "; " : ""}${meaning}`;
    return `| \`${path}\` | ${cell(type)} | ${cell(text)} |\n`;
  });
  return `| key | type | meaning |\n| --- | --- | --- |\n${lines.join("")}`;
}

function configPage(): string {
  const schema = configSchema(builtinWorkers) as { properties: Record<string, JsonObject> };
  const { engine, log, workers } = schema.properties;
  const item = workers!.items as { properties: JsonObject; allOf: JsonObject[] };
  const parts = [
    "# config.yaml\n\n",
    "Every key of config.yaml. `[]` is any item of a list, `{}` ",
  ];
  parts.push(
    "any key of a mapping. A number, a flag or a word may be a variable of the environment, ",
  );
  parts.push("`${NAME}` or `${NAME:default}`.\n\n");
  parts.push(`## engine\n\n${rowsText(schemaRows(engine, "engine"))}`);
  parts.push(`\n## log\n\n${rowsText(schemaRows(log, "log"))}`);
  parts.push(`\n## workers\n\n${rowsText(schemaRows(workers, "workers"))}`);
  for (const rule of item.allOf) {
    const { if: condition, then } = rule as unknown as {
      if: { properties: { name: { const: string } } };
      then: { properties: { config: JsonObject } };
    };
    const rows = schemaRows(then.properties.config);
    const { const: name } = condition.properties.name;
    if (rows.length > 0) parts.push(`\n## ${name}\n\n${rowsText(rows)}`);
  }
  return parts.join("");
}

function manifestPage(): string {
  return "# engine.worker.yaml\n\nEvery key of the manifest in the directory of a worker.\n\n" +
    rowsText(schemaRows(manifestSchema()));
}

/** When a code occurs is said in ARCHITECTURE.md, whose table a test compares with the code. */
async function errorsPage(): Promise<string> {
  const text = await Deno.readTextFile(new URL("ARCHITECTURE.md", ROOT));
  const when = new Map(
    [...text.matchAll(/^\| `(\w+)` \| \d{3} \| \w+ \| (.*) \|$/gm)].map((
      [, code, why],
    ) => [code, why]),
  );
  const lines = Object.entries(ERRORS).map(([code, { status, retryable }]) =>
    `| \`${code}\` | ${status} | ${retryable ? "yes" : "no"} | ${when.get(code) ?? ""} |\n`
  );
  return "# Error codes\n\nEvery code of the engine and its SDKs. Status: of an HTTP route whose " +
    "function ends with the code. Retry: the handler did not start, and the same call may succeed " +
    "later. A handler may throw codes of its own, which have the status 500 unless " +
    "`details.status_code` says otherwise.\n\n" +
    `| code | status | retry | when |\n| --- | --- | --- | --- |\n${lines.join("")}`;
}

/** All families of the page, with the labels of their samples. */
async function metricsReference(): Promise<string> {
  const page = metricsPage(await completeMetrics());
  const kinds = new Map(
    [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, kind]) => [name, kind]),
  );
  const lines = [...page.matchAll(/^# HELP (\w+) (.*)$/gm)].map(([, name, help]) => {
    const sample = page.match(new RegExp(`^${name}(?:_bucket)?\\{([^}]*)\\}`, "m"))?.[1] ?? "";
    const labels = [...sample.matchAll(/(\w+)="/g)].map(([, label]) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${kinds.get(name!)} | ${labels} | ${sentence(help!)} |\n`;
  });
  return "# Metrics\n\nEvery family of `/metrics` on the worker port, in Prometheus text. A family " +
    "without a value is left out, those that begin with `engine_cluster` for an engine without a " +
    "cluster.\n\n" +
    `| name | type | labels | meaning |\n| --- | --- | --- | --- |\n${lines.join("")}`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? cell(text) : `${cell(text)}.`;
}

/** Text that may stand in a table; what looks like a tag, outside of code, is none. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ")
    .replaceAll(/`[^`]*`|</g, (found) => found === "<" ? "&lt;" : found);
}

if (import.meta.main) {
  await Deno.mkdir(REFERENCE, { recursive: true });
  for (const [name, text] of await referencePages()) {
    await Deno.writeTextFile(new URL(name, REFERENCE), text);
    console.log(`docs/reference/${name}`);
  }
}
