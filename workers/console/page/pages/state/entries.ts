/**
 * The entries of one scope as far as they were fetched, kept up to date by changes.
 *
 * Pages come in key order, each from where the one before ended. A change beyond that place is left
 * to its page; one before it is put in at once. A list is never changed: each step makes another.
 *
 * @module
 */
import { seenText } from "../../kit/seen_json.ts";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";

/** One entry. */
export interface ShownEntry {
  readonly key: string;
  readonly value: Json;
  /** `null` after a change, which does not tell it. */
  readonly version: number | null;
  /** When it was last seen to change, in milliseconds since 1970; `null`: not since it is shown. */
  readonly changed_ms: number | null;
}

/** What is known of a scope. */
export interface EntryList {
  /** Sorted by key as the engine sorts. */
  readonly entries: readonly ShownEntry[];
  /** Where the next page begins; `null`: all were fetched. */
  readonly cursor: string | null;
  readonly isComplete: boolean;
}

/** What a trigger of type `state` tells. */
export interface StateChange {
  readonly event_type: "state:created" | "state:updated" | "state:deleted";
  readonly scope: string;
  readonly key: string;
  readonly old_value: Json;
  readonly new_value: Json;
}

/** What `state::list_entries` answers. */
export interface EntriesPage {
  readonly entries: readonly {
    readonly key: string;
    readonly value: Json;
    readonly version: number;
  }[];
  readonly cursor?: string | null;
}

/** Before the first page. */
export const NO_ENTRIES: EntryList = { entries: [], cursor: null, isComplete: false };

/** The list with one more page behind it. */
export function withPage(list: EntryList, page: EntriesPage): EntryList {
  const last = list.entries.at(-1)?.key;
  const fresh = page.entries
    // What a change brought in ahead of its page is there already.
    .filter(({ key }) => last === undefined || compareKeys(key, last) > 0)
    .map((entry): ShownEntry => ({ ...entry, changed_ms: null }));
  const cursor = page.cursor ?? null;
  return { entries: [...list.entries, ...fresh], cursor, isComplete: cursor === null };
}

/** The list after a change; the same list when the change lies beyond what was fetched. */
export function withChange(list: EntryList, change: StateChange, now: number): EntryList {
  const { entries } = list;
  const at = placeOf(entries, change.key);
  const known = entries[at]?.key === change.key;
  if (change.event_type === "state:deleted") {
    return known ? { ...list, entries: entries.toSpliced(at, 1) } : list;
  }
  const isBeyond = at === entries.length && !list.isComplete;
  if (!known && isBeyond) return list;
  const entry = { key: change.key, value: change.new_value, version: null, changed_ms: now };
  return { ...list, entries: entries.toSpliced(at, known ? 1 : 0, entry) };
}

/** Entries whose key or value has a text in it; case does not count. */
export function searchEntries(
  entries: readonly ShownEntry[],
  search: string,
): readonly ShownEntry[] {
  const wanted = search.trim().toLowerCase();
  if (wanted === "") return entries;
  return entries.filter(({ key, value }) =>
    key.toLowerCase().includes(wanted) || JSON.stringify(value).toLowerCase().includes(wanted)
  );
}

/** Orders keys as the engine's store does: by their UTF-8, so by code points. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left === right) continue;
    // Half of a pair stands for a code point above all single ones.
    const isPair = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;
    if (isPair(left) !== isPair(right)) return isPair(left) ? 1 : -1;
    return left - right;
  }
  return a.length - b.length;
}

/** A value in a few words for a line of a list. */
export function briefly(value: Json, chars = 160): string {
  // Not all of a large value is written only to be cut.
  const text = JSON.stringify(
    value,
    (_name, member) =>
      typeof member === "string" && member.length > chars ? member.slice(0, chars) : member,
  );
  return seenText(text.length > chars ? `${text.slice(0, chars)}…` : text);
}

function placeOf(entries: readonly ShownEntry[], key: string): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareKeys(entries[middle]!.key, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
