/**
 * The depth bound of JSON, checked before a text is parsed: PROTOCOL 12.
 *
 * Parsing and everything that walks a parsed value takes time and stack by its depth, so a few
 * megabytes of brackets could hold a thread for a minute. The check reads each byte once.
 *
 * @module
 */

/** Deepest nesting of arrays and objects in a frame or a payload; a flat object has depth 1. */
export const JSON_DEPTH_MAX = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `]` differ from `{` and `}` in this bit only. */
const BRACE_BIT = 0x20;
const OPEN = 0x5b | BRACE_BIT;
const CLOSE = 0x5d | BRACE_BIT;

/** Whether a JSON text is nested more deeply than `depthMax`. */
export function isTooDeep(text: string, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (text.length <= depthMax || hasFewBrackets(text, depthMax)) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      for (at++; at < text.length; at++) {
        const inner = text.charCodeAt(at);
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) at++;
      }
      continue;
    }
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN && ++depth > depthMax) return true;
    if (bracket === CLOSE) depth--;
  }
  return false;
}

/** Whether there are too few brackets to be too deep: found without reading each character here. */
function hasFewBrackets(text: string, depthMax: number): boolean {
  let left = depthMax;
  for (const bracket of ["[", "{"]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (--left < 0) return false;
    }
  }
  return true;
}

/** The same for JSON as UTF-8: the bytes of `memory` from `start` to `end`. */
export function isTooDeepBytes(memory: Uint8Array, start: number, end: number): boolean {
  if (end - start <= JSON_DEPTH_MAX) return false;
  let depth = 0;
  for (let at = start; at < end; at++) {
    const code = memory[at]!;
    if (code === QUOTE) {
      for (at++; at < end; at++) {
        const inner = memory[at]!;
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) at++;
      }
      continue;
    }
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN && ++depth > JSON_DEPTH_MAX) return true;
    if (bracket === CLOSE) depth--;
  }
  return false;
}
