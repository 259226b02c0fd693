/**
 * `engine functions`: list the functions that can be called; and the help of one function.
 *
 * The help shows the JSON Schemas that the function's worker registered: types, descriptions,
 * defaults and choices. Everything else that a schema demands shows in the error of a call.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { shellWord, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import { compactJson, printable, renderJson, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine functions
  engine functions math
  engine functions --all --json`;

/** The part of the result of `engine::functions::info` that is shown. */
export interface FunctionDetail {
  /** Such as `math::add`. */
  readonly function_id: string;
  readonly worker_name?: string | undefined;
  /** The other engine whose workers offer it. */
  readonly engine?: string | undefined;
  readonly description?: string | undefined;
  /** JSON Schema of the payload. */
  readonly request_schema?: Json | undefined;
  /** JSON Schema of the result. */
  readonly response_schema?: Json | undefined;
  readonly registered_triggers?: readonly FunctionTrigger[] | undefined;
  /** Origin of the URL that is its implementation. */
  readonly served_by?: string | undefined;
  /** How that is requested; only the engine's own user sees it. */
  readonly invocation?: FunctionRequest | undefined;
}

/** How a function whose implementation is a URL is requested; values of headers are hidden. */
export interface FunctionRequest {
  readonly url: string;
  readonly method: string;
  readonly timeout_ms?: number | undefined;
  readonly headers?: JsonObject | undefined;
  readonly auth?: JsonObject | undefined;
}

/** A trigger that invokes the function. */
export interface FunctionTrigger {
  /** Such as `http`. */
  readonly trigger_type: string;
  readonly config: Json;
  /** Older engines leave it out. */
  readonly status?: "active" | "parked" | "refused" | undefined;
  /** Why it does not fire. */
  readonly reason?: string | undefined;
}

interface FunctionSummary {
  readonly function_id: string;
  readonly worker_name: string;
  readonly description?: string;
  readonly served_by?: string;
  /** The other engine whose workers offer it. */
  readonly engine?: string;
}

/** Adds `engine functions`. */
export function addFunctions(program: Command, terminal: Terminal): void {
  program.command("functions")
    .description("List the functions that can be called")
    .argument("[search]", "only functions whose id contains this text")
    .option("--all", "also the engine's own and internal ones")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (search, flags) => {
      await using engine = await terminal.connect(flags);
      const answer = await engine.call("engine::functions::list", {
        include_internal: flags.all ?? false,
        ...search === undefined ? {} : { search },
      });
      const { functions } = answer as unknown as { functions: readonly FunctionSummary[] };
      if (flags.json) return terminal.out(compactJson(functions as unknown as Json));
      if (functions.length === 0) return terminal.err(emptyText(search));
      for (const line of renderFunctions(functions)) terminal.out(line);
    });
}

/** A table, with the engine of each where one is at another engine. */
function renderFunctions(functions: readonly FunctionSummary[]): string[] {
  const isShared = functions.some(({ engine }) => engine !== undefined);
  const head = ["FUNCTION", "WORKER", ...isShared ? ["ENGINE"] : [], "DESCRIPTION"];
  const rows = functions.map(({ function_id, worker_name, engine, served_by, description }) => [
    function_id,
    worker_name,
    ...isShared ? [engine ?? "here"] : [],
    [served_by && `(${served_by})`, description].filter(Boolean).join(" "),
  ]);
  return renderTable(head, rows);
}

function emptyText(search: string | undefined): string {
  if (search !== undefined) return `No function has ${JSON.stringify(search)} in its id`;
  return "No functions yet; add a worker with: engine worker add ./workers/my-worker";
}

/** The help of a function, as lines. */
export function describeFunction(detail: FunctionDetail): string[] {
  const lines = [detail.function_id];
  if (detail.description) lines.push(`  ${detail.description}`);
  const where = detail.engine === undefined ? "" : ` at engine ${detail.engine}`;
  lines.push("", `Worker: ${detail.worker_name ?? "unknown"}${where}`);
  if (detail.served_by !== undefined) lines.push(...describeRequest(detail));
  lines.push("", "Payload:", ...describeSchema(detail.request_schema, true));
  lines.push("", "Result:", ...describeSchema(detail.response_schema, false));
  const triggers = detail.registered_triggers ?? [];
  if (triggers.length > 0) {
    lines.push("", "Triggers:");
    for (const { trigger_type, config, status = "active", reason } of triggers) {
      const idle = status === "active" ? "" : `  (${status}: ${reason})`;
      lines.push(`  ${trigger_type} ${compactJson(config)}${idle}`);
    }
  }
  const example = exampleFields(detail.request_schema);
  lines.push("", "Example:", `  ${["engine trigger", detail.function_id, ...example].join(" ")}`);
  return lines.map(printable);
}

