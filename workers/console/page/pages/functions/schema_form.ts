/**
 * The fields of a form, made from the JSON Schema of a payload.
 *
 * What a form cannot show (several shapes, deep nesting, no schema at all) is a field of JSON text,
 * so every schema has a form. What a person types into it is in form_draft.ts.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject, resolveSchema, typesOf } from "./schema_fit.ts";

/** Fields within fields; what lies deeper is JSON text. */
const LEVELS_MAX = 5;
/** Longest text that goes into one line. */
const LINE_CHARS_MAX = 120;
/** Fields of one form; further ones are JSON text. */
const FIELDS_MAX = 1_000;
/** Options up to this many are a choice. */
const OPTIONS_MAX = 200;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  boolean: "yes or no",
  array: "list",
  object: "fields",
};

/** One thing that a schema asks for. */
export type Field =
  & {
    readonly description: string;
    /** What else a person should know, such as `integer, 1 to 100`. */
    readonly hint: string;
    /** What holds when it is left out, as the schema says; `undefined`: it does not say. */
    readonly preset: Json | undefined;
    /** May be `null`. */
    readonly nullable: boolean;
  }
  & (
    | { readonly kind: "text"; readonly isLong: boolean }
    | { readonly kind: "number"; readonly isWhole: boolean }
    | { readonly kind: "flag" }
    | { readonly kind: "choice"; readonly options: readonly Json[] }
    | { readonly kind: "object"; readonly members: readonly Member[] }
    | { readonly kind: "list"; readonly item: Field }
    | { readonly kind: "json" }
  );

/** A field of an object. */
export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly field: Field;
}

/** The form of a schema; a schema that says nothing is one field of JSON. */
export function fieldOf(root: Json | undefined): Field {
  return fieldAt({ root: root ?? true, left: FIELDS_MAX }, root ?? true, 0);
}

/** What is known while a form is made. */
interface Making {
  readonly root: Json;
  /** Fields that may still be made. */
  left: number;
}

function fieldAt(making: Making, schema: Json, level: number): Field {
  const { root } = making;
  const resolved = making.left-- > 0 ? resolveSchema(root, schema) : true;
  if (typeof resolved === "boolean") return { ...bare({}, false), kind: "json" };
  const { schema: plain, nullable } = withoutNull(root, flat(root, resolved));
  const about = bare(plain, nullable);
  const options = optionsOf(plain);
  if (options) return { ...about, kind: "choice", options };
  const types = typesOf(plain);
  const type = types.length === 1 ? types[0] : impliedType(plain);
  switch (type) {
    case "string": {
      const { maxLength } = plain;
      const isLong = typeof maxLength === "number" && maxLength > LINE_CHARS_MAX;
      return { ...about, kind: "text", isLong };
    }
    case "integer":
    case "number":
      return { ...about, kind: "number", isWhole: type === "integer" };
    case "boolean":
      return { ...about, kind: "flag" };
    case "array":
      if (level >= LEVELS_MAX || Array.isArray(plain["prefixItems"])) break;
      return { ...about, kind: "list", item: fieldAt(making, plain["items"] ?? true, level + 1) };
    case "object": {
      const { properties } = plain;
      if (level >= LEVELS_MAX || !isObject(properties)) break;
      return { ...about, kind: "object", members: membersOf(making, plain, properties, level) };
    }
  }
  return { ...about, kind: "json" };
}

function membersOf(
  making: Making,
  schema: JsonObject,
  properties: JsonObject,
  level: number,
): Member[] {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).map(([name, property]) => ({
    name,
    required: required.includes(name),
    field: fieldAt(making, property, level + 1),
  }));
}

/** `allOf` taken together with what stands beside it, as far as a form needs it. */
function flat(root: Json, schema: JsonObject): JsonObject {
  const { allOf, ...beside } = schema;
  if (!Array.isArray(allOf)) return schema;
  return [beside, ...allOf].reduce<JsonObject>((all, part) => {
    const resolved = resolveSchema(root, part);
    if (typeof resolved === "boolean") return all;
    return {
      ...resolved,
      ...all,
      ...(isObject(all["properties"]) || isObject(resolved["properties"])) && {
        properties: { ...asObject(all["properties"]), ...asObject(resolved["properties"]) },
        required: [...asList(all["required"]), ...asList(resolved["required"])],
      },
    };
  }, {});
}

/** A shape or null, as the shape alone; other alternatives stay as they are. */
function withoutNull(root: Json, schema: JsonObject): { schema: JsonObject; nullable: boolean } {
  const types = typesOf(schema);
  if (types.includes("null") && types.length > 1) {
    return { schema: { ...schema, type: types.filter((type) => type !== "null") }, nullable: true };
  }
  for (const name of ["anyOf", "oneOf"]) {
    const branches = asList(schema[name]).map((branch) => resolveSchema(root, branch));
    const real = branches.filter((branch) => !isObject(branch) || branch["type"] !== "null");
    const [only] = real;
    if (real.length !== 1 || !isObject(only)) continue;
    const { [name]: _, ...beside } = schema;
    return { schema: { ...flat(root, only), ...beside }, nullable: branches.length > 1 };
  }
  return { schema, nullable: types.length === 0 && !schema["enum"] && schema["const"] === null };
}

function optionsOf(schema: JsonObject): readonly Json[] | undefined {
  const { enum: options, const: only, anyOf, oneOf } = schema;
  if (only !== undefined) return [only];
  if (Array.isArray(options)) return options.length <= OPTIONS_MAX ? options : undefined;
  const branches = asList(oneOf ?? anyOf);
  const values = branches.flatMap((branch) => isObject(branch) ? branch["const"] ?? [] : []);
  const isChoice = branches.length > 0 && values.length === branches.length;
  return isChoice ? values as Json[] : undefined;
}

function impliedType(schema: JsonObject): string | undefined {
  if (isObject(schema["properties"])) return "object";
  return typesOf(schema).length === 0 && schema["items"] !== undefined ? "array" : undefined;
}

function bare(schema: JsonObject, nullable: boolean): {
  description: string;
  hint: string;
  preset: Json | undefined;
  nullable: boolean;
} {
  const { description, title, default: preset } = schema;
  const text = [description, title].find((each) => typeof each === "string") as string | undefined;
  return { description: text ?? "", hint: hintOf(schema), preset, nullable };
}

function hintOf(schema: JsonObject): string {
  const { minimum, maximum, minLength, maxLength, pattern, format } = schema;
  const shown = (bound: Json | undefined): bound is number =>
    typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  return [
    ...typesOf(schema).map((type) => TYPE_WORDS[type] ?? type),
    ...typeof format === "string" ? [format] : [],
    ...shown(minimum) && shown(maximum)
      ? [`${minimum} to ${maximum}`]
      : shown(minimum)
      ? [`at least ${minimum}`]
      : shown(maximum)
      ? [`at most ${maximum}`]
      : [],
    ...shown(minLength) && minLength > 1 ? [`at least ${minLength} characters`] : [],
    ...shown(maxLength) ? [`at most ${maxLength} characters`] : [],
    ...typeof pattern === "string" ? [`like ${pattern.slice(0, 60)}`] : [],
  ].join(", ");
}

function asObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function asList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
