/**
 * Checks what comes into a built-in worker, and words what does not fit.
 *
 * A payload that does not fit fails its call. Problems of a configuration are reported in the words
 * of config.yaml's other problems, so they leave here as data ({@linkcode ConfigIssue}).
 *
 * @module
 */
import * as v from "./schema.ts";
import type { ConfigIssue } from "../../engine/ports/config.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** A longer payload is not sent back with the error. */
const RECEIVED_CHARS_MAX = 2_000;
/** Problems named in one message. */
const PROBLEMS_MAX = 10;

/** A configuration does not fit its schema. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** All that is wrong, in the order of the schema. */
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map(({ path, expected }) => `${pathOf(path)}: expected ${expected}`).join("; "));
    this.issues = issues;
  }
}

/**
 * The payload as its schema says it is.
 *
 * @throws {EngineError} `deserialization_error`, `Failed to deserialize input for <id>: …`, which
 * names the path of everything that does not fit. `details.received` is the payload, or the
 * beginning of its JSON if that is long.
 */
export function fit<Output>(
  function_id: string,
  schema: v.Schema<Output>,
  payload: unknown,
): Output {
  const read = v.safeParse(schema, payload);
  if (read.success) return read.output;
  const problems = problemsOf(read.issues, payload);
  const message = `Failed to deserialize input for ${function_id}: ${problems.join("; ")}`;
  throw new EngineError("deserialization_error", message, {
    details: { received: shorten(payload) },
  });
}

/**
 * The configuration of a built-in worker as its schema says it is; absent means empty.
 *
 * @throws {SchemaError} With every problem.
 */
export function fitConfig<Output>(schema: v.Schema<Output>, raw: unknown): Output {
  const read = v.safeParse(schema, raw ?? {});
  if (read.success) return read.output;
  throw new SchemaError(read.issues.map(configIssue));
}

/** What is wrong with a value, one text per problem: `config.port: expected number, …`. */
export function problemsOf(
  issues: readonly v.BaseIssue<unknown>[],
  value: unknown,
): string[] {
  const texts = issues.slice(0, PROBLEMS_MAX).map((issue) => {
    const keys = keysOf(issue);
    const problem = payloadProblem(issue, keys.reduce(memberOf, value));
    return keys.length === 0 ? problem : `${pathOf(keys)}: ${problem}`;
  });
  const more = issues.length - texts.length;
  return more > 0 ? [...texts, `and ${more} more`] : texts;
}

/** Names of types: in problems of payloads, and in those of config.yaml. */
const TYPES: Readonly<Record<string, readonly [payload: string, config: string]>> = {
  string: ["string", "a string"],
  number: ["number", "a number"],
  safe_integer: ["int", "a whole number"],
  boolean: ["boolean", "true or false"],
  null: ["null", "null"],
  array: ["array", "a list"],
  tuple: ["tuple", "a list"],
  object: ["object", "a mapping"],
  object_with_rest: ["object", "a mapping"],
  loose_object: ["object", "a mapping"],
  record: ["record", "a mapping"],
};

function payloadProblem(issue: v.BaseIssue<unknown>, received: unknown): string {
  if (issue.type === "never") return "unknown key";
  if (hasOwnText(issue)) return issue.message;
  const type = TYPES[issue.type]?.[0];
  if (type) return `expected ${type}, received ${nameOf(received)}`;
  const bound = boundOf(issue);
  if (bound) {
    const [word, sign] = bound === "least" ? ["small", ">="] : ["big", "<="];
    const [sort, unit] = typeof issue.input === "string"
      ? ["string to have", " characters"]
      : Array.isArray(issue.input)
      ? ["array to have", " items"]
      : ["number to be", ""];
    return `Too ${word}: expected ${sort} ${sign}${issue.requirement}${unit}`;
  }
  return `expected ${issue.expected}, received ${nameOf(received)}`;
}

function configIssue(issue: v.BaseIssue<unknown>): ConfigIssue {
  const path = keysOf(issue);
  if (issue.type === "never") return { path, expected: "a known key", received: "an unknown key" };
  if (hasOwnText(issue)) return { path, expected: issue.message.replace(/^expected /, "") };
  const bound = boundOf(issue);
  if (issue.type === "regex") return { path, expected: `a string that matches ${issue.expected}` };
  const choices = (issue.expected ?? "a valid value").replaceAll(/["()]/g, "").split(" | ");
  const expected = TYPES[issue.type]?.[1] ??
    (bound ? `at ${bound} ${issue.requirement}` : undefined) ??
    (choices.length > 1 ? `one of ${choices.join(", ")}` : issue.expected!);
  return { path, expected };
}

/** Whether the schema says itself what it expects. */
function hasOwnText({ message }: v.BaseIssue<unknown>): boolean {
  return !message.startsWith("Invalid ");
}

function boundOf({ type }: v.BaseIssue<unknown>): "least" | "most" | undefined {
  return /^min_(value|length)$/.test(type)
    ? "least"
    : /^max_(value|length)$/.test(type)
    ? "most"
    : undefined;
}

function keysOf({ path }: v.BaseIssue<unknown>): (string | number)[] {
  return (path ?? []).map(({ key }) => key as string | number);
}

function pathOf(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? part : `${text}.${part}`;
  }, "");
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object" && Object.hasOwn(value, key)
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}

function nameOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? String(value) : typeof value;
}

/** The payload, or the start of its JSON; the work is bounded, however large it is. */
function shorten(payload: unknown): Json {
  if (isShort(payload, { charsLeft: RECEIVED_CHARS_MAX })) return payload as Json ?? null;
  return `${jsonStart(payload, RECEIVED_CHARS_MAX)}…`;
}

/** Whether the JSON of a value has no more characters than are left; stops at the first more. */
function isShort(value: unknown, budget: { charsLeft: number }): boolean {
  if (typeof value === "string") {
    budget.charsLeft -= value.length > budget.charsLeft ? value.length : sizeOf(value);
  } else if (value === null || typeof value !== "object") budget.charsLeft -= sizeOf(value ?? null);
  else {
    budget.charsLeft -= 2;
    for (const [name, member] of membersOf(value)) {
      budget.charsLeft -= name === undefined ? 1 : name.length + 4;
      if (budget.charsLeft < 0 || !isShort(member, budget)) return false;
    }
  }
  return budget.charsLeft >= 0;
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}

/** The start of the JSON of a value, with about as many characters as asked for. */
function jsonStart(value: unknown, charsMax: number): string {
  if (value === null || typeof value !== "object") {
    const short = typeof value === "string" ? value.slice(0, charsMax) : value;
    return JSON.stringify(short ?? null).slice(0, charsMax);
  }
  const isList = Array.isArray(value);
  let text = isList ? "[" : "{";
  for (const [name, member] of membersOf(value)) {
    if (text.length > 1) text += ",";
    if (name !== undefined) text += `${jsonStart(name, charsMax)}:`;
    text += jsonStart(member, charsMax - text.length);
    if (text.length >= charsMax) break;
  }
  return `${text}${isList ? "]" : "}"}`.slice(0, charsMax);
}

/** Members with their names, or items; a loop over the keys of a list would collect them first. */
function* membersOf(value: object): Generator<[name: string | undefined, member: unknown]> {
  if (Array.isArray(value)) { for (const item of value) yield [undefined, item]; }
  else for (const name in value) yield [name, (value as Record<string, unknown>)[name]];
}
