/**
 * JSON text to a value, or to where and why it is none.
 *
 * Browsers word their errors differently and mostly leave the place out; so the place is looked for
 * here, once the browser has said that there is one.
 *
 * @module
 */
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";

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
