/**
 * The items of streams on the store, as `engine-state` keeps its entries: written before they are
 * acknowledged, in tables of their own. A group of a stream is a scope there, an item a key.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Store } from "../../engine/ports/store.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { listScopes, type ScopesQuery, StateEntries, type StateEvent } from "../state/entries.ts";

/** Separates stream and group in a scope; no name has it. */
const SEPARATOR = "\0";
/** Names of groups that are read at once. */
const PAGE = 1_000;
/** Groups in one answer of `stream::list_groups`. */
export const GROUPS_MAX = 50_000;

/** Where the items stand in the store. */
const TABLES = { entries: "stream", scopes: "stream_groups", expiries: "stream_expiry" };

/** Address of a group. */
export interface GroupPlace {
  readonly stream_name: string;
  readonly group_id: string;
}

/** Address of an item. */
export interface ItemPlace extends GroupPlace {
  readonly item_id: string;
}

/** What happened to a group or an item. */
export type StreamHappening =
  | { readonly type: "create" | "update" | "delete"; readonly data: Json }
  | { readonly type: "event"; readonly event: { readonly type: string; readonly data: Json } };

/** An event as triggers and subscribers get it. */
export interface StreamEvent {
  readonly type: "stream";
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly streamName: string;
  readonly groupId: string;
  readonly id: string | null;
  readonly event: StreamHappening;
}

/** Dependencies of {@linkcode streamItems}. */
export interface StreamItemsSetup {
  readonly store: Store;
  readonly clock: Pick<Clock, "wall">;
  /** Called with every committed change and the bytes of its values. Must not throw. */
  changed(event: StreamEvent, bytes: number): void;
  /** Called with the time of a new expiry record. Must not throw. */
  expires(atMs: number): void;
}

/** The entries that are the items of all streams. */
export function streamItems({ store, clock, changed, expires }: StreamItemsSetup): StateEntries {
  return new StateEntries({
    store,
    clock,
    tables: TABLES,
    changed: (event, bytes) => changed(eventOf(event(), clock.wall()), bytes),
    expires,
  });
}

/** The scope that a group is. */
export function scopeOf({ stream_name, group_id }: GroupPlace): string {
  return `${stream_name}${SEPARATOR}${group_id}`;
}

/** The entry that an item is. */
export function entryOf(place: ItemPlace): { readonly scope: string; readonly key: string } {
  return { scope: scopeOf(place), key: place.item_id };
}

/**
 * Groups of a stream that have items, sorted; `undefined` if there are too many and `limit` does
 * not say how many are wanted. `cursor`: those after this one.
 */
export async function listGroups(
  entries: Pick<StateEntries, "scopes">,
  stream_name: string,
  { limit, cursor = "" }: ScopesQuery = {},
): Promise<string[] | undefined> {
  const prefix = `${stream_name}${SEPARATOR}`;
  const max = Math.min(limit ?? GROUPS_MAX, GROUPS_MAX);
  const groups: string[] = [];
  let after = `${prefix}${cursor}`;
  for (;;) {
    const page = await entries.scopes(PAGE, after);
    const own = page.filter((scope) => scope.startsWith(prefix));
    for (const scope of own) groups.push(scope.slice(prefix.length));
    if (groups.length > max) return limit === undefined ? undefined : groups.slice(0, max);
    if (own.length < PAGE) return groups;
    after = page.at(-1)!;
  }
}

/** Streams that have items, with their groups, sorted; a stream may go on in the next page. */
export async function listStreams(
  entries: StateEntries,
  query: ScopesQuery = {},
): Promise<{ streams: { id: string; groups: string[] }[]; cursor?: string }> {
  const streams: { id: string; groups: string[] }[] = [];
  const { names, cursor } = await listScopes(entries, query);
  for (const scope of names) {
    const [id, group] = partsOf(scope);
    if (streams.at(-1)?.id !== id) streams.push({ id, groups: [] });
    streams.at(-1)!.groups.push(group);
  }
  return { streams, ...cursor !== undefined && { cursor } };
}

/** An event of a group, or of an item. */
export function makeEvent(
  { stream_name, group_id }: GroupPlace,
  id: string | null,
  timestamp: number,
  event: StreamHappening,
): StreamEvent {
  return { type: "stream", timestamp, streamName: stream_name, groupId: group_id, id, event };
}

/** The happening that a change is; `undefined` for one that is none. */
export function changeOf(
  old: Json | undefined,
  now: Json | undefined,
): StreamHappening | undefined {
  if (now === undefined) return old === undefined ? undefined : { type: "delete", data: old };
  return { type: old === undefined ? "create" : "update", data: now };
}

function eventOf({ event_type, scope, key, old_value, new_value }: StateEvent, now: number) {
  const [stream_name, group_id] = partsOf(scope);
  const type = KINDS[event_type];
  const data = type === "delete" ? old_value : new_value;
  return makeEvent({ stream_name, group_id }, key, now, { type, data });
}

const KINDS = {
  "state:created": "create",
  "state:updated": "update",
  "state:deleted": "delete",
} as const;

function partsOf(scope: string): [stream_name: string, group_id: string] {
  const at = scope.indexOf(SEPARATOR);
  return [scope.slice(0, at), scope.slice(at + SEPARATOR.length)];
}
