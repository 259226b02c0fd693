/**
 * JSON as people shall see it: nothing in it is invisible or turns the words around it.
 *
 * It stays JSON of the same value.
 *
 * @module
 */
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";

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
