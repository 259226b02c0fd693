/**
 * An entry being edited: what it was when editing began, what it is to become, and what meanwhile
 * happened to it.
 *
 * A save names the version that the person saw, so nobody's change is overwritten unseen. An entry
 * that expires keeps its end unless the person says otherwise: a plain write would take it away.
 *
 * @module
 */
import { sameJson, visibleJson } from "../../kit/json.ts";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";

/** Longest life of an entry, as `engine-state` allows it: a hundred years. */
const TTL_MS_MAX = 3_155_760_000_000;

/** The answer of `state::entry`. */
export interface StoredEntry {
  readonly value: Json;
  readonly version: number;
  readonly updated_at_ms: number;
  readonly expires_at_ms?: number;
}

/** What the person does. */
export interface EntryEdit {
  /** What was seen; `null`: there was no entry. */
  readonly base: StoredEntry | null;
  /** JSON text of the new value. */
  readonly text: string;
  /** Milliseconds until it expires; empty: as it was, or never for a new one. */
  readonly ttl: string;
  /** Shall not expire any more. */
  readonly isLasting: boolean;
}

/** What to send, or why nothing can be sent. */
export type EntryWrite =
  | { readonly ok: true; readonly payload: JsonObject; readonly value: Json }
  | {
    readonly ok: false;
    readonly field: "key" | "scope" | "value" | "ttl";
    readonly message: string;
  };

/** Editing begins with what is there. */
export function beginEdit(base: StoredEntry | null): EntryEdit {
  const text = base === null ? "{}" : visibleJson(base.value, 2);
  return { base, text, ttl: "", isLasting: false };
}

/** The payload of `state::set` for an edit. */
export function writeOf(
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
  const ttl_ms = lifeOf(edit, now);
  if (
    ttl_ms !== undefined && !(Number.isInteger(ttl_ms) && ttl_ms > 0 && ttl_ms <= TTL_MS_MAX)
  ) {
    const message = edit.ttl === "" ? "has passed; say how long from now" : "must be a whole " +
      "number of milliseconds, 1 or more";
    return { ok: false, field: "ttl", message };
  }
  const expected_version = edit.base?.version ?? 0;
  const payload = { ...place, value, expected_version, ...ttl_ms !== undefined && { ttl_ms } };
  return { ok: true, payload, value };
}

/** Whether the entry is another than the one that was seen. */
export function isOvertaken(edit: EntryEdit, current: StoredEntry | null): boolean {
  return (edit.base?.version ?? 0) !== (current?.version ?? 0);
}

/** The edit on top of what is there now: saving it overwrites what was shown as a conflict. */
export function rebased(edit: EntryEdit, current: StoredEntry | null): EntryEdit {
  return { ...edit, base: current };
}

/** Whether leaving would lose something. */
export function isChanged(edit: EntryEdit): boolean {
  if (edit.ttl !== "" || edit.isLasting) return true;
  try {
    return !sameJson(JSON.parse(edit.text) as Json, edit.base?.value);
  } catch {
    return true; // Half-written JSON is a change.
  }
}

function lifeOf(edit: EntryEdit, now: number): number | undefined {
  if (edit.isLasting) return undefined;
  if (edit.ttl.trim() !== "") return Number(edit.ttl);
  const ends = edit.base?.expires_at_ms;
  return ends === undefined ? undefined : Math.round(ends - now);
}
