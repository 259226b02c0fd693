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
import type { Member } from "../../ports/connection.ts";
import { MemberNames, NameHash } from "./member_names.ts";
import { JSON_DEPTH_MAX } from "../../../sdk/typescript/wire/json_depth.ts";

/** Members of a frame that is not parsed as a whole. */
export const MEMBERS_MAX = 1_000;
/**
 * Objects, arrays and members in a JSON value that the engine parses. A member whose name is new
 * counts as {@linkcode NEW_NAME_PARTS}. Up to here parsing takes some 0.1 s, whatever they are.
 */
export const JSON_PARTS_MAX = 1_000_000;
/** Parts that a member with a new name counts as, since V8 takes so much longer to parse it. */
export const NEW_NAME_PARTS = 10;

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

/** Shared by all messages: whose names they are does not matter. */
const names = new MemberNames();

/** What the next byte of a message belongs to. */
type Place =
  | "start"
  /** Behind the opening brace; a key, or the end of an empty object. */
  | "first key"
  | "key"
  | "in key"
  | "colon"
  | "value"
  | "in value"
  /** Behind the closing brace: white space only. */
  | "end"
  /** It is no object, or one with too many members. */
  | "failed";

/** The member that is being read; offsets from the start of the message. */
interface OpenMember {
  keyStart: number;
  keyEnd: number;
  start: number;
  depth: number;
  deepest: number;
  parts: number;
}

/** Finds the members of an object whose bytes come in parts. */
export class MembersScan {
  #place: Place = "start";
  readonly #name = new NameHash(names.begin());
  /** Bytes that were read. */
  #done = 0;
  /** Within a string of the value; the next byte is escaped. */
  #isInString = false;
  #isEscaped = false;
  #open: OpenMember = { keyStart: 0, keyEnd: 0, start: 0, depth: 0, deepest: 0, parts: 0 };
  /** Offsets are from the start of the message. */
  readonly #members: Member[] = [];

