/**
 * Finds the members of a frame's object without parsing their values.
 *
 * A frame may be large, and the time of `JSON.parse` depends on what is in it: 64 MiB of empty
 * arrays take 8 s. So of a large frame only the routing fields are parsed; this pass over its bytes
 * finds them, and what must be known before a value is parsed: its depth and number of parts. It
 * checks strings, commas and brackets only; text that is not JSON may pass.
 *
 * @module
 */
import { JSON_DEPTH_MAX } from "../../../sdk/typescript/wire/json_depth.ts";

/** Members of a frame that is not parsed as a whole. */
export const MEMBERS_MAX = 1_000;
/**
 * Objects, arrays and members in a JSON value that the engine parses. Up to here parsing takes less
 * than half a second, whatever they are.
 */
export const JSON_PARTS_MAX = 1_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** `[` and `]` differ from `{` and `}` in this bit only. */
const BRACE_BIT = 0x20;
/** A string that is longer is searched for its end with `indexOf`. */
const SHORT_STRING_BYTES = 64;

/** One member of an object: offsets of its key, quotes included, and of its value. */
export interface Member {
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly start: number;
  readonly end: number;
  /** With it, the object is nested more deeply than {@linkcode JSON_DEPTH_MAX}. */
  readonly isTooDeep: boolean;
  /** Objects, arrays and members in the value. */
  readonly parts: number;
}

/**
 * The members of the object between `start` and `end`; `undefined` when there is no object, or one
 * with more than {@linkcode MEMBERS_MAX}.
 */
export function membersOf(memory: Uint8Array, start: number, end: number): Member[] | undefined {
  const members: Member[] = [];
  let at = behindSpace(memory, start, end);
  if (memory[at++] !== OPEN_BRACE || at >= end) return undefined;
  at = behindSpace(memory, at, end);
  if (memory[at] === CLOSE_BRACE) return isBlank(memory, at + 1, end) ? members : undefined;
  while (members.length < MEMBERS_MAX) {
    if (at >= end || memory[at] !== QUOTE) return undefined;
    const keyStart = at;
    const keyEnd = stringEnd(memory, at + 1, end) + 1;
    at = behindSpace(memory, keyEnd, end);
    if (at >= end || memory[at] !== COLON) return undefined;
    const from = behindSpace(memory, at + 1, end);
    const { end: to, depth, parts } = scanValue(memory, from, end);
    if (to >= end || to === from) return undefined;
    at = to;
    const isTooDeep = depth >= JSON_DEPTH_MAX; // The object itself is one level.
    members.push({ keyStart, keyEnd, start: from, end: to, isTooDeep, parts });
    if (memory[at] !== COMMA) {
      return memory[at] === CLOSE_BRACE && isBlank(memory, at + 1, end) ? members : undefined;
    }
    at = behindSpace(memory, at + 1, end);
  }
  return undefined;
}

/** Why a JSON value is not parsed; `undefined` when it may be. */
export function parsingProblem(
  memory: Uint8Array,
  start: number,
  end: number,
): string | undefined {
  if (end - start <= JSON_DEPTH_MAX) return undefined;
  let depth = 0;
  let parts = 0;
  for (let at = start; at < end; at++) {
    const code = memory[at]!;
    if (code === QUOTE) {
      at = stringEnd(memory, at + 1, end);
      continue;
    }
    if (code === COLON) parts++;
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN_BRACE) {
      parts++;
      if (++depth > JSON_DEPTH_MAX) return TOO_DEEP;
    } else if (bracket === CLOSE_BRACE) depth--;
  }
  return parts > JSON_PARTS_MAX ? TOO_MANY_PARTS : undefined;
}

/** Number of objects, arrays and members of JSON. */
export function partsIn(memory: Uint8Array, start: number, end: number): number {
  let parts = 0;
  for (let at = start; at < end; at++) {
    const code = memory[at]!;
    if (code === QUOTE) at = stringEnd(memory, at + 1, end);
    else if (code === COLON || (code | BRACE_BIT) === OPEN_BRACE) parts++;
  }
  return parts;
}

/** The problem of a value that is nested too deeply. */
export const TOO_DEEP = `is nested more deeply than ${JSON_DEPTH_MAX} levels`;
/** The problem of a value with more than {@linkcode JSON_PARTS_MAX} parts. */
export const TOO_MANY_PARTS = `has more than ${JSON_PARTS_MAX} objects, arrays and members`;

/**
 * Offset of the comma or bracket behind the value that starts at `start`, `end` without one; and
 * the depth and the parts of the value.
 */
function scanValue(
  memory: Uint8Array,
  start: number,
  end: number,
): { end: number; depth: number; parts: number } {
  let depth = 0;
  let deepest = 0;
  let parts = 0;
  for (let at = start; at < end; at++) {
    const code = memory[at]!;
    if (code === QUOTE) {
      at = stringEnd(memory, at + 1, end);
      continue;
    }
    if (code === COMMA && depth === 0) return { end: at, depth: deepest, parts };
    if (code === COLON) parts++;
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN_BRACE) {
      parts++;
      if (++depth > deepest) deepest = depth;
    } else if (bracket === CLOSE_BRACE && depth-- === 0) return { end: at, depth: deepest, parts };
  }
  return { end, depth: deepest, parts };
}

/** Offset of the closing quote; `end` when there is none. */
function stringEnd(memory: Uint8Array, start: number, end: number): number {
  let at = start;
  for (;;) {
    const near = Math.min(end, at + SHORT_STRING_BYTES);
    for (; at < near; at++) {
      if (memory[at] === QUOTE) return at;
      if (memory[at] === BACKSLASH) at++;
    }
    if (at >= end) return end;
    const quote = memory.indexOf(QUOTE, at);
    if (quote < 0 || quote >= end) return end;
    let before = quote;
    while (before > at && memory[before - 1] === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}

function behindSpace(memory: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && isSpace(memory[at]!)) at++;
  return at;
}

function isBlank(memory: Uint8Array, start: number, end: number): boolean {
  return behindSpace(memory, start, end) === end;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
