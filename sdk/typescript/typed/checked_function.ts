/**
 * Functions whose payload and result have a schema: JSON Schemas for the engine and for generated
 * clients, and a handler that gets only what fits.
 *
 * The worker checks, although the engine does it too: firings of triggers are not checked by the
 * engine, a schema may transform what it reads, and not every rule has a JSON Schema.
 *
 * @module
 */
import { invalid, show } from "../arguments.ts";
import type { Handler, SchemaOptions } from "../options.ts";
import { EngineError, thrownText } from "../wire/errors.ts";
import type { Json, JsonInput, JsonObject } from "../wire/protocol.ts";
import type { SchemaIssue, StandardSchema } from "./standard_schema.ts";

/** Errors listed for one value, as the engine lists them. */
const ERRORS_MAX = 20;
/** Longest path, and longest message, of an error. */
const TEXT_CHARS_MAX = 500;

/** The formats of a function as they are sent; absent ones are not. */
export interface Formats {
  readonly request_format?: Json;
  readonly response_format?: Json;
}

/**
 * The formats of a function: those of its options, else those of its schemas. A schema of a library
 * that writes no JSON Schema has none.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for what is no Standard Schema, and for a schema that
 * cannot be written as JSON Schema.
 */
export function formatsOf(id: string, options: SchemaOptions): Formats {
  const { input, output } = options;
  const request = options.request_format === undefined
    ? jsonSchemaOf(id, "input", input)
    : options.request_format;
  const response = options.response_format === undefined
    ? jsonSchemaOf(id, "output", output)
    : options.response_format;
  return {
    ...isSent(request) && { request_format: request },
    ...isSent(response) && { response_format: response },
  };
}

/** `null` is how an option says that there is none. */
function isSent(format: JsonInput | undefined): format is Json {
  return format !== undefined && format !== null;
}

function jsonSchemaOf(
  id: string,
  side: "input" | "output",
  schema: StandardSchema | undefined,
): Json | undefined {
  if (schema === undefined) return undefined;
  const standard = schema?.["~standard"];
  if (typeof standard?.validate !== "function") {
    const libraries = "a schema of zod, valibot, arktype or another library of Standard Schema";
    throw invalid(`${side} of ${id} must be ${libraries}, got ${show(schema)}`);
  }
  const write = standard.jsonSchema?.[side];
  if (typeof write !== "function") return undefined;
  try {
    const { $schema: _draft, ...rest } = write({ target: "draft-2020-12" }) as JsonObject;
    return rest;
  } catch (thrown) {
    const format = side === "input" ? "request_format" : "response_format";
    throw invalid(
      `${side} of ${id} cannot be written as JSON Schema: ${thrownText(thrown)}; ` +
        `set ${format}, or ${format}: null for none`,
    );
  }
}

/** The handler, with its payload and its result checked by the schemas that there are. */
export function checkedHandler(id: string, handler: Handler, options: SchemaOptions): Handler {
  const { input, output } = options;
  if (!input && !output) return handler;
  return async (payload, metadata, context) => {
    const value = input
      ? await check(input, payload, "invalid_payload", `Payload of ${id}`)
      : payload;
    const result = await handler(value as Json, metadata, context);
    return output ? await check(output, result, "invalid_result", `Result of ${id}`) : result;
  };
}

async function check(
  schema: StandardSchema,
  value: unknown,
  code: "invalid_payload" | "invalid_result",
  what: string,
): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const errors = result.issues.slice(0, ERRORS_MAX).map((issue) => ({
    path: pointerOf(issue.path ?? []).slice(0, TEXT_CHARS_MAX),
    message: String(issue.message).slice(0, TEXT_CHARS_MAX),
  }));
  const [first = { path: "", message: "" }] = errors;
  const problem = `${first.path === "" ? "" : `${first.path} `}${first.message}`;
  throw new EngineError(code, `${what} does not fit its schema: ${problem}`, {
    details: { errors },
  });
}

/** The path of an issue as a JSON Pointer, as the engine writes it. */
function pointerOf(path: NonNullable<SchemaIssue["path"]>): string {
  return path.map((part) => {
    const key = typeof part === "object" ? part.key : part;
    return `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }).join("");
}
