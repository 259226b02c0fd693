/**
 * Patterns and rules of access: which ids of functions they stand for.
 *
 * In a pattern `*` stands for any characters, also none and also `::`; every other character stands
 * for itself, in its case. A text is a plain id; `match("orders::*")` is a pattern. Matching takes
 * time that grows with the id and never backtracks.
 *
 * @module
 */
import { ID_CHARS_MAX } from "../../../sdk/typescript/wire/limits.ts";
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
} from "../../../sdk/typescript/wire/protocol.ts";

/** Rules in one list, and members in one rule. */
export const RULES_MAX = 1_000;
/** Longest pattern, in characters. */
export const PATTERN_CHARS_MAX = ID_CHARS_MAX;

const ANY = "*";
const MATCH = /^match\(\s*("(?:[^"\\]|\\.)*"|'[^'\\]*')\s*\)$/s;

/** A pattern, or a plain text that stands for itself only. */
export class Pattern {
  /** As it was written, without `match()`. */
  readonly text: string;
  readonly #start: string;
  readonly #middle: readonly string[];
  /** `undefined`: the pattern is a plain text. */
  readonly #end: string | undefined;

  private constructor(text: string, parts: readonly string[]) {
    this.text = text;
    this.#start = parts[0]!;
    this.#middle = parts.slice(1, -1).filter((part) => part !== "");
    this.#end = parts.length > 1 ? parts.at(-1)! : undefined;
  }

  /** A pattern in which `*` stands for any characters. */
  static glob(text: string): Pattern {
    return new Pattern(text, text.split(ANY));
  }

  /** A text that stands for itself. */
  static plain(text: string): Pattern {
    return new Pattern(text, [text]);
  }

  /** Whether the pattern stands for a text as a whole. */
  matches(text: string): boolean {
    if (this.#end === undefined) return text === this.#start;
    if (!text.startsWith(this.#start)) return false;
    let from = this.#start.length;
    const end = text.length - this.#end.length;
    for (const part of this.#middle) {
      const found = text.indexOf(part, from);
      if (found < 0) return false;
      from = found + part.length;
    }
    return from <= end && text.endsWith(this.#end);
  }
}

/**
 * Reads `match("glob")` or a plain text; a text as outcome says what was expected. A plain text
 * with `*` is refused: it would stand for no function, though its author means many.
 */
export function readPattern(text: string): Pattern | string {
  const quoted = MATCH.exec(text)?.[1];
  if (quoted === undefined) {
    if (text === "" || text.length > PATTERN_CHARS_MAX) return SIZE;
    return text.includes(ANY) ? `match(${JSON.stringify(text)})` : Pattern.plain(text);
  }
  const glob = unquoted(quoted);
  if (glob === undefined) return 'a valid text inside match("…")';
  return glob === "" || glob.length > PATTERN_CHARS_MAX ? SIZE : Pattern.glob(glob);
}

const SIZE = `1 to ${PATTERN_CHARS_MAX} characters`;

function unquoted(quoted: string): string | undefined {
  if (quoted.startsWith("'")) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted);
  } catch {
    return undefined;
  }
}

/** Functions that a listener exposes: by their id, or by their metadata. */
export type ExposeRule =
  | { readonly id: Pattern; readonly namespace: string }
  | {
    /** All members have to be there with these values. */
    readonly metadata: readonly (readonly [key: string, value: Pattern | Json])[];
    /** `undefined`: in every namespace. */
    readonly namespace: string | undefined;
  };

/** Reads one rule of `expose_functions`; a text as outcome says what was expected. */
export function readExposeRule(value: Json): ExposeRule | string {
  if (typeof value === "string") return idRule(value, DEFAULT_NAMESPACE);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return RULE;
  const { match, metadata, namespace, ...others } = value;
  const isNamespace = namespace === undefined || namespace === null ||
    (typeof namespace === "string" && namespace !== "");
  if (Object.keys(others).length > 0 || !isNamespace) return RULE;
  const space = namespace ?? undefined;
  if (typeof match === "string" && metadata === undefined) {
    // The key says that it is a pattern.
    const glob = MATCH.test(match) ? match : `match(${JSON.stringify(match)})`;
    return idRule(glob, space ?? DEFAULT_NAMESPACE);
  }
  if (match !== undefined || !isObject(metadata)) return RULE;
  const members = Object.entries(metadata);
  if (members.length === 0 || members.length > RULES_MAX) return "members of metadata to compare";
  const read: [string, Pattern | Json][] = [];
  for (const [key, member] of members) {
    const pattern = typeof member === "string" ? readPattern(member) : member;
    if (typeof pattern === "string") return `metadata.${key}: ${pattern}`;
    read.push([key, pattern as Pattern | Json]);
  }
  return { metadata: read, namespace: space };
}

const RULE = 'match("orders::*"), { match, namespace } or { metadata, namespace }';

function idRule(text: string, namespace: string): ExposeRule | string {
  const id = readPattern(text);
  return typeof id === "string" ? id : { id, namespace };
}

/** Whether a rule stands for a function; `metadata` is that of each of its registrations. */
export function isExposed(
  rule: ExposeRule,
  function_id: string,
  namespace: string,
  metadata: readonly (Json | undefined)[],
): boolean {
  if ("id" in rule) return rule.namespace === namespace && rule.id.matches(function_id);
  if (rule.namespace !== undefined && rule.namespace !== namespace) return false;
  // One more replica must not open a function that the others keep closed.
  return metadata.length > 0 &&
    metadata.every((each) => rule.metadata.every(([key, value]) => hasMember(each, key, value)));
}

function hasMember(metadata: Json | undefined, key: string, wanted: Pattern | Json): boolean {
  if (!isObject(metadata) || !Object.hasOwn(metadata, key)) return false;
  const found = metadata[key]!;
  if (wanted instanceof Pattern) return typeof found === "string" && wanted.matches(found);
  return JSON.stringify(found) === JSON.stringify(wanted);
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
