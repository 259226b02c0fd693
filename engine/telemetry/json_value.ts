/**
 * The value at the beginning of what was cut from a frame.
 *
 * A frame that is passed on is not parsed: what stands between the key of its payload and its last
 * brace is the payload only if nothing follows that, and nobody knows whether it is JSON at all.
 *
 * @module
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** The JSON value that a text begins with, as it was written; `null` when there is none. */
export function firstValue(text: string): string | null {
  if (isJson(text)) return text.trim();
  const end = commaBehind(text);
  const first = end < 0 ? "" : text.slice(0, end);
  return isJson(first) ? first.trim() : null;
}

/** The first comma that is in no string, object or array; -1 when there is none. */
function commaBehind(text: string): number {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COMMA && depth === 0) return at;
    else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return -1;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // Which is all that was asked.
  }
}
