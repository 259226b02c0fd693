/**
 * JSON text to a value, or to where and why it is none.
 *
 * @module
 */
import type { Json } from "../../../../sdk/typescript/protocol.ts";

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
    return { ok: false, message: whereAndWhy(text, thrown) };
  }
}

/** Chromium names the place by offset, Firefox by line and column; people want the latter. */
function whereAndWhy(text: string, thrown: unknown): string {
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  const short = why.replace(/^JSON\.parse: /, "").replace(/^(Unexpected token '.*?'), .*$/, "$1")
    .replace(/ in JSON at position.*$/, "").replace(/ of the JSON data.*$/, "");
  const at = /position (\d+)/.exec(why);
  if (at === null) {
    return why.includes("line ") || !/end of/i.test(why) ? short : `${short}, at the end`;
  }
  const before = text.slice(0, Number(at[1])).split("\n");
  return `${short}, line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
