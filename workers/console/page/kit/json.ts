/**
 * JSON text to a value, or to where and why it is none.
 *
 * Browsers word their errors differently and mostly leave the place out; so the place is looked for
 * here, once the browser has said that there is one.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";

/** What a text is. */
export type ParsedJson =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly message: string };

/** Parses; `empty` is what a blank text means, without it a blank text is wrong. */
export function parseJson(text: string, empty?: Json): ParsedJson {
  if (text.trim() === "") {
    return empty === undefined
      ? { ok: false, message: "Type a JSON value" }
      : { ok: true, value: empty };
  }
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (thrown) {
    return { ok: false, message: faultIn(text) ?? String(thrown) };
  }
}

/** What is wrong first, such as `Expected a comma or }, line 2, column 7`. */
function faultIn(text: string): string | undefined {
  const scan = new Scan(text);
  try {
    scan.value();
    scan.end();
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof Fault)) return undefined; // Nested too deeply for this.
    const before = text.slice(0, scan.at).split("\n");
    const place = scan.at >= text.trimEnd().length
      ? "at the end"
      : `line ${before.length}, column ${before.at(-1)!.length + 1}`;
    return `${thrown.message}, ${place}`;
  }
}

class Fault extends Error {}

/** Goes through a text as long as it is JSON. */
class Scan {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): void {
    this.#take(/\s*/y);
    const next = this.#text[this.at];
    if (next === "{") this.#members("}", () => this.#member());
    else if (next === "[") this.#members("]", () => this.value());
    else if (next === '"') this.#string();
    else if (
      !this.#take(/(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)/y)
    ) {
      const hint = next === "'" ? "Texts stand in double quotes" : "Expected a value";
      throw new Fault(hint);
    }
  }

  end(): void {
    this.#take(/\s*/y);
    if (this.at < this.#text.length) throw new Fault("Expected nothing more");
  }

  #members(end: string, member: () => void): void {
    this.at++;
    this.#take(/\s*/y);
    if (this.#text[this.at] === end) {
      this.at++;
      return;
    }
    while (true) {
      member();
      this.#take(/\s*/y);
      if (this.#text[this.at] === end) break;
      if (this.#text[this.at] !== ",") throw new Fault(`Expected a comma or ${end}`);
      this.at++;
    }
    this.at++;
  }

  #member(): void {
    this.#take(/\s*/y);
    if (this.#text[this.at] !== '"') throw new Fault("Expected a name in double quotes");
    this.#string();
    this.#take(/\s*/y);
    if (this.#text[this.at] !== ":") throw new Fault("Expected a colon");
    this.at++;
    this.value();
  }

  #string(): void {
    // deno-lint-ignore no-control-regex
    this.#take(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*/y);
    if (this.#text[this.at] === '"') {
      this.at++;
      return;
    }
    const next = this.#text[this.at];
    throw new Fault(next === "\\" ? "Unknown escape" : "The text has no end on its line");
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found) this.at += found[0].length;
    return found !== null;
  }
}

/** Controls, marks of direction (which can make a text look like another), what has no width. */
const UNSEEN =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** The text of a value; `indent` as in `JSON.stringify`. */
export function seenJson(value: Json, indent?: number): string {
  return seenText(JSON.stringify(value, null, indent));
}

/** JSON text with everything in it to be seen. */
export function seenText(json: string): string {
  return json.replace(
    UNSEEN,
    (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Names and values that came with a span or a log record. */
export type Attributes = Readonly<Record<string, Json>>;

/** Text as it is; anything else as JSON; nothing and `null` as empty text. */
export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The number, also from digits; `fallback` for what is none. */
export function numberOf(value: Json | undefined, fallback = 0): number {
  if (value === undefined || value === null || value === "") return fallback;
  const number = Number(value);
  return Number.isFinite(number) ? number : fallback;
}

/** Milliseconds of nanoseconds, which come as a number or, exact, as digits. */
export function msOf(nano: Json | undefined): number {
  return numberOf(nano) / 1e6;
}

/** Attributes come as pairs or as an object. */
export function attributesOf(raw: Json | undefined): Attributes {
  if (isObject(raw)) return raw;
  const attributes: Record<string, Json> = {};
  for (const pair of Array.isArray(raw) ? raw : []) {
    if (Array.isArray(pair)) attributes[textOf(pair[0])] = pair[1] ?? null;
  }
  return attributes;
}

/** Whether a value is an object, and no list. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of an object; none of anything else. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
