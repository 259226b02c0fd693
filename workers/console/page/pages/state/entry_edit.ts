/**
 * The edit of an entry: the version it is based on, the new value, and conflicts.
 *
 * A save names its base version, so that it cannot overwrite a change that the person has not seen.
 * An entry that expires keeps its end unless the person changes it, although a plain write would
 * remove it.
 *
 * @module
 */
import { sameJson, visibleJson } from "../../kit/json.ts";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";

/** Longest life of an entry, as `engine-state` allows it: a hundred years. */
const TTL_MS_MAX = 3_155_760_000_000;

/** The result of `state::entry`. */
export interface StoredEntry {
  readonly value: Json;
  readonly version: number;
  readonly updated_at_ms: number;
  readonly expires_at_ms?: number;
}

/** An edit of an entry. */
export interface EntryEdit {
  /** The entry that the edit is based on; `null`: a new entry. */
  readonly base: StoredEntry | null;
  /** The new value as JSON text. */
  readonly text: string;
  /** Milliseconds until it expires; empty: unchanged, or never for a new entry. */
  readonly ttl: string;
  /** Whether the entry must not expire any more. */
  readonly neverExpires: boolean;
}

/** The payload of a save, or why it cannot be saved. */
export type EntryWrite =
  | { readonly ok: true; readonly payload: JsonObject; readonly value: Json }
  | {
    readonly ok: false;
    readonly field: "key" | "scope" | "value" | "ttl";
    readonly message: string;
  };

/** The initial edit of an entry. */
export function beginEdit(base: StoredEntry | null): EntryEdit {
  const text = base === null ? "{}" : visibleJson(base.value, 2);
  return { base, text, ttl: "", neverExpires: false };
}

/** The payload of `state::set` for an edit. */
export function writePayload(
  place: { readonly scope: string; readonly key: string },
  edit: EntryEdit,
  now: number,
): EntryWrite {
  if (place.scope === "") return { ok: false, field: "scope", message: "is required" };
  if (place.key === "") return { ok: false, field: "key", message: "is required" };
  let value: Json;
  try {
    value = JSON.parse(edit.text) as Json;
  } catch (thrown) {
    return { ok: false, field: "value", message: (thrown as Error).message };
  }
  const ttl_ms = ttlOf(edit, now);
  const wrong = ttl_ms === undefined ? null : ttlProblem(ttl_ms);
  if (wrong !== null) {
    const message = edit.ttl === "" ? "has passed; say how long from now" : wrong;
    return { ok: false, field: "ttl", message };
  }
  const expected_version = edit.base?.version ?? 0;
  const payload = { ...place, value, expected_version, ...ttl_ms !== undefined && { ttl_ms } };
  return { ok: true, payload, value };
}

/** What is wrong with a time to live; `null`: nothing. */
export function ttlProblem(ttl_ms: number): string | null {
  const fits = Number.isInteger(ttl_ms) && ttl_ms > 0 && ttl_ms <= TTL_MS_MAX;
  return fits ? null : "must be a whole number of milliseconds, 1 or more";
}

/** Whether the entry has another version than the edit is based on. */
export function hasConflict(edit: EntryEdit, current: StoredEntry | null): boolean {
  return (edit.base?.version ?? 0) !== (current?.version ?? 0);
}

/** The edit based on the current entry, so that saving it overwrites the conflicting change. */
export function rebaseEdit(edit: EntryEdit, current: StoredEntry | null): EntryEdit {
  return { ...edit, base: current };
}

/** Whether the edit differs from its entry. */
export function isChanged(edit: EntryEdit): boolean {
  if (edit.ttl !== "" || edit.neverExpires) return true;
  try {
    return !sameJson(JSON.parse(edit.text) as Json, edit.base?.value);
  } catch {
    return true; // Invalid JSON is a change.
  }
}

function ttlOf(edit: EntryEdit, now: number): number | undefined {
  if (edit.neverExpires) return undefined;
  if (edit.ttl.trim() !== "") return Number(edit.ttl);
  const ends = edit.base?.expires_at_ms;
  return ends === undefined ? undefined : Math.round(ends - now);
}
