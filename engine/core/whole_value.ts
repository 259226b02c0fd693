/**
 * Whether a value of JSON is all that lies in a part of memory.
 *
 * Only strings, commas and brackets are looked at: text that is no JSON may pass, which nobody can
 * read as something else than its receiver, who finds out.
 *
 * @module
 */
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Whether the value that begins at `start` goes on to `end`, so that no other field follows it. */
export function isWholeValue(memory: Uint8Array, start: number, end: number): boolean {
  let depth = 0;
  for (let at = start; at < end; at++) {
    switch (memory[at]) {
      case QUOTE:
        at = stringEnd(memory, at + 1, end);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth < 0) return false;
        break;
      case COMMA:
        if (depth === 0) return false;
    }
  }
  return depth === 0;
}

/** The quote that ends a string; `end` when there is none. */
function stringEnd(memory: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (memory[at] === QUOTE) return at;
    if (memory[at] === BACKSLASH) at++;
  }
  return end;
}