/** Says which URL executes a function. */
function describeRequest({ served_by, invocation }: FunctionDetail): string[] {
  if (!invocation) return [`Served by: ${served_by}`];
  const { url, method, timeout_ms, headers = {}, auth } = invocation;
  const names = Object.keys(headers);
  return [
    `Served by: ${method} ${url}`,
    ...timeout_ms === undefined ? [] : [`  within ${timeout_ms} ms`],
    ...names.length > 0 ? [`  headers ${names.join(", ")}`] : [],
    ...auth ? [`  auth ${compactJson(auth)}`] : [],
  ];
}

/** Describes a payload, with what is required, or a result. */
function describeSchema(schema: Json | undefined, showsRequired: boolean): string[] {
  if (!isObject(schema)) return ["  anything (its worker has not said what)"];
  const properties = schema["properties"];
  if (!isObject(properties) || Object.keys(properties).length === 0) {
    const description = textOf(schema["description"]);
    return [`  ${typeOf(schema)}${description ? `  ${description}` : ""}`];
  }
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const rows = Object.entries(properties).map(([name, property]) => {
    const shape = isObject(property) ? property : {};
    const need = required.includes(name) ? "required" : "optional";
    return [`  ${name}`, typeOf(shape), ...showsRequired ? [need] : [], remarksOf(shape)];
  });
  return renderTable(rows[0]!.map(() => ""), rows).slice(1);
}

function typeOf(schema: JsonObject): string {
  const choices = schema["enum"];
  if (Array.isArray(choices)) return choices.map((choice) => renderJson(choice)).join(" | ");
  if (schema["const"] !== undefined) return renderJson(schema["const"]);
  const type = schema["type"];
  const items = schema["items"];
  if (type === "array" && isObject(items)) return `array of ${typeOf(items)}`;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.join(" | ");
  const either = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(either)) return "anything";
  return either.map((one) => isObject(one) ? typeOf(one) : "anything").join(" | ");
}

function remarksOf(schema: JsonObject): string {
  const remarks = [textOf(schema["description"])];
  if (schema["default"] !== undefined) remarks.push(`(default ${renderJson(schema["default"])})`);
  return remarks.filter(Boolean).join(" ");
}

/** Fields for the example: the required ones, or all when none is required. */
function exampleFields(schema: Json | undefined): string[] {
  if (!isObject(schema)) return [];
  const first = firstAlternative(schema);
  const properties = schema["properties"] ?? first?.["properties"];
  if (!isObject(properties)) return [];
  const required = [schema["required"], first?.["required"]].flatMap((names) =>
    Array.isArray(names) ? names : []
  );
  const all = Object.entries(properties);
  const chosen = required.length > 0 ? all.filter(([name]) => required.includes(name)) : all;
  return chosen.map(([name, property]) => {
    const field = `${name.replaceAll(".", "\\.")}=${exampleOf(isObject(property) ? property : {})}`;
    return shellWord(field);
  });
}

/** The first of several schemas of which one applies. */
function firstAlternative(schema: JsonObject): JsonObject | undefined {
  const either = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(either) ? either.find((one) => isObject(one)) : undefined;
}

function exampleOf(schema: JsonObject): string {
  const given = schema["default"] ?? schema["const"] ??
    (Array.isArray(schema["enum"]) ? schema["enum"][0] : undefined);
  if (given !== undefined) return typeof given === "string" ? given : compactJson(given);
  const first = schema["type"] === undefined ? firstAlternative(schema) : undefined;
  if (first) return exampleOf(first);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  switch (type) {
    case "integer":
    case "number":
      return "1";
    case "boolean":
      return "true";
    case "array":
      return "[]";
    case "object":
      return "{}";
    case "null":
      return "null";
    default:
      return "text";
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
