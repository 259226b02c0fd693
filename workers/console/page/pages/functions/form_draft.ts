/**
 * What a person typed into a form, bad or not, and the payload that comes of it.
 *
 * A draft is never changed: a keystroke makes another one.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { Field, Member } from "./schema_form.ts";
import { isObject, type JsonPath, type Misfit, misfitsOf, sameJson } from "./schema_fit.ts";

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
export function draftOf(field: Field, value: Json | undefined): Draft {
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
export function fitsForm(field: Field, value: Json): boolean {
  return sameJson(readField(field, draftOf(field, value), true, [], []), value);
}

/** The payload of a draft, checked against the whole schema. */
export function readDraft(root: Json | undefined, field: Field, draft: Draft): ReadDraft {
  const problems: Misfit[] = [];
  const payload = readField(field, draft, true, [], problems);
  // The engine takes a payload that is left out as null.
  const misfits = root === undefined ? [] : misfitsOf(root, payload ?? null);
  const known = problems.map((problem) => placeName(problem.path));
  const others = misfits.filter(({ path }) => !known.includes(placeName(path)));
  return { payload, problems: [...problems, ...others] };
}

/** The draft with another value at a place; places that are not there are made. */
export function withDraft(field: Field, draft: Draft, path: JsonPath, value: Draft): Draft {
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
  field: Field,
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
