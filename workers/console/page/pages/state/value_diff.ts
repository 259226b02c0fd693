/**
 * The diff of two JSON values, line by line.
 *
 * Members are compared by name, and items of lists along their longest common subsequence, so that
 * an inserted item does not mark all others. Lists too long for that are compared by index.
 *
 * @module
 */
import { isObject, sameJson, visibleJson } from "../../kit/json.ts";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";

/** Product of the lengths of two lists up to which their items are aligned. */
const ALIGNED_ITEMS_MAX = 300;
/** Lines of a diff; further ones are only counted. */
const LINES_MAX = 2_000;
/** Levels that are compared; deeper values are one line of JSON each. */
const LEVELS_MAX = 40;
/** Longest line, in characters. */
const LINE_CHARS_MAX = 2_000;

/** A line of a diff. */
export interface DiffLine {
  /** `+`: only in the new value, `-`: only in the old one, blank: in both. */
  readonly mark: " " | "+" | "-";
  /** Levels of indentation. */
  readonly level: number;
  /** The member's name and its value, cut to one line. */
  readonly text: string;
}

/** A diff of two values. */
export interface Diff {
  readonly lines: readonly DiffLine[];
  /** Number of lines with `+`. */
  readonly added: number;
  readonly removed: number;
  /** Number of lines left out at the end. */
  readonly cut: number;
}

/** Compares two values; `undefined`: no value. */
export function diffValues(before: Json | undefined, after: Json | undefined): Diff {
  const writer = new DiffWriter();
  writer.compare("", before, after, 0);
  return writer.diff;
}

/** The lines of a diff with at most `around` unchanged ones beside each change; `null`: a gap. */
export function foldDiff(diff: Diff, around: number): readonly (DiffLine | null)[] {
  const shown = new Uint8Array(diff.lines.length);
  diff.lines.forEach(({ mark }, i) => {
    if (mark !== " ") shown.fill(1, Math.max(0, i - around), i + around + 1);
  });
  const folded: (DiffLine | null)[] = [];
  diff.lines.forEach((line, i) => {
    if (shown[i]) folded.push(line);
    else if (folded.at(-1) !== null) folded.push(null);
  });
  return folded;
}

class DiffWriter {
  readonly #lines: DiffLine[] = [];
  #added = 0;
  #removed = 0;
  #cut = 0;

  get diff(): Diff {
    return { lines: this.#lines, added: this.#added, removed: this.#removed, cut: this.#cut };
  }

  compare(name: string, before: Json | undefined, after: Json | undefined, level: number): void {
    if (before !== undefined && after !== undefined && level < LEVELS_MAX) {
      if (isObject(before) && isObject(after)) return this.#objects(name, before, after, level);
      if (Array.isArray(before) && Array.isArray(after)) {
        return this.#lists(name, before, after, level);
      }
      if (sameJson(before, after)) return this.#write(" ", name, after, level);
    }
    if (before !== undefined) this.#write("-", name, before, level);
    if (after !== undefined) this.#write("+", name, after, level);
  }

  #objects(name: string, before: JsonObject, after: JsonObject, level: number): void {
    const names = Object.keys(before);
    if (names.length === 0 && Object.keys(after).length === 0) {
      return this.#line(" ", level, `${name}{}`);
    }
    this.#line(" ", level, `${name}{`);
    for (const each of names) {
      const is = Object.hasOwn(after, each) ? after[each] : undefined;
      this.compare(`${JSON.stringify(each)}: `, before[each], is, level + 1);
    }
    for (const each of Object.keys(after)) {
      if (Object.hasOwn(before, each)) continue;
      this.compare(`${JSON.stringify(each)}: `, undefined, after[each], level + 1);
    }
    this.#line(" ", level, "}");
  }

  #lists(name: string, before: readonly Json[], after: readonly Json[], level: number): void {
    if (before.length === 0 && after.length === 0) return this.#line(" ", level, `${name}[]`);
    this.#line(" ", level, `${name}[`);
    for (const [was, is] of pairs(before, after)) this.compare("", was, is, level + 1);
    this.#line(" ", level, "]");
  }

  /** All lines of a value with the same mark. */
  #write(mark: DiffLine["mark"], name: string, value: Json, level: number): void {
    const isList = Array.isArray(value);
    if ((!isList && !isObject(value)) || level >= LEVELS_MAX || isEmpty(value)) {
      return this.#line(mark, level, name + visibleJson(value));
    }
    this.#line(mark, level, name + (isList ? "[" : "{"));
    if (isList) { for (const item of value) this.#write(mark, "", item, level + 1); }
    else {
      for (const [each, member] of Object.entries(value)) {
        this.#write(mark, `${JSON.stringify(each)}: `, member, level + 1);
      }
    }
    this.#line(mark, level, isList ? "]" : "}");
  }

  #line(mark: DiffLine["mark"], level: number, text: string): void {
    if (mark === "+") this.#added++;
    if (mark === "-") this.#removed++;
    if (this.#lines.length >= LINES_MAX) {
      this.#cut++;
      return;
    }
    const short = text.length > LINE_CHARS_MAX ? `${text.slice(0, LINE_CHARS_MAX)}…` : text;
    this.#lines.push({ mark, level, text: short });
  }
}

type Pair = readonly [before: Json | undefined, after: Json | undefined];

/** Pairs of items of both lists, in order. */
function pairs(before: readonly Json[], after: readonly Json[]): Pair[] {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && sameJson(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && sameJson(before.at(-1 - end), after.at(-1 - end))) end++;
  const head = before.slice(0, start).map((item, i): Pair => [item, after[i]]);
  const tail = end === 0 ? [] : before.slice(-end).map((item, i): Pair => [
    item,
    after[after.length - end + i],
  ]);
  const was = before.slice(start, before.length - end);
  const is = after.slice(start, after.length - end);
  const middle = was.length === is.length || Math.max(was.length, is.length) > ALIGNED_ITEMS_MAX
    ? placeByPlace(was, is)
    : aligned(was, is);
  return [...head, ...middle, ...tail];
}

function placeByPlace(before: readonly Json[], after: readonly Json[]): Pair[] {
  const length = Math.max(before.length, after.length);
  return Array.from({ length }, (_, i): Pair => [before[i], after[i]]);
}

/** Along the longest common subsequence, and by index between its items. */
function aligned(before: readonly Json[], after: readonly Json[]): Pair[] {
  const was = before.map((item) => JSON.stringify(item));
  const is = after.map((item) => JSON.stringify(item));
  const width = after.length + 1;
  const common = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] = was[i] === is[j]
        ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const found: Pair[] = [];
  let i = 0;
  let j = 0;
  let fromI = 0;
  let fromJ = 0;
  const gap = () => found.push(...placeByPlace(before.slice(fromI, i), after.slice(fromJ, j)));
  while (i < before.length && j < after.length) {
    if (was[i] === is[j]) {
      gap();
      found.push([before[i++], after[j++]]);
      [fromI, fromJ] = [i, j];
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) i++;
    else j++;
  }
  [i, j] = [before.length, after.length];
  gap();
  return found;
}

function isEmpty(value: Json): boolean {
  return Array.isArray(value)
    ? value.length === 0
    : isObject(value) && Object.keys(value).length === 0;
}
