/**
 * Values of user code as JSON text, without losing a part in silence.
 *
 * `JSON.stringify` writes a Map or a stream as `{}`, NaN as `null`, bytes as an object of numbers,
 * and leaves functions out. Here each of these is an error that names the part. The usual value,
 * made of plain objects, is walked once by {@linkcode isPlain}, which also counts its levels, in
 * place of a search through the text; only what it doubts is looked at closely.
 *
 * @module
 */
import { EngineError, thrownText } from "./wire/errors.ts";
import { isTooDeep, JSON_DEPTH_MAX } from "./wire/json_depth.ts";
import { JsonText } from "./wire/member_text.ts";

export { JsonText };

/** Longest path in the message of an error. */
const PATH_CHARS_MAX = 80;
/** Most parts that are searched for the reason why `JSON.stringify` failed. */
const SEARCHED_PARTS_MAX = 100_000;

/** What to send instead, by what cannot be sent. */
const HINTS: Readonly<Record<string, string>> = {
  Map: "send Object.fromEntries(map)",
  Set: "send an array: [...set]",
  BigInt: "send a number or a string",
  Promise: "await it",
  Generator: "send an array: [...values]",
  Error: "send its message",
};

/**
 * The JSON text of a value; `undefined` for `undefined`.
 *
 * @throws {EngineError} `serialization_error`, with the path of the part that JSON cannot represent
 * or that is nested more deeply than `depthMax`.
 */
export function toJson(
  what: string,
  value: unknown,
  depthMax: number = JSON_DEPTH_MAX,
): string | undefined {
  if (value === undefined) return undefined;
  if (value instanceof JsonText) return value.text;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const fault = new FaultSearch(SEARCHED_PARTS_MAX).find(value, depthMax);
    if (fault) throw unwritable(what, fault, depthMax);
    throw failed(what, thrownText(cause).split("\n")[0]!, cause);
  }
  if (isPlain(value, depthMax)) return text;
  // A cycle is no longer possible, and neither is a value that is larger than its text.
  const fault = new FaultSearch(Infinity).find(value, depthMax);
  if (fault) throw unwritable(what, fault, depthMax);
  if (isTooDeep(text!, depthMax)) throw unwritable(what, TOO_DEEP, depthMax);
  return text;
}

/**
 * Whether a value certainly loses no part as JSON and has at most so many levels: made of plain
 * objects, arrays, finite numbers, texts and dates. `false` is a doubt, not a fault.
 */
function isPlain(value: unknown, levels: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (Array.isArray(value)) {
    if (levels === 0) return false;
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], levels - 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return prototype === Date.prototype && Number.isFinite((value as Date).getTime());
  }
  if (levels === 0) return false;
  for (const key in value) {
    if (!isPlain((value as Record<string, unknown>)[key], levels - 1)) return false;
  }
  return true;
}

/** A part that cannot be written. */
interface Fault {
  /** Such as `.rows[0].next`; empty for the value itself. */
  readonly path: string;
  /** Such as `a Map`; `undefined`: it is nested too deeply. */
  readonly what: string | undefined;
  readonly hint?: string | undefined;
}

const TOO_DEEP: Fault = { path: "", what: undefined };

/** Looks for the first part of a value that JSON would lose. */
class FaultSearch {
  readonly #ancestors = new Set<object>();
  #partsLeft: number;

  constructor(partsMax: number) {
    this.#partsLeft = partsMax;
  }

  find(value: unknown, levels: number): Fault | undefined {
    switch (typeof value) {
      case "number":
        return Number.isFinite(value) ? undefined : { path: "", what: `${value}` };
      case "bigint":
        return writesItself(Object(value)) ? undefined : fault("BigInt");
      case "function":
      case "symbol":
        return { path: "", what: `a ${typeof value}` };
      case "object":
        return value === null ? undefined : this.#findIn(value, levels);
      default:
        return undefined;
    }
  }

  #findIn(value: object, levels: number): Fault | undefined {
    if (this.#ancestors.has(value)) return { path: "", what: "an object that contains itself" };
    const own = Array.isArray(value) ? undefined : faultOf(value);
    if (own) return own;
    if (!Array.isArray(value) && writesItself(value)) return undefined;
    if (levels === 0) return TOO_DEEP;
    this.#ancestors.add(value);
    for (const [key, part] of Object.entries(value)) {
      if (typeof part === "string" || this.#partsLeft-- <= 0) continue;
      const found = this.find(part, levels - 1);
      if (!found) continue;
      const step = Array.isArray(value) ? `[${key}]` : `.${key}`;
      return { ...found, path: cut(step + found.path) };
    }
    this.#ancestors.delete(value);
    return undefined;
  }
}

/** Why an object cannot be written as a whole, if so. */
function faultOf(value: object): Fault | undefined {
  const prototype = Object.getPrototypeOf(value);
  // Also the plain objects of another realm.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return undefined;
  if (value instanceof Date) {
    return Number.isFinite(value.getTime()) ? undefined : { path: "", what: "an invalid Date" };
  }
  const name = nameOf(value);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return { path: "", what: withArticle(name), hint: "send a string, such as base64" };
  }
  if (writesItself(value) || isBoxed(value)) return undefined;
  if (value instanceof Error) return fault("Error", name);
  const { then } = value as { then?: unknown };
  if (typeof then === "function") return fault("Promise", name);
  if (Symbol.iterator in value || Symbol.asyncIterator in value) {
    return fault(Object.hasOwn(HINTS, name) ? name : "Generator", name);
  }
  // What is inside is not in members, as in a RegExp, a Response or an object of private fields.
  return Object.keys(value).length === 0 ? fault(name) : undefined;
}

/** Whether its class says what it is as JSON. */
function writesItself(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function isBoxed(value: object): boolean {
  return value instanceof Number || value instanceof String || value instanceof Boolean;
}

function nameOf(value: object): string {
  const { constructor } = value as { constructor?: { name?: unknown } };
  const name = typeof constructor?.name === "string" ? constructor.name : "";
  // Generators have a constructor without a name of its own.
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return name === "" || name === "GeneratorFunction" || tag.endsWith("Generator") ? tag : name;
}

function fault(kind: string, name: string = kind): Fault {
  return { path: "", what: withArticle(name), hint: HINTS[kind] };
}

function withArticle(name: string): string {
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name.slice(0, PATH_CHARS_MAX)}`;
}

function cut(path: string): string {
  return path.length > 4 * PATH_CHARS_MAX ? path.slice(0, 4 * PATH_CHARS_MAX) : path;
}

function unwritable(
  what: string,
  { path, what: kind, hint }: Fault,
  depthMax: number,
): EngineError {
  const at = short(path);
  if (kind !== undefined) {
    const advice = hint === undefined ? "" : `; ${hint}`;
    return failed(what, `value${at} is ${kind}${advice}`, undefined, path);
  }
  const message = `${what} is nested more deeply than ${depthMax} levels, at ${at || "its start"}`;
  return new EngineError("serialization_error", message, { details: { path } });
}

function failed(what: string, reason: string, cause: unknown, path?: string): EngineError {
  const message = `${what} cannot be written as JSON: ${reason}`;
  const details = path === undefined ? {} : { details: { path } };
  return new EngineError("serialization_error", message, { cause, ...details });
}

function short(path: string): string {
  return path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}…` : path;
}
