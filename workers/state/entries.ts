/**
 * State entries by scope and key: their layout in the store, reads, writes and expiry.
 *
 * | key in the store | value |
 * | --- | --- |
 * | `state`, scope, key | the value with its times |
 * | `state_scopes`, scope | number of keys in the scope, for listing scopes |
 * | `state_expiry`, time, scope, key | an expiry record: when to check the entry |
 *
 * All three change in one write. An entry that expires has an expiry record not later than its
 * expiry. It may have others; a check that comes too early has no effect. So a write need not know
 * the existing records: it adds one if the expiry moves forward, and a check moves its record on.
 *
 * An expired entry is invisible at once. The next write of its key or `expiry.ts` removes it.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type {
  Changed,
  Entry,
  KeyChange,
  Store,
  StoreKey,
  WriteOptions,
} from "../../engine/ports/store.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  expiryOf,
  isExpired,
  type NewValue,
  type Place,
  RecordedEntry,
  recordOf,
  type StateEntry,
  valueOf,
} from "./record.ts";

/** Bytes of values in one answer of a state function. */
export const STATE_ANSWER_BYTES_MAX = 48 * 1024 * 1024;

/** A committed change; the payload of triggers of type `state`. */
export interface StateEvent extends Place {
  readonly type: "state";
  readonly event_type: "state:created" | "state:updated" | "state:deleted";
  readonly old_value: Json;
  readonly new_value: Json;
}

/**
 * Computes the new value of an entry; `undefined` means absent, in and out. Returning `old` itself
 * keeps the entry without a new version.
 */
export type StateChange = (old: StateEntry | undefined) => NewValue | undefined;

/** A change of one entry. */
export interface EntryChange {
  readonly place: Place;
  readonly change: StateChange;
  /** When a new entry expires, in milliseconds since 1970; `undefined`: never, or as before. */
  readonly expiresAtMs?: number | undefined;
}

/** Result of a write. */
export interface StateChanged {
  readonly old: StateEntry | undefined;
  readonly new: StateEntry | undefined;
}

/** When to check an entry for expiry, in milliseconds since 1970. */
export interface ExpiryRecord extends Place {
  readonly at_ms: number;
}

/** First parts of the keys in the store, see the module. */
export interface EntryTables {
  readonly entries: string;
  readonly scopes: string;
  readonly expiries: string;
}

const STATE_TABLES: EntryTables = {
  entries: "state",
  scopes: "state_scopes",
  expiries: "state_expiry",
};

/** Dependencies of {@linkcode StateEntries}. */
export interface StateEntriesSetup {
  readonly store: Store;
  /** Default: those of the state. Another worker keeps entries of its own in others. */
  readonly tables?: EntryTables;
  readonly clock: Pick<Clock, "wall">;
  /** How writes are made. Default: they resolve when they are durable. */
  readonly writes?: WriteOptions;
  /**
   * Called with every committed change and the bytes of its values; those of one key in order. Must
   * not throw. `event` parses the values.
   */
  changed(event: () => StateEvent, bytes: number): void;
  /** Called with the time of a new expiry record. Must not throw. */
  expires(atMs: number): void;
}

/** Digits of the time in a key, so that keys sort by time; enough for 30,000 years. */
const TIME_DIGITS = 15;

/** The entries of all scopes. */
export class StateEntries {
  readonly #setup: StateEntriesSetup;
  readonly #tables: EntryTables;

  constructor(setup: StateEntriesSetup) {
    this.#setup = setup;
    this.#tables = setup.tables ?? STATE_TABLES;
  }

  /** One entry; `undefined` if missing or expired. */
  async get(place: Place): Promise<StateEntry | undefined> {
    return this.#alive(await this.#setup.store.get(entryKey(this.#tables, place)));
  }

