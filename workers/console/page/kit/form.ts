/**
 * Forms for JSON values: fields from a JSON Schema, drafts of what is typed into them, and the
 * value that a draft makes.
 *
 * What a form cannot show (several alternatives, deep nesting, no schema) is a field of JSON text,
 * so every schema has a form. Drafts are immutable: each key press makes another one. A form of a
 * stored value (`isStored`) also knows secrets, which it has only masked, and references such as
 * `${PORT:8080}` in the place of any value.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import {
  type JsonPath,
  resolveSchema,
  typesOf,
  validate,
  type ValidationError,
} from "./schema_check.ts";
import { isObject, objectOf, sameJson } from "./json.ts";

/** Levels of fields; what is deeper is a field of JSON text. */
const LEVELS_MAX = 5;
/** Texts that may be longer get a text area. */
const LINE_CHARS_MAX = 120;
/** Fields of one form; further ones are fields of JSON text. */
const FIELDS_MAX = 1_000;
/** An enum with more options is a field of JSON text. */
const OPTIONS_MAX = 200;

/** Stands for a secret in values that are shown, and keeps it in values that are set. */
export const MASKED = "[redacted]";
/** Alternatives that are searched for the mark of a secret, each with its own. */
const BRANCH_LEVELS_MAX = 8;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  boolean: "yes or no",
  array: "list",
  object: "fields",
};

/** A field of a form. */
export type FormField =
  & {
    readonly description: string;
    /** Such as `integer, 1 to 100`. */
    readonly hint: string;
    /** The schema's `format`; empty: none. */
    readonly format: string;
    /** The schema's `default`. */
    readonly preset: Json | undefined;
    /** Whether it may be `null`. */
    readonly nullable: boolean;
    /** Of a stored value: a secret, which the form has only masked. */
    readonly isSecret: boolean;
    /** Of a stored value: it may be a reference, although it is no text. */
    readonly mayRefer: boolean;
  }
  & (
    | { readonly kind: "text"; readonly isLong: boolean }
    | { readonly kind: "number"; readonly isWhole: boolean }
    | { readonly kind: "flag" }
    | { readonly kind: "choice"; readonly options: readonly Json[] }
    | {
      readonly kind: "object";
      readonly members: readonly Member[];
      /** Of a stored value: the schema says what further members may be. */
      readonly takesMore: boolean;
    }
    | { readonly kind: "list"; readonly item: FormField }
    | { readonly kind: "json" }
  );

/** A field of an object. */
interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly field: FormField;
}

/** What a form is for. */
export interface FormRules {
  /** A value that is kept, with its secrets masked and with references. @default false */
  readonly isStored?: boolean;
}

/** The form of a schema; without a schema, one field of JSON text. */
export function fieldOf(root: Json | undefined, { isStored = false }: FormRules = {}): FormField {
  return fieldAt({ root: root ?? true, isStored, left: FIELDS_MAX }, root ?? true, 0);
}

/** The state while a form is made. */
interface Making {
  readonly root: Json;
  readonly isStored: boolean;
  /** How many more fields may be made. */
  left: number;
}

function fieldAt(making: Making, schema: Json, level: number): FormField {
  const { root, isStored } = making;
  const resolved = making.left-- > 0 ? resolveSchema(root, schema) : true;
  if (typeof resolved === "boolean") return { ...bare({}, false), kind: "json" };
  const { schema: plain, nullable } = withoutNull(root, flat(root, resolved));
  const isSecret = isStored && isSecretIn(root, resolved, 0);
  const about = { ...bare(plain, nullable), isSecret, mayRefer: isStored };
  const options = optionsOf(plain);
  if (options) return { ...about, kind: "choice", options };
  const types = typesOf(plain);
  const type = types.length === 1 ? types[0] : impliedType(plain);
  switch (type) {
    case "string": {
      const { maxLength } = plain;
      const isLong = typeof maxLength === "number" && maxLength > LINE_CHARS_MAX;
      return { ...about, mayRefer: false, kind: "text", isLong };
    }
    case "integer":
    case "number":
      return { ...about, kind: "number", isWhole: type === "integer" };
    case "boolean":
      return { ...about, kind: "flag" };
    case "array":
      if (level >= LEVELS_MAX || Array.isArray(plain["prefixItems"])) break;
      return {
        ...about,
        mayRefer: false,
        kind: "list",
        item: fieldAt(making, plain["items"] ?? true, level + 1),
      };
    case "object": {
      const { properties } = plain;
      if (level >= LEVELS_MAX || !isObject(properties)) break;
      const members = membersOf(making, plain, properties, level);
      const takesMore = isStored && takesMembers(plain);
      return { ...about, mayRefer: false, kind: "object", members, takesMore };
    }
  }
  return { ...about, mayRefer: false, kind: "json" };
}

/** Whether the schema describes members beside its properties. */
function takesMembers({ additionalProperties: more, patternProperties }: JsonObject): boolean {
  return more === true || isObject(more) || isObject(patternProperties);
}

