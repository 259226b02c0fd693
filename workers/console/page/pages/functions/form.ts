/**
 * The fields of a form, made from the JSON Schema of a payload.
 *
 * What a form cannot show (several shapes, deep nesting, no schema at all) is a field of JSON text,
 * so every schema has a form. What a person types into it is in form_draft.ts.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  isObject,
  type JsonPath,
  type Misfit,
  misfitsOf,
  resolveSchema,
  sameJson,
  typesOf,
} from "./schema_check.ts";

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
export type FormField =
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
    | { readonly kind: "list"; readonly item: FormField }
    | { readonly kind: "json" }
  );

/** A field of an object. */
export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly field: FormField;
}

/** The form of a schema; a schema that says nothing is one field of JSON. */
export function fieldOf(root: Json | undefined): FormField {
  return fieldAt({ root: root ?? true, left: FIELDS_MAX }, root ?? true, 0);
}

/** What is known while a form is made. */
interface Making {
  readonly root: Json;
  /** Fields that may still be made. */
  left: number;
}

function fieldAt(making: Making, schema: Json, level: number): FormField {
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

/**
 * What was typed: text for text, numbers, JSON, flags (`true`) and choices (JSON of the option);
 * `null` is the value null, `undefined` is left out.
 */
export type Draft = undefined | null | string | ObjectDraft | ListDraft;

/** What was typed into the fields of an object. */
export interface ObjectDraft {
  readonly kind: "object";
  /** Part of the payload even when all its fields are left out. */
  readonly given: boolean;
  readonly members: ReadonlyMap<string, Draft>;
  /** Members that have no field. */
  readonly rest: JsonObject;
}

/** What was typed into a list. */
export interface ListDraft {
  readonly kind: "list";
  readonly items: readonly Draft[];
}

/** What came of a draft. */
export interface ReadDraft {
  /** As far as it could be read; `undefined`: nothing was given. */
  readonly payload: Json | undefined;
  /** Empty when it may be sent. */
  readonly problems: readonly Misfit[];
}

/** A draft with nothing in it, or with what a value says. */
export function draftOf(field: FormField, value: Json | undefined): Draft {
  if (value === null && field.nullable) return null;
  switch (field.kind) {
    case "text":
      return value === undefined || typeof value === "string" ? value : JSON.stringify(value);
    case "number":
    case "flag":
    case "choice":
      return value === undefined ? undefined : JSON.stringify(value);
    case "json":
      return value === undefined ? undefined : JSON.stringify(value, null, 2);
    case "list":
      if (!Array.isArray(value)) return undefined;
      return { kind: "list", items: value.map((each) => draftOf(field.item, each)) };
    case "object":
      return objectDraft(field.members, value);
  }
}

/** Whether a value can be shown as a form and comes out of it unchanged. */
export function fitsForm(field: FormField, value: Json): boolean {
  return sameJson(readField(field, draftOf(field, value), true, [], []), value);
}

/** The payload of a draft, checked against the whole schema. */
export function readDraft(root: Json | undefined, field: FormField, draft: Draft): ReadDraft {
  const problems: Misfit[] = [];
  const payload = readField(field, draft, true, [], problems);
  // The engine takes a payload that is left out as null.
  const misfits = root === undefined ? [] : misfitsOf(root, payload ?? null);
  const known = problems.map((problem) => placeName(problem.path));
  const others = misfits.filter(({ path }) => !known.includes(placeName(path)));
  return { payload, problems: [...problems, ...others] };
}

/** The draft with another value at a place; places that are not there are made. */
export function withDraft(field: FormField, draft: Draft, path: JsonPath, value: Draft): Draft {
  const [part, ...rest] = path;
  if (part === undefined) return value;
  if (field.kind === "object") {
    const object = (draft ?? draftOf(field, undefined)) as ObjectDraft;
    const member = field.members.find(({ name }) => name === part);
    if (!member) return draft;
    const inner = withDraft(member.field, object.members.get(member.name), rest, value);
    return { ...object, members: new Map(object.members).set(member.name, inner) };
  }
  if (field.kind !== "list" || typeof part !== "number") return draft;
  const items = [...(draft as ListDraft | undefined)?.items ?? []];
  items[part] = withDraft(field.item, items[part], rest, value);
  return { kind: "list", items };
}

/** The problem of one place, if there is one. */
export function problemAt(problems: readonly Misfit[], path: JsonPath): string | undefined {
  return problems.find((problem) =>
    problem.path.length === path.length && problem.path.every((part, i) => part === path[i])
  )?.message;
}

/** A place in words, such as `items[2].name`; the root is `payload`. */
export function placeName(path: JsonPath): string {
  const text = path.map((part) => typeof part === "number" ? `[${part}]` : `.${part}`).join("");
  return text === "" ? "payload" : text.replace(/^\./, "");
}

function objectDraft(members: readonly Member[], value: Json | undefined): Draft {
  if (value !== undefined && !isObject(value)) return undefined;
  const rest = { ...value };
  const drafts = new Map<string, Draft>();
  for (const { name, field } of members) {
    const has = value !== undefined && Object.hasOwn(value, name);
    drafts.set(name, draftOf(field, has ? value[name] : undefined));
    delete rest[name];
  }
  return { kind: "object", given: value !== undefined, members: drafts, rest };
}

function readField(
  field: FormField,
  draft: Draft,
  required: boolean,
  path: JsonPath,
  problems: Misfit[],
): Json | undefined {
  if (draft === undefined && field.kind !== "object") return undefined;
  if (draft === null) return null;
  switch (field.kind) {
    case "text":
      return draft as string;
    case "number":
      return readNumber(draft as string, field.isWhole, path, problems);
    case "flag":
    case "choice":
    case "json":
      return readJson(draft as string, path, problems);
    case "list":
      return (draft as ListDraft).items.map((item, i) =>
        readField(field.item, item, true, [...path, i], problems) ??
          missing([...path, i], problems)
      );
    case "object":
      return readObject(field.members, draft as ObjectDraft | undefined, required, path, problems);
  }
}

function readObject(
  members: readonly Member[],
  draft: ObjectDraft | undefined,
  required: boolean,
  path: JsonPath,
  problems: Misfit[],
): Json | undefined {
  const value: [string, Json][] = Object.entries(draft?.rest ?? {});
  const before = problems.length;
  for (const { name, required, field } of members) {
    const read = readField(field, draft?.members.get(name), required, [...path, name], problems);
    if (read !== undefined) value.push([name, read]);
  }
  const isEmpty = value.length === 0 && problems.length === before;
  return isEmpty && !required && !draft?.given ? undefined : Object.fromEntries(value);
}

function readNumber(
  text: string,
  isWhole: boolean,
  path: JsonPath,
  problems: Misfit[],
): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : NaN;
  const digits = /^[+-]?\d+$/.test(trimmed);
  if (!Number.isFinite(number)) problems.push({ path, message: "must be a number" });
  else if (digits && !Number.isSafeInteger(number)) {
    problems.push({ path, message: "has more digits than a number in JSON keeps" });
  } else if (isWhole && !Number.isInteger(number)) {
    problems.push({ path, message: "must be a whole number" });
  } else return Object.is(number, -0) ? 0 : number;
  return undefined;
}

function readJson(text: string, path: JsonPath, problems: Misfit[]): Json | undefined {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch (thrown) {
    problems.push({ path, message: `is not JSON: ${(thrown as Error).message}` });
    return undefined;
  }
}

function missing(path: JsonPath, problems: Misfit[]): Json {
  if (!problems.some((problem) => problem.path.join("/") === path.join("/"))) {
    problems.push({ path, message: "is empty; fill it in or remove it" });
  }
  return null;
}