  /** Up to `limit` entries of a scope in key order, after the key `after`. */
  async list(
    scope: string,
    limit: number,
    after?: string,
    bytesMax: number = LIST_BYTES,
  ): Promise<EntryPage> {
    const behind = after === undefined ? undefined : entryKey(this.#tables, { scope, key: after });
    const { store } = this.#setup;
    const found = await store.list([this.#tables.entries, scope], limit, behind, bytesMax);
    const bytes = found.reduce((sum, entry) => sum + entry.bytes, 0);
    const isLast = found.length < limit && bytes < bytesMax;
    const entries = found.map((entry) =>
      entry.damaged === undefined ? this.#alive(entry) : entry.key[2]!
    );
    return {
      entries: entries.filter((entry) => entry !== undefined),
      last: isLast ? undefined : found.at(-1)?.key[2],
    };
  }

  /** Up to `limit` names of scopes with entries, sorted, after the name `after`. */
  async scopes(limit: number, after?: string): Promise<string[]> {
    const behind = after === undefined ? undefined : [this.#tables.scopes, after];
    const found = await this.#setup.store.list([this.#tables.scopes], limit, behind);
    return found.map(({ key }) => key[1]!);
  }

  /**
   * Changes one entry. Throws what `change` throws. Not an async function: thousands of writes may
   * be open, and each function that waits keeps six objects for each of them.
   */
  write(place: Place, change: StateChange, expiresAtMs?: number): Promise<StateChanged> {
    const { store, clock, writes } = this.#setup;
    const changes = this.#changesOf({ place, change, expiresAtMs }, clock.wall());
    return store.write(changes, writes).then(
      (changed) => this.#written(place, changed, 0, expiresAtMs),
      async (thrown) => {
        await this.#repair(thrown);
        return this.write(place, change, expiresAtMs);
      },
    );
  }

  /** Changes several entries, all or none; each place occurs once. Throws what a change throws. */
  async writeAll(all: readonly EntryChange[]): Promise<StateChanged[]> {
    const now = this.#setup.clock.wall();
    const parts = all.map((each) => this.#changesOf(each, now));
    const changed = await this.#writeCounted(parts.length === 1 ? parts[0]! : parts.flat());
    let at = 0;
    return all.map(({ place, expiresAtMs }, i) => {
      const first = at;
      at += parts[i]!.length;
      return this.#written(place, changed, first, expiresAtMs);
    });
  }

  /** Reports a change that was written, whose parts begin at `first`; its result. */
  #written(
    place: Place,
    changed: readonly Changed[],
    first: number,
    expiresAtMs: number | undefined,
  ): StateChanged {
    const [expired, written] = [changed[first]!, changed[first + 1]!];
    if (expired.old && !expired.new) this.#report(place, expired.old, undefined);
    if (written.old !== written.new) this.#report(place, written.old, written.new);
    if (expiresAtMs !== undefined) this.#setup.expires(expiresAtMs);
    const isReadable = written.old !== undefined && written.old.damaged === undefined;
    return {
      old: isReadable ? new RecordedEntry(written.old!) : undefined,
      new: written.new && written.new.damaged === undefined
        ? new RecordedEntry(written.new)
        : undefined,
    };
  }

  /** What the store does for a change: drop the expired entry, write the new one, count, expire. */
  #changesOf({ place, change, expiresAtMs }: EntryChange, now: number): KeyChange[] {
    let before: Entry | undefined;
    let isThere = false;
    const key = entryKey(this.#tables, place);
    const changes: KeyChange[] = [
      [key, (entry) => {
        before = entry;
        return isExpired(entry, now) ? undefined : entry;
      }],
      [key, (entry) => {
        const old = entry && entry.damaged === undefined ? new RecordedEntry(entry) : undefined;
        const next = change(old);
        const isKept = next === old && (next !== undefined || entry === undefined);
        isThere = isKept ? entry !== undefined : next !== undefined;
        return isKept ? entry : next && recordOf(next, now);
      }],
      [
        scopeKey(this.#tables, place),
        (count) => countAfter(place, count, before !== undefined, isThere),
      ],
    ];
    if (expiresAtMs !== undefined) {
      changes.push([expiryKey(this.#tables, { ...place, at_ms: expiresAtMs }), (record) => {
        const isReadable = before !== undefined && before.damaged === undefined;
        const previous = isReadable ? expiryOf(before!) : undefined;
        return previous !== undefined && previous <= expiresAtMs ? record : true;
      }]);
    }
    return changes;
  }

  /** Writes; a damaged number of keys is counted anew first. */
  async #writeCounted(changes: readonly KeyChange[]): Promise<Changed[]> {
    for (;;) {
      try {
        return await this.#setup.store.write(changes, this.#setup.writes);
      } catch (thrown) {
        await this.#repair(thrown);
      }
    }
  }

  /** Counts the keys of a scope again whose number is damaged; throws any other error. */
  async #repair(thrown: unknown): Promise<void> {
    if (!(thrown instanceof DamagedCount)) throw thrown;
    await this.#countAgain(thrown.scope);
  }

  async #countAgain(scope: string): Promise<void> {
    // While the number is damaged, no write adds or removes a key, so the count stays right.
    let keys = 0;
    let page: Entry[];
    let after: StoreKey | undefined;
    do {
      page = await this.#setup.store.list(
        [this.#tables.entries, scope],
        PAGE_MAX,
        after,
        LIST_BYTES,
      );
      keys += page.length;
      after = page.at(-1)?.key;
    } while (page.length > 0);
    await this.#setup.store.write([[
      scopeKey(this.#tables, { scope, key: "" }),
      (count) => count?.damaged === undefined ? count : keys > 0 ? keys : undefined,
    ]]);
  }