/** Whether the schema, or a branch of it, marks what it describes as a secret. */
function isSecretIn(root: Json, schema: Json | undefined, level: number): boolean {
  const resolved = resolveSchema(root, schema);
  if (typeof resolved === "boolean" || level > BRANCH_LEVELS_MAX) return false;
  if (resolved["x-secret"] === true) return true;
  const lists = ["allOf", "anyOf", "oneOf"].flatMap((name) => asList(resolved[name]));
  const others = ["if", "then", "else", "not"].flatMap((name) => resolved[name] ?? []);
  return [...lists, ...others].some((branch) => isSecretIn(root, branch, level + 1));
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

/** Merges `allOf` into the schema, as far as a form needs it. */
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

/** Removes the alternative `null` from a schema. */
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
  format: string;
  preset: Json | undefined;
  nullable: boolean;
  isSecret: boolean;
  mayRefer: boolean;
} {
  const { description, title, default: preset, format: named } = schema;
  const format = typeof named === "string" ? named : "";
  const text = [description, title].find((each) => typeof each === "string") as string | undefined;
  const rest = { isSecret: false, mayRefer: false };
  return { description: text ?? "", hint: hintOf(schema), format, preset, nullable, ...rest };
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
 * The draft of a field: texts as they are; numbers and JSON as typed; flags and choices as JSON;
 * `null`: the value null; `undefined`: left out.
 */
export type Draft =
  | undefined
  | null
  | string
  | ObjectDraft
  | ListDraft
  | KeptDraft
  | ReferenceDraft;

/** The draft of an object. */
export interface ObjectDraft {
  readonly kind: "object";
  /** Whether the object is part of the payload even if all its fields are left out. */
  readonly given: boolean;
  readonly members: ReadonlyMap<string, Draft>;
  /** Members without a field. */
  readonly rest: JsonObject;
  /** The same as JSON text, once it was edited. */
  readonly restText?: string;
}

/** The draft of a secret that stays as it is. */
export interface KeptDraft {
  readonly kind: "kept";
  /** Where it was; it cannot be kept elsewhere. */
  readonly at: string;
}

/** The draft of a value that is no text, but refers to one. */
export interface ReferenceDraft {
  readonly kind: "reference";
  readonly text: string;
}

/** The draft of a list. */
export interface ListDraft {
  readonly kind: "list";
  readonly items: readonly Draft[];
}

/** A draft that was read. */
export interface ReadDraft {
  /** As far as it could be read; `undefined`: left out. */
  readonly payload: Json | undefined;
  /** Empty when the payload may be sent. */
  readonly problems: readonly ValidationError[];
}

/** The draft of a value; without a value, an empty one. `path`: where the value stands. */
export function draftOf(field: FormField, value: Json | undefined, path: JsonPath = []): Draft {
  if (value === null && field.nullable) return null;
  if (field.isSecret && value === MASKED) return { kind: "kept", at: JSON.stringify(path) };
  if (field.mayRefer && isReference(value)) return { kind: "reference", text: value };
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
      return {
        kind: "list",
        items: value.map((each, i) => draftOf(field.item, each, [...path, i])),
      };
    case "object":
      return objectDraft(field.members, value, path);
  }
}

/** Whether a value is a text that refers to something, such as `${PORT:8080}`. */
export function isReference(value: Json | undefined): value is string {
  return typeof value === "string" && /\$\{[^}]*\}/.test(value);
}

/** Whether the form can show a value without loss. */
export function fitsForm(field: FormField, value: Json): boolean {
  return sameJson(readField(field, draftOf(field, value), true, [], []), value);
}

/** The payload of a draft and its errors, those of the schema included. */
export function readDraft(
  root: Json | undefined,
  field: FormField,
  draft: Draft,
  rules: FormRules = {},
): ReadDraft {
  const problems: ValidationError[] = [];
  const payload = readField(field, draft, true, [], problems);
  // The engine takes a missing payload as null.
  const errors = root === undefined ? [] : checkValue(root, payload ?? null, rules);
  const known = problems.map((problem) => pathText(problem.path));
  const others = errors.filter(({ path }) => !known.includes(pathText(path)));
  return { payload, problems: [...problems, ...others] };
}

/** Violations of the schema; what only the engine can check in a stored value is left to it. */
export function checkValue(
  root: Json,
  value: Json,
  { isStored = false }: FormRules,
): ValidationError[] {
  return validate(root, value, isStored ? (it) => it === MASKED || isReference(it) : undefined);
}

/** The draft with another value at a path; missing parents are made. */
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

/** The error at a path, if there is one. */
export function errorAt(problems: readonly ValidationError[], path: JsonPath): string | undefined {
  return problems.find((problem) =>
    problem.path.length === path.length && problem.path.every((part, i) => part === path[i])
  )?.message;
}

/** A path as text, such as `items[2].name`; `root` names the whole value. */
export function pathText(path: JsonPath, root = "payload"): string {
  const text = path.map((part) => typeof part === "number" ? `[${part}]` : `.${part}`).join("");
  return text === "" ? root : text.replace(/^\./, "");
}

