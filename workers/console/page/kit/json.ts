/**
 * JSON in the page: parsing with a message that says where it fails, reading values of unknown
 * shape, comparing values, and showing them.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of an object; none of anything else. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** A string as it is; other values as JSON text; an absent value and `null` as the empty string. */
export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A number, also from digits; `fallback` for anything else. */
export function numberOf(value: Json | undefined, fallback = 0): number {
  if (value === undefined || value === null || value === "") return fallback;
  const number = Number(value);
  return Number.isFinite(number) ? number : fallback;
}

/** Milliseconds from nanoseconds, which telemetry sends as a number or, exactly, as digits. */
export function msOf(nano: Json | undefined): number {
  return numberOf(nano) / 1e6;
}

/** Attributes of a span or a log record. */
export type Attributes = Readonly<Record<string, Json>>;

/** Attributes from an object or a list of pairs (PROTOCOL 5.8). */
export function attributesOf(raw: Json | undefined): Attributes {
  if (isObject(raw)) return raw;
  const attributes: Record<string, Json> = {};
  for (const pair of Array.isArray(raw) ? raw : []) {
    if (Array.isArray(pair)) attributes[textOf(pair[0])] = pair[1] ?? null;
  }
  return attributes;
}

/** Whether two values are the same JSON, in whatever order their members are. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((each, i) => sameJson(each, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameJson(a[name], b[name]));
}

/** Invisible characters: controls, direction marks (which can disguise a text), zero widths. */
const INVISIBLE =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** JSON text of a value for people; `indent` as in `JSON.stringify`. */
export function visibleJson(value: Json, indent?: number): string {
  return escapeInvisible(JSON.stringify(value, null, indent));
}

/** JSON text with its invisible characters escaped; it stays JSON of the same value. */
function escapeInvisible(json: string): string {
  return json.replace(
    INVISIBLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A value in at most `chars` characters. */
export function briefJson(value: Json, chars = 160): string {
  // Long texts are cut before they are written, not after.
  const text = JSON.stringify(
    value,
    (_name, member) =>
      typeof member === "string" && member.length > chars ? member.slice(0, chars) : member,
  );
  return escapeInvisible(text.length > chars ? `${text.slice(0, chars)}…` : text);
}

/** A parsed text, or why it is not JSON. */
export type ParsedJson =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly message: string };

/**
 * Parses a text. A blank one means `empty`, and is an error if that is left out.
 *
 * Browsers word their errors differently and mostly omit the place, so a scan of this module finds
 * it once the browser has rejected the text.
 */
export function parseJson(text: string, empty?: Json): ParsedJson {
  if (text.trim() === "") {
    return empty === undefined
      ? { ok: false, message: "Type a JSON value" }
      : { ok: true, value: empty };
  }
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (thrown) {
    return { ok: false, message: errorIn(text) ?? String(thrown) };
  }
}

/** The first error, such as `Expected a comma or }, line 2, column 7`. */
function errorIn(text: string): string | undefined {
  const scanner = new Scanner(text);
  try {
    scanner.value();
    scanner.end();
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof ScanError)) return undefined; // Nested deeper than the stack.
    const before = text.slice(0, scanner.at).split("\n");
    const place = scanner.at >= text.trimEnd().length
      ? "at the end"
      : `line ${before.length}, column ${before.at(-1)!.length + 1}`;
    return `${thrown.message}, ${place}`;
  }
}

class ScanError extends Error {}

/** Advances through a text as long as it is JSON. */
class Scanner {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): void {
    this.#skip(/\s*/y);
    const next = this.#text[this.at];
    if (next === "{") this.#members("}", () => this.#member());
    else if (next === "[") this.#members("]", () => this.value());
    else if (next === '"') this.#string();
    else if (
      !this.#skip(/(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)/y)
    ) {
      const hint = next === "'" ? "Texts stand in double quotes" : "Expected a value";
      throw new ScanError(hint);
    }
  }

  end(): void {
    this.#skip(/\s*/y);
    if (this.at < this.#text.length) throw new ScanError("Expected nothing more");
  }

  #members(end: string, member: () => void): void {
    this.at++;
    this.#skip(/\s*/y);
    if (this.#text[this.at] === end) {
      this.at++;
      return;
    }
    while (true) {
      member();
      this.#skip(/\s*/y);
      if (this.#text[this.at] === end) break;
      if (this.#text[this.at] !== ",") throw new ScanError(`Expected a comma or ${end}`);
      this.at++;
    }
    this.at++;
  }

  #member(): void {
    this.#skip(/\s*/y);
    if (this.#text[this.at] !== '"') throw new ScanError("Expected a name in double quotes");
    this.#string();
    this.#skip(/\s*/y);
    if (this.#text[this.at] !== ":") throw new ScanError("Expected a colon");
    this.at++;
    this.value();
  }

  #string(): void {
    // deno-lint-ignore no-control-regex
    this.#skip(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*/y);
    if (this.#text[this.at] === '"') {
      this.at++;
      return;
    }
    const next = this.#text[this.at];
    throw new ScanError(next === "\\" ? "Unknown escape" : "The text has no end on its line");
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found) this.at += found[0].length;
    return found !== null;
  }
}