  /** Up to `limit` expiry records, the earliest first. */
  async expiries(limit: number): Promise<ExpiryRecord[]> {
    const found = await this.#setup.store.list([this.#tables.expiries], limit);
    return found.map(({ key: [, at, scope, key] }) => {
      return { at_ms: Number(at), scope: scope!, key: key! };
    });
  }

  /** Handles a due expiry record: removes the entry if expired, else moves the record on. */
  async expire(record: ExpiryRecord): Promise<void> {
    const now = this.#setup.clock.wall();
    const seen = await this.#seen(record);
    const expiresAtMs = seen && expiryOf(seen);
    const removes = expiresAtMs !== undefined && expiresAtMs <= now;
    const changes: KeyChange[] = [
      [entryKey(this.#tables, record), (entry) => {
        if (entry?.damaged !== undefined) return entry;
        if (entry?.version !== seen?.version) throw new WriteConflict();
        return removes ? undefined : entry;
      }],
      [expiryKey(this.#tables, record), () => undefined],
    ];
    if (removes) {
      changes.push([
        scopeKey(this.#tables, record),
        (count) => countAfter(record, count, true, false),
      ]);
    } else if (expiresAtMs !== undefined) {
      changes.push([expiryKey(this.#tables, { ...record, at_ms: expiresAtMs }), () => true]);
    }
    try {
      const [changed] = await this.#writeCounted(changes);
      if (removes) this.#report(record, changed!.old, undefined);
    } catch (thrown) {
      if (!(thrown instanceof WriteConflict)) throw thrown;
      await this.expire(record);
    }
  }

  /** The entry of an expiry record; none when it is damaged, since its expiry is unknown. */
  async #seen(record: ExpiryRecord): Promise<Entry | undefined> {
    try {
      return await this.#setup.store.get(entryKey(this.#tables, record));
    } catch (thrown) {
      const { damaged } = this.#setup.store.status;
      if (!damaged.some(({ key }) => isSameKey(key, entryKey(this.#tables, record)))) throw thrown;
      return undefined;
    }
  }

  #alive(entry: Entry | undefined): StateEntry | undefined {
    if (!entry || entry.damaged !== undefined) return undefined;
    return isExpired(entry, this.#setup.clock.wall()) ? undefined : new RecordedEntry(entry);
  }

  #report({ scope, key }: Place, old: Entry | undefined, entry: Entry | undefined): void {
    if (!old && !entry) return;
    const event_type = !entry ? "state:deleted" : !old ? "state:created" : "state:updated";
    const event = (): StateEvent => {
      const old_value = old && old.damaged === undefined ? valueOf(old) : null;
      const new_value = entry ? valueOf(entry) : null;
      return { type: "state", event_type, scope, key, old_value, new_value };
    };
    this.#setup.changed(event, (old?.bytes ?? 0) + (entry?.bytes ?? 0));
  }
}

/** A page of a scope. */
export interface EntryPage {
  /** In key order; of an entry that cannot be read only the key. */
  readonly entries: readonly (StateEntry | string)[];
  /** Key after which the next page starts; `undefined` on the last page. */
  readonly last: string | undefined;
}

/** The number of keys of a scope cannot be read. */
class DamagedCount extends Error {
  readonly scope: string;

  constructor(scope: string) {
    super();
    this.scope = scope;
  }
}

/** The entry was written between reading and removing it. */
class WriteConflict extends Error {}

function entryKey({ entries }: EntryTables, { scope, key }: Place): StoreKey {
  return [entries, scope, key];
}

function scopeKey({ scopes }: EntryTables, { scope }: Place): StoreKey {
  return [scopes, scope];
}

function expiryKey({ expiries }: EntryTables, { at_ms, scope, key }: ExpiryRecord): StoreKey {
  return [expiries, String(at_ms).padStart(TIME_DIGITS, "0"), scope, key];
}

/** The number of keys of a scope, given whether the key existed before and exists now. */
function countAfter(
  { scope }: Place,
  count: Entry | undefined,
  was: boolean,
  is: boolean,
): Entry | Json | undefined {
  if (was === is) return count;
  if (count?.damaged !== undefined) throw new DamagedCount(scope);
  const keys = (count ? count.value as number : 0) + (is ? 1 : -1);
  return keys > 0 ? keys : undefined;
}

function isSameKey(one: StoreKey, other: StoreKey): boolean {
  return one.length === other.length && one.every((part, i) => part === other[i]);
}

/** Bytes that are read from the store at once. */
const LIST_BYTES = 8 * 1024 * 1024;
/** Bytes of values that become text at once. */
const TEXT_BYTES = 2 * 1024 * 1024;
/** Names in one answer of `state::list_groups`; each has 900 bytes at most. */
export const SCOPES_MAX = 50_000;
const PAGE_FIRST = 16;
const PAGE_MAX = 1_000;
/** After a larger page, the next one has fewer entries. */
const PAGE_BYTES = 1024 * 1024;

/** Takes the memory of an entry, before it becomes part of an answer. */
export type AddBytes = (bytes: number) => Promise<void>;

/** Parameters of {@linkcode listEntries}. */
export interface EntriesQuery {
  readonly scope: string;
  readonly prefix: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** All values of a scope, the oldest first, as text; `undefined` if they have more bytes. */
export async function listValues(
  entries: StateEntries,
  scope: string,
  bytesMax: number,
  add: AddBytes,
): Promise<JsonText | undefined> {
  const found: StateEntry[] = [];
  let bytes = 0;
  for await (const entry of readScope(entries, scope, undefined)) {
    if (typeof entry === "string") continue; // The store has reported it.
    bytes += entry.bytes;
    if (bytes > bytesMax) return undefined;
    await add(entry.bytes);
    found.push(entry);
  }
  return listOf(found);
}

function listOf(found: { readonly created: number; readonly json: string }[]): JsonText {
  found.sort((a, b) => a.created - b.created);
  return new JsonText(`[${found.map(({ json }) => json).join(",")}]`);
}

/**
 * The same as text. `giveWay` is awaited after every {@linkcode TEXT_BYTES}.
 *
 * @throws {EngineError} `LIST_ERROR` if they are too large for one answer.
 */
export async function listText(
  entries: StateEntries,
  scope: string,
  add: AddBytes,
  giveWay: () => Promise<void>,
): Promise<JsonText> {
  const found: { readonly created: number; readonly json: string }[] = [];
  let bytes = 0;
  let turnAt = TEXT_BYTES;
  for await (const entry of readScope(entries, scope, undefined, TEXT_BYTES)) {
    if (typeof entry === "string") continue; // The store has reported it.
    bytes += entry.bytes;
    if (bytes > STATE_ANSWER_BYTES_MAX) {
      const message = `Scope ${scope} is too large for one answer; use state::list_entries`;
      throw new EngineError("LIST_ERROR", message, { details: { scope } });
    }
    await add(entry.bytes);
    found.push({ created: entry.created, json: entry.json });
    if (bytes < turnAt) continue;
    turnAt = bytes + TEXT_BYTES;
    await giveWay();
  }
  return listOf(found);
}

/** One page of entries in key order, and a cursor if there are more. */
export async function listEntries(
  entries: StateEntries,
  query: EntriesQuery,
  add: AddBytes,
): Promise<JsonObject> {
  const { scope, prefix, limit, cursor } = query;
  const page: JsonObject[] = [];
  const damaged: string[] = [];
  const more = (): JsonObject =>
    damaged.length > 0 ? { entries: page, damaged } : { entries: page };
  let bytes = 0;
  let last = cursor;
  for await (const entry of readPrefix(entries, scope, prefix, cursor)) {
    if (typeof entry === "string") {
      damaged.push(entry);
      continue;
    }
    bytes += entry.bytes;
    const isFull = page.length === limit || bytes > STATE_ANSWER_BYTES_MAX;
    if (isFull && page.length > 0) return { ...more(), cursor: last! };
    await add(entry.bytes);
    const { key, value, version } = entry;
    page.push({ key, value, version });
    last = key;
  }
  return more();
}

/** What of the names of scopes an answer has. */
export interface ScopesQuery {
  /** Names at most, and not more than {@linkcode SCOPES_MAX}. */
  readonly limit?: number | undefined;
  /** Names after this one, which need not exist. */
  readonly cursor?: string | undefined;
}

/** Names of scopes. */
export interface ScopesPage {
  readonly names: readonly string[];
  /** The last name, if there are more. */
  readonly cursor?: string;
}

/** Names of scopes with entries, sorted. */
export async function listScopes(
  entries: StateEntries,
  { limit = SCOPES_MAX, cursor }: ScopesQuery = {},
): Promise<ScopesPage> {
  const max = Math.min(limit, SCOPES_MAX);
  const names: string[] = [];
  for (;;) {
    const wanted = Math.min(max + 1 - names.length, PAGE_MAX);
    const page = await entries.scopes(wanted, names.at(-1) ?? cursor);
    names.push(...page);
    if (names.length > max) return { names: names.slice(0, max), cursor: names[max - 1]! };
    if (page.length < wanted) return { names };
  }
}

/** Entries whose key starts with a prefix; a key equal to the prefix comes first. */
async function* readPrefix(
  entries: StateEntries,
  scope: string,
  prefix: string,
  cursor: string | undefined,
): AsyncGenerator<StateEntry | string> {
  if (cursor === undefined && prefix !== "") {
    const exact = await entries.get({ scope, key: prefix });
    if (exact) yield exact;
  }
  for await (const entry of readScope(entries, scope, cursor ?? (prefix || undefined))) {
    if (!(typeof entry === "string" ? entry : entry.key).startsWith(prefix)) return;
    yield entry;
  }
}

function bytesOf(entry: StateEntry | string): number {
  return typeof entry === "string" ? 0 : entry.bytes;
}

/** The entries of a scope in key order; of a damaged one only its key. */
export async function* readScope(
  entries: StateEntries,
  scope: string,
  after: string | undefined,
  pageBytes: number = LIST_BYTES,
): AsyncGenerator<StateEntry | string> {
  let limit = PAGE_FIRST;
  let last = after;
  do {
    // Of many lists at once each holds its first page; the others come one list after another.
    const bytesMax = last === after ? PAGE_BYTES : pageBytes;
    const page = await entries.list(scope, limit, last, bytesMax);
    yield* page.entries;
    last = page.last;
    const bytes = page.entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
    limit = bytes > PAGE_BYTES ? Math.ceil(limit / 4) : Math.min(PAGE_MAX, limit * 4);
  } while (last !== undefined);
}
