/**
 * The payload of a call, from arguments of the command line.
 *
 * A field is `key=value`; the value is JSON if it parses as JSON, else text. Dots in the key nest:
 * `user.name=Ann` is `{"user":{"name":"Ann"}}`; `\.` is a dot. A number that JavaScript cannot hold
 * exactly is an error.
 *
 * @module
 */
import type { Json, JsonObject } from "../mod.ts";
import { UsageError } from "./failure.ts";

/** Where the parts of a payload come from. */
export interface PayloadSources {
  /** Arguments such as `a=2`, in their order. */
  readonly fields: readonly string[];
  /** `--payload`: JSON, `@file`, or `-` for standard input. */
  readonly payload: string | undefined;
  /** Name of the option, for errors. Default: `--payload`. */
  readonly option?: string | undefined;
  /** Reads a file, relative to the current directory. */
  readFile(path: string): Promise<string>;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
}

/**
 * The payload of a call: `--payload` if given, with the fields set on top; `{}` without either.
 *
 * @throws {UsageError} When a part is invalid, with that part in the message.
 */
export async function readPayload(sources: PayloadSources): Promise<Json> {
  const { fields, payload } = sources;
  if (payload === undefined) return withFields({}, fields);
  const { option = "--payload" } = sources;
  const whole = parseWhole(await textOf(payload, option, sources), payload, option);
  if (fields.length === 0) return whole;
  if (whole === null || typeof whole !== "object" || Array.isArray(whole)) {
    throw new UsageError(`Fields such as ${fields[0]} need a ${option} that is an object`);
  }
  return withFields(whole, fields);
}

/**
 * Sets `key=value` fields in an object and returns it.
 *
 * @throws {UsageError} For a field without `=`, an empty key, a key given twice.
 */
export function withFields(target: JsonObject, fields: readonly string[]): JsonObject {
  const given = new Set<string>();
  for (const field of fields) {
    const equals = field.indexOf("=");
    if (equals < 0) {
      throw new UsageError(`Not a field: ${field}; write key=value, such as a=2`);
    }
    const path = splitKey(field.slice(0, equals), field);
    const name = JSON.stringify(path);
    if (given.has(name)) throw new UsageError(`Given twice: ${field.slice(0, equals)}`);
    given.add(name);
    setAt(target, path, parseValue(field.slice(equals + 1)), field, given);
  }
  return target;
}

function splitKey(key: string, field: string): string[] {
  const parts = key.split(/(?<!\\)\./).map((part) => part.replaceAll("\\.", "."));
  if (parts.includes("")) throw new UsageError(`Not a field: ${field}; a part of its key is empty`);
  return parts;
}

function setAt(
  target: JsonObject,
  path: readonly string[],
  value: Json,
  field: string,
  given: ReadonlySet<string>,
): void {
  let place = target;
  path.slice(0, -1).forEach((part, depth) => {
    const next = Object.hasOwn(place, part) ? place[part] : undefined;
    if (next === null || typeof next !== "object" || Array.isArray(next)) {
      const upTo = path.slice(0, depth + 1);
      if (given.has(JSON.stringify(upTo))) {
        throw new UsageError(`${field} has no place: ${upTo.join(".")} is not an object`);
      }
      define(place, part, {});
    }
    place = place[part] as JsonObject;
  });
  const last = path.at(-1)!;
  const isNested = [...given].some((name) => {
    const other = JSON.parse(name) as string[];
    return other.length > path.length && path.every((part, i) => part === other[i]);
  });
  if (isNested) throw new UsageError(`${field} would replace fields that were given before it`);
  define(place, last, value);
}

/** Defines a property; assigning to `__proto__` would set the prototype. */
function define(target: JsonObject, key: string, value: Json): void {
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

/**
 * A value as it is typed: JSON if it parses as JSON, else text.
 *
 * @throws {UsageError} For a number that JavaScript cannot hold exactly.
 */
export function parseValue(text: string): Json {
  try {
    return parseExactly(text);
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    return text; // Not JSON, so it is text.
  }
}

async function textOf(
  payload: string,
  option: string,
  sources: PayloadSources,
): Promise<string> {
  if (payload === "-") return await sources.readInput();
  if (!payload.startsWith("@")) return payload;
  const path = payload.slice(1);
  try {
    return await sources.readFile(path);
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new UsageError(`${option}: ${path} cannot be read: ${reason}`);
  }
}

function parseWhole(text: string, source: string, option: string): Json {
  try {
    return parseExactly(text);
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const from = source === "-" ? "standard input" : source.startsWith("@") ? source : option;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new UsageError(`${from} is not JSON: ${reason}; such as ${option}='{"a":2}'`);
  }
}

/** Parses JSON; rejects a number that JavaScript cannot hold exactly. */
function parseExactly(text: string): Json {
  const keepDigits = (_key: string, value: Json, context?: { source?: string }): Json => {
    if (typeof value === "number" && context?.source !== undefined) checkDigits(context.source);
    return value;
  };
  return JSON.parse(text, keepDigits as (key: string, value: Json) => Json) as Json;
}

function checkDigits(source: string): void {
  const number = Number(source);
  const kept = Number.isFinite(number) &&
    (!/^-?\d+$/.test(source) || BigInt(source) === BigInt(number));
  if (kept) return;
  throw new UsageError(`${source} would lose digits as a number; give it as text: '"${source}"'`);
}