/** The value without the texts that were typed in the place of secrets, for people to look at. */
export function withoutSecrets(field: FormField, value: Json): Json {
  if (field.isSecret) return value === MASKED || value === null ? value : "[new secret]";
  if (field.kind === "list" && Array.isArray(value)) {
    return value.map((item) => withoutSecrets(field.item, item));
  }
  if (field.kind !== "object" || !isObject(value)) return value;
  const shown = { ...value };
  for (const { name, field: member } of field.members) {
    if (Object.hasOwn(shown, name)) shown[name] = withoutSecrets(member, shown[name]!);
  }
  return shown;
}

/**
 * Errors as the engine has them, at the fields that a form has for them: what is inside a field of
 * JSON text is reported there, with the rest of its path.
 */
export function placeErrors(
  field: FormField,
  value: Json,
  errors: readonly { readonly path: string; readonly message: string }[],
): ValidationError[] {
  return errors.map(({ path: pointer, message }) => {
    const missing = /^must have required property '(.+)'$/.exec(message)?.[1];
    const parts = pointer.split("/").slice(1)
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    if (missing !== undefined) parts.push(missing);
    const text = missing === undefined ? message : "is required";
    const path: (string | number)[] = [];
    let at: FormField | undefined = field;
    let inside: Json | undefined = value;
    while (at !== undefined && path.length < parts.length) {
      const part: string = parts[path.length]!;
      const next: FormField | undefined = childOf(at, part);
      if (next === undefined) break;
      path.push(Array.isArray(inside) ? Number(part) : part);
      inside = Array.isArray(inside) ? inside[Number(part)] : objectOf(inside)[part];
      at = next;
    }
    const rest = parts.slice(path.length);
    return { path, message: rest.length > 0 ? `${pathText(rest)} ${text}` : text };
  });
}

function childOf(field: FormField, part: string): FormField | undefined {
  if (field.kind === "list") return /^\d+$/.test(part) ? field.item : undefined;
  if (field.kind !== "object") return undefined;
  return field.members.find(({ name }) => name === part)?.field;
}

function objectDraft(
  members: readonly Member[],
  value: Json | undefined,
  path: JsonPath,
): Draft {
  if (value !== undefined && !isObject(value)) return undefined;
  const rest = { ...value };
  const drafts = new Map<string, Draft>();
  for (const { name, field } of members) {
    const has = value !== undefined && Object.hasOwn(value, name);
    drafts.set(name, draftOf(field, has ? value[name] : undefined, [...path, name]));
    delete rest[name];
  }
  return { kind: "object", given: value !== undefined, members: drafts, rest };
}

function readField(
  field: FormField,
  draft: Draft,
  required: boolean,
  path: JsonPath,
  problems: ValidationError[],
): Json | undefined {
  if (draft === undefined && field.kind !== "object") return undefined;
  if (draft === null) return null;
  if (isDraftOf(draft, "kept")) return readKept(draft, path, problems);
  if (isDraftOf(draft, "reference")) return readReference(draft.text, path, problems);
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
          reportMissing([...path, i], problems)
      );
    case "object":
      return readObject(field.members, draft as ObjectDraft | undefined, required, path, problems);
  }
}

/** Whether a draft is of a kind. */
export function isDraftOf<K extends "kept" | "reference">(
  draft: Draft,
  kind: K,
): draft is Extract<Draft, { readonly kind: K }> {
  return typeof draft === "object" && draft?.kind === kind;
}

function readKept({ at }: KeptDraft, path: JsonPath, problems: ValidationError[]): Json {
  if (at !== JSON.stringify(path)) {
    problems.push({ path, message: "cannot be kept, since the list has changed; enter it again" });
  }
  return MASKED;
}

function readReference(text: string, path: JsonPath, problems: ValidationError[]): Json {
  if (!isReference(text)) {
    problems.push({ path, message: "must have a reference, such as ${NAME:default}" });
  }
  return text;
}

/** The members without a field, as they were or as they were typed. */
function readRest(
  { rest, restText }: ObjectDraft,
  path: JsonPath,
  problems: ValidationError[],
): JsonObject {
  if (restText === undefined) return rest;
  const parsed = readJson(restText, path, problems);
  if (parsed === undefined || isObject(parsed)) return parsed ?? {};
  problems.push({ path, message: "can only have further members, as a JSON object" });
  return rest;
}

function readObject(
  members: readonly Member[],
  draft: ObjectDraft | undefined,
  required: boolean,
  path: JsonPath,
  problems: ValidationError[],
): Json | undefined {
  const before = problems.length;
  const value: [string, Json][] = Object.entries(draft ? readRest(draft, path, problems) : {});
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
  problems: ValidationError[],
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

function readJson(text: string, path: JsonPath, problems: ValidationError[]): Json | undefined {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch (thrown) {
    problems.push({ path, message: `is not JSON: ${(thrown as Error).message}` });
    return undefined;
  }
}

function reportMissing(path: JsonPath, problems: ValidationError[]): Json {
  if (!problems.some((problem) => problem.path.join("/") === path.join("/"))) {
    problems.push({ path, message: "is empty; fill it in or remove it" });
  }
  return null;
}
