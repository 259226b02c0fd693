/**
 * Parts of a message as they were written, so that a value which is passed on is not written anew.
 *
 * @module
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/**
 * The text of a field of a message that is known to be JSON, as it was written; `undefined` when
 * it is not there. Of a name that occurs twice the last one counts, as for `JSON.parse`.
 */
export function fieldText(text: string, name: string): string | undefined {
  let found: string | undefined;
  let at = text.indexOf("{") + 1;
  for (;;) {
    const keyStart = text.indexOf('"', at);
    if (keyStart < 0) return found;
    const keyEnd = stringEnd(text, keyStart);
    const start = text.indexOf(":", keyEnd) + 1;
    const end = valueEnd(text, start);
    if (JSON.parse(text.slice(keyStart, keyEnd)) === name) found = text.slice(start, end).trim();
    if (text.charCodeAt(end) !== COMMA) return found;
    at = end + 1;
  }
}

/** Behind the quote that ends the string which starts here. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1;;) {
    const quote = text.indexOf('"', at);
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    at = quote + 1;
    if ((quote - before) % 2 === 1) return at;
  }
}

/** The comma or brace that ends the value which starts here. */
function valueEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start;; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = stringEnd(text, at) - 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth-- === 0) return at;
        break;
      case COMMA:
        if (depth === 0) return at;
    }
  }
}
