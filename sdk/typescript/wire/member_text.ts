/**
 * Values that are passed on as JSON text, and the text of one member of a JSON object, as it stands
 * there: a parsed number has lost the digits that a double cannot hold.
 *
 * @module
 */

const BACKSLASH = 0x5c;

/** A value that is JSON text already, and was checked: it is passed on as it is. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * The text of the member `name` of an object; of equal keys the last one, as `JSON.parse` does.
 * `undefined` if the object has no such member, or the text is no object.
 *
 * @param json Valid JSON: it is not checked.
 *
 * @example
 * ```ts
 * import { memberText } from "./member_text.ts";
 *
 * memberText('{"a": 12345678901234567890, "b": [1]}', "a"); // "12345678901234567890"
 * ```
 */
export function memberText(json: string, name: string): string | undefined {
  let at = afterSpace(json, 0);
  if (json[at] !== "{") return undefined;
  let found: string | undefined;
  for (;;) {
    at = afterSpace(json, at + 1); // Behind the brace, or a comma.
    if (json[at] !== '"') return found;
    const keyEnd = stringEnd(json, at);
    const isIt = keyOf(json, at, keyEnd) === name;
    const start = afterSpace(json, afterSpace(json, keyEnd) + 1);
    const end = valueEnd(json, start);
    if (isIt) found = json.slice(start, end);
    at = afterSpace(json, end);
    if (json[at] !== ",") return found;
  }
}

/** The key between two quotes. */
function keyOf(json: string, start: number, end: number): string {
  const inside = json.slice(start + 1, end - 1);
  return inside.includes("\\") ? JSON.parse(json.slice(start, end)) as string : inside;
}

/** The next character that is no white space. */
function afterSpace(json: string, from: number): number {
  let at = from;
  while (isSpace(json.charCodeAt(at))) at++;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** The end of the value that starts at `start`. */
function valueEnd(json: string, start: number): number {
  const first = json[start];
  if (first === '"') return stringEnd(json, start);
  if (first !== "{" && first !== "[") {
    const behind = json.slice(start).search(/[,}\]\s]/);
    return behind < 0 ? json.length : start + behind;
  }
  const marks = /["{}[\]]/g;
  marks.lastIndex = start;
  let depth = 0;
  for (let mark = marks.exec(json); mark; mark = marks.exec(json)) {
    if (mark[0] === '"') marks.lastIndex = stringEnd(json, mark.index);
    else if (mark[0] === "{" || mark[0] === "[") depth++;
    else if (--depth === 0) return marks.lastIndex;
  }
  return json.length;
}

/** The end of the string whose quote is at `start`. */
function stringEnd(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at < 0 ? json.length : at + 1;
}

/** Whether the number of backslashes before a quote is odd. */
function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
