/**
 * Lists in pages, so that neither their number of entries nor a single entry makes one fail.
 *
 * A page ends with the number of entries that the caller asked for, or when it has enough bytes.
 * Values of an entry that are too large are left out, and named in its `truncated`: the `::info`
 * functions return them whole.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";

/** Entries of a page, and of one without `limit`. */
export const PAGE_ENTRIES_MAX = 20_000;
/** JSON characters of a page, about. */
export const PAGE_CHARS_MAX = 8 * 1024 * 1024;
/** JSON characters of one value of an entry; a larger one is left out. */
export const VALUE_CHARS_MAX = 16 * 1024;
/** Characters of a description in a list. */
export const DESCRIPTION_CHARS_MAX = 2_000;
/** Characters of `search`. */
export const SEARCH_CHARS_MAX = 200;
/** Values of a filter that is a list, such as `workers`. */
export const FILTER_VALUES_MAX = 100;
/** Longest cursor: the keys of an entry. */
const CURSOR_CHARS_MAX = 4 * ID_CHARS_MAX;
/** An entry without its values. */
const ENTRY_CHARS = 256;
/** Sorts before all other characters. */
const SEPARATOR = "\u0000";

/** Fields of a query that asks for a page. */
export const PageFields = {
  limit: v.described(
    `Entries in one page. Default: ${PAGE_ENTRIES_MAX}, fewer if they are large`,
    v.nullish(v.int(1, PAGE_ENTRIES_MAX)),
  ),
  cursor: v.described(
    "next_cursor of the previous result. Default: from the first entry",
    v.nullish(v.string()),
  ),
} as const;

/** A query for a page. */
export interface PageQuery {
  readonly limit?: number | null | undefined;
  readonly cursor?: string | null | undefined;
}

/** Entries, and where the next page starts if there is one. */
export interface Page {
  readonly entries: JsonObject[];
  readonly next_cursor?: string;
}

/** Bounds of pages other than the default. */
export interface PageBounds {
  readonly entries?: number;
  readonly chars?: number;
}

/**
 * One page of views, sorted by their keys.
 *
 * @param keys What identifies a view, in the order of the list.
 */
export function pageOf<View>(
  views: Iterable<View>,
  keys: (view: View) => readonly string[],
  entryOf: (view: View) => JsonObject,
  query: PageQuery = {},
  bounds: PageBounds = {},
): Page {
  const after = query.cursor ?? "";
  const keyed: { key: string; view: View }[] = [];
  for (const view of views) {
    const key = keys(view).join(SEPARATOR);
    if (key > after || after === "") keyed.push({ key, view });
  }
  keyed.sort((a, b) => compare(a.key, b.key));
  const sorted = keyed.map(({ view }) => view);
  return pageOfSorted(sorted, keys, entryOf, query, bounds);
}

/** The keys of the last entry of the page before; empty without a cursor. */
export function keysOf({ cursor }: PageQuery): string[] {
  return (cursor ?? "").split(SEPARATOR);
}

/** The same of views that are sorted, and begin with the page. */
export function pageOfSorted<View>(
  views: Iterable<View>,
  keys: (view: View) => readonly string[],
  entryOf: (view: View) => JsonObject,
  query: PageQuery = {},
  bounds: PageBounds = {},
): Page {
  const { entries: entriesMax = PAGE_ENTRIES_MAX, chars: charsMax = PAGE_CHARS_MAX } = bounds;
  const limit = Math.min(query.limit ?? entriesMax, entriesMax);
  const entries: JsonObject[] = [];
  let chars = 0;
  let last = "";
  for (const view of views) {
    if (entries.length === limit || chars > charsMax) return { entries, next_cursor: last };
    const { entry, chars: more } = shortened(entryOf(view));
    last = keys(view).join(SEPARATOR);
    entries.push(entry);
    chars += more;
  }
  return { entries };
}

/** The members of a page in an answer: its entries under `name`. */
export function pageAnswer(name: string, { entries, next_cursor }: Page): JsonObject {
  return { [name]: entries, ...next_cursor !== undefined && { next_cursor } };
}

/**
 * Checks that the texts of a query are short, since each may be compared with every entry.
 *
 * @throws {EngineError} `invalid_payload` with the member, its size and the bound.
 */
export function checkFilters(function_id: string, query: object): void {
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) {
      if (value.length > FILTER_VALUES_MAX) {
        throw tooLong(function_id, `${name} has ${value.length} values`, FILTER_VALUES_MAX);
      }
      for (const one of value) checkText(function_id, name, one);
    } else checkText(function_id, name, value);
  }
}

function checkText(function_id: string, name: string, value: unknown): void {
  const max = name === "search"
    ? SEARCH_CHARS_MAX
    : name === "cursor"
    ? CURSOR_CHARS_MAX
    : ID_CHARS_MAX;
  if (typeof value !== "string" || value.length <= max) return;
  throw tooLong(function_id, `${name} has ${value.length} characters`, max);
}

function tooLong(function_id: string, what: string, limit: number): EngineError {
  const message = `Payload of ${function_id}: ${what}, at most ${limit} are accepted`;
  return new EngineError("invalid_payload", message, { details: { limit } });
}

/** An entry without values that are too large, and about how long it is. */
function shortened(entry: JsonObject): { entry: JsonObject; chars: number } {
  let chars = ENTRY_CHARS;
  const truncated: string[] = [];
  const result: JsonObject = {};
  for (const [name, value] of Object.entries(entry)) {
    const max = name === "description" ? DESCRIPTION_CHARS_MAX : VALUE_CHARS_MAX;
    const size = charsOf(value, max);
    if (size <= max) result[name] = value;
    else {
      truncated.push(name);
      result[name] = typeof value === "string" ? cut(value, max) : null;
    }
    chars += Math.min(size, max);
  }
  return { entry: truncated.length > 0 ? { ...result, truncated } : result, chars };
}

/** The start of a text, which ends between two characters. */
function cut(text: string, max: number): string {
  const isSplit = /[\ud800-\udbff]/.test(text.charAt(max - 1));
  return `${text.slice(0, isSplit ? max - 1 : max)}…`;
}

/** About the characters of a value as JSON; stops counting beyond `max`. */
export function charsOf(value: Json | undefined, max: number): number {
  if (typeof value === "string") return value.length + 2;
  if (value === undefined || value === null || typeof value !== "object") return 8;
  let chars = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      chars += 1 + charsOf(item, max - chars);
      if (chars > max) break;
    }
    return chars;
  }
  for (const name in value) {
    chars += name.length + 4 + charsOf(value[name], max - chars);
    if (chars > max) break;
  }
  return chars;
}

/** Compares by code units, independent of the locale. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
