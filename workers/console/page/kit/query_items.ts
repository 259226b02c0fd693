/**
 * The items of a watched query, kept up to date from snapshots and patches.
 *
 * It is a value: every change gives a new list, so that what was drawn can be compared with what is
 * to be drawn.
 *
 * @module
 */
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";

/** The key of an item as the wire spells it; `undefined` for what is no object. */
export function itemKey(item: Json, members: readonly string[]): string | undefined {
  if (item === null || typeof item !== "object" || Array.isArray(item)) return undefined;
  return JSON.stringify(members.map((member) => item[member] ?? null));
}

/** The list after a patch: known items in their place, new ones at the end. */
export function patched(
  items: readonly Json[],
  members: readonly string[],
  set: readonly Json[],
  gone: readonly string[],
): readonly Json[] {
  const fresh = new Map<string, Json>();
  for (const item of set) fresh.set(itemKey(item, members) ?? JSON.stringify(item), item);
  const without = new Set(gone);
  const list: Json[] = [];
  for (const item of items) {
    const key = itemKey(item, members) ?? "";
    const next = fresh.get(key);
    if (next !== undefined) {
      list.push(next);
      fresh.delete(key);
    } else if (!without.has(key)) {
      list.push(item);
    }
  }
  list.push(...fresh.values());
  return list;
}