  /**
   * Goes on to offset `end` of `memory`, where the message begins at `start`: the bytes that were
   * read before are not read again and may have moved with the message, or be gone.
   */
  advance(memory: Uint8Array, start: number, end: number): void {
    let at = start + this.#done;
    while (at < end) {
      if (this.#place === "in value") at = this.#readValue(memory, start, at, end);
      else if (this.#place === "in key") at = this.#readKey(memory, start, at, end);
      else if (this.#place === "failed") break;
      else if (this.#readByte(memory[at]!, at - start)) at++;
    }
    this.#done = end - start;
  }

  /** The members of the message, which is complete and begins at `start`; see membersOf(). */
  members(start: number): Member[] | undefined {
    if (this.#place !== "end") return undefined;
    if (start === 0) return this.#members;
    return this.#members.map((one) => ({
      ...one,
      keyStart: one.keyStart + start,
      keyEnd: one.keyEnd + start,
      start: one.start + start,
      end: one.end + start,
    }));
  }

  /** Reads a byte between keys and values; `false` when it belongs to the value. */
  #readByte(code: number, offset: number): boolean {
    if (isSpace(code)) return true;
    switch (this.#place) {
      case "start":
        this.#place = code === OPEN_BRACE ? "first key" : "failed";
        return true;
      case "first key":
      case "key":
        if (code === CLOSE_BRACE && this.#place === "first key") this.#place = "end";
        else if (code !== QUOTE || this.#members.length >= MEMBERS_MAX) this.#place = "failed";
        else {
          this.#place = "in key";
          this.#open = { keyStart: offset, keyEnd: 0, start: 0, depth: 0, deepest: 0, parts: 0 };
        }
        return true;
      case "colon":
        this.#place = code === COLON ? "value" : "failed";
        return true;
      case "value":
        this.#open.start = offset;
        this.#place = code === COMMA || (code | BRACE_BIT) === CLOSE_BRACE ? "failed" : "in value";
        return false;
      default:
        this.#place = "failed"; // Something follows the object.
        return true;
    }
  }

  #readKey(memory: Uint8Array, start: number, from: number, end: number): number {
    const at = this.#stringEnd(memory, from, end);
    if (at < end) {
      this.#open.keyEnd = at + 1 - start;
      this.#place = "colon";
    }
    return at + 1;
  }

  /** Reads the value up to its end, or to `end`; returns the offset from which to go on. */
  #readValue(memory: Uint8Array, start: number, from: number, end: number): number {
    const name = this.#name;
    let at = from;
    // The last string, which is a name when a colon follows; its earlier parts are in the hash.
    let nameStart = from;
    let nameEnd = from;
    if (this.#isInString) {
      at = nameEnd = this.#stringEnd(memory, at, end);
      if (at === end) {
        name.add(memory, nameStart, nameEnd);
        return end;
      }
      this.#isInString = false;
      at++;
    }
    let { depth, deepest, parts } = this.#open;
    for (; at < end; at++) {
      const code = memory[at]!;
      if (code === QUOTE) {
        name.restart();
        nameStart = at + 1;
        at = nameEnd = this.#stringEnd(memory, nameStart, end);
        this.#isInString = at === end;
        continue;
      }
      if (code === COMMA && depth === 0) break;
      if (code === COLON) {
        name.add(memory, nameStart, nameEnd);
        nameStart = nameEnd;
        parts += names.isNew(name.value) ? NEW_NAME_PARTS : 1;
      }
      const bracket = code | BRACE_BIT;
      if (bracket === OPEN_BRACE) {
        parts++;
        if (++depth > deepest) deepest = depth;
      } else if (bracket === CLOSE_BRACE && depth-- === 0) break;
    }
    Object.assign(this.#open, { depth, deepest, parts });
    if (at >= end) {
      name.add(memory, nameStart, Math.min(nameEnd, end));
      return end;
    }
    this.#endMember(memory[at]!, at - start);
    return at + 1;
  }

  /** Ends the member before a comma or a closing bracket. */
  #endMember(code: number, end: number): void {
    const { keyStart, keyEnd, start, deepest: depth, parts } = this.#open;
    this.#members.push({ keyStart, keyEnd, start, end, depth, parts });
    this.#place = code === COMMA ? "key" : code === CLOSE_BRACE ? "end" : "failed";
  }

  /** Offset of the closing quote; `end` without one, and the string goes on with the next part. */
  #stringEnd(memory: Uint8Array, from: number, end: number): number {
    if (from >= end) return end;
    const at = stringEnd(memory, this.#isEscaped ? from + 1 : from, end);
    this.#isEscaped = at > end;
    return Math.min(at, end);
  }
}

/**
 * The members of the object between `start` and `end`; `undefined` when there is no object, or one
 * with more than {@linkcode MEMBERS_MAX}.
 */
export function membersOf(memory: Uint8Array, start: number, end: number): Member[] | undefined {
  const scan = new MembersScan();
  scan.advance(memory, start, end);
  return scan.members(start);
}

/** Why a JSON value is not parsed; `undefined` when it may be. */
export function parsingProblem(
  memory: Uint8Array,
  start: number,
  end: number,
): string | undefined {
  if (end - start <= JSON_DEPTH_MAX) return undefined;
  const name = new NameHash(names.begin());
  let depth = 0;
  let parts = 0;
  let nameStart = start;
  let nameEnd = start;
  for (let at = start; at < end; at++) {
    const code = memory[at]!;
    if (code === QUOTE) {
      nameStart = at + 1;
      at = nameEnd = stringEnd(memory, nameStart, end);
      continue;
    }
    if (code === COLON) {
      name.restart();
      name.add(memory, nameStart, nameEnd);
      parts += names.isNew(name.value) ? NEW_NAME_PARTS : 1;
    }
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN_BRACE) {
      parts++;
      if (++depth > JSON_DEPTH_MAX) return TOO_DEEP;
    } else if (bracket === CLOSE_BRACE) depth--;
  }
  return parts > JSON_PARTS_MAX ? TOO_MANY_PARTS : undefined;
}

/** Why a JSON value with this depth and so many parts is not parsed. */
export function valueProblem(depth: number, parts: number): string | undefined {
  if (depth > JSON_DEPTH_MAX) return TOO_DEEP;
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
export const TOO_MANY_PARTS = `has more than ${JSON_PARTS_MAX} objects, arrays and members, ` +
  `of which one with a name of its own counts as ${NEW_NAME_PARTS}`;

/**
 * Offset of the closing quote; `end` when there is none, and one more when the last byte escapes
 * the next.
 */
function stringEnd(memory: Uint8Array, start: number, end: number): number {
  for (let at = start;;) {
    const near = Math.min(end, at + SHORT_STRING_BYTES);
    for (; at < near; at++) {
      if (memory[at] === QUOTE) return at;
      if (memory[at] === BACKSLASH) at++;
    }
    if (at >= end) return at;
    const found = memory.subarray(at, end).indexOf(QUOTE);
    const quote = found < 0 ? end : at + found;
    let before = quote;
    while (before > at && memory[before - 1] === BACKSLASH) before--;
    const isEscaped = (quote - before) % 2 === 1;
    if (quote === end) return isEscaped ? end + 1 : end;
    if (!isEscaped) return quote;
    at = quote + 1;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
