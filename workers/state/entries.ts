/**
 * Values by scope and key: how they lie in the store, and what happens when they change.
 *
 * | key in the store | holds |
 * | --- | --- |
 * | `state`, scope, key | the value with its times |
 * | `state_scopes`, scope | how many keys the scope has, so that scopes are listed without them |
 * | `state_expiry`, time, scope, key | a day to look at the entry again |
 *
 * They change in one write. An entry that expires has a day in `state_expiry` that is not later
 * than its end; it may have more, and an earlier one only means that somebody looks in vain. So a
 * write need not know which days an entry has: it adds one if the end moves forward, and whoever
 * looks moves the day on.
 *
 * An expired entry is missing for everybody at once, and is removed by the next write of its key or
 * by expiry.ts.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Entry, KeyChange, Store, StoreKey } from "../../engine/ports/store.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Bytes of values in one answer of a state function. */
export const STATE_ANSWER_BYTES_MAX = 48 * 1024 * 1024;

/** Where a value lies. */
export interface Place {
  readonly scope: string;
  readonly key: string;
}

/** A value that is there and has not expired. */
export interface StateEntry extends Place {
  readonly value: Json;
  /** Length of what is stored, in bytes. */
  readonly bytes: number;
  readonly version: number;
  /** Version of the write that made the entry. */
  readonly created: number;
  /** Milliseconds since 1970. */
  readonly updated_at_ms: number;
  /** Milliseconds since 1970; `undefined`: it stays. */
  readonly expires_at_ms: number | undefined;
}

/** A change that is on disk, as triggers of type `state` hand it on. */
export interface StateEvent extends Place {
  readonly type: "state";
  readonly event_type: "state:created" | "state:updated" | "state:deleted";
  readonly old_value: Json;
  readonly new_value: Json;
}

/** What is to be at a place. */
export interface NewValue {
  readonly value: Json;
  /** Milliseconds since 1970; `undefined`: it stays. */
  readonly expires_at_ms: number | undefined;
}

/** Turns what is there into what is to be there; `undefined` is nothing, in and out. */
export type StateChange = (old: StateEntry | undefined) => NewValue | undefined;

/** What a write did. */
export interface StateChanged {
  readonly old: StateEntry | undefined;
  readonly new: StateEntry | undefined;
}

/** A day to look at an entry. */
export interface ExpiryDay extends Place {
  readonly at_ms: number;
}

/** What {@linkcode StateEntries} works with. */
export interface StateEntriesSetup {
  readonly store: Store;
  readonly clock: Pick<Clock, "wall">;
  /** Hears of every change once it is on disk; those of one key in order. Must not throw. */
  changed(event: StateEvent): void;
  /** Hears of days that were added. Must not throw. */
  expires(atMs: number): void;
}

/** Digits of a day, so that days sort as text; enough for 30,000 years. */
const DAY_DIGITS = 15;

/** The values of all scopes. */
export class StateEntries {
  readonly #setup: StateEntriesSetup;

  /** Stores. */
  constructor(setup: StateEntriesSetup) {
    this.#setup = setup;
  }

  /** The entry at a place; `undefined` when it is missing or has expired. */
  async get(place: Place): Promise<StateEntry | undefined> {
    return this.#alive(await this.#setup.store.get(entryKey(place)));
  }

  /** Entries of a scope in key order, `limit` at most, behind the key `after`. */
  async list(scope: string, limit: number, after?: string): Promise<Listed> {
    const behind = after === undefined ? undefined : entryKey({ scope, key: after });
    const found = await this.#setup.store.list(["state", scope], limit, behind);
    const alive = found.map((entry) => this.#alive(entry)).filter((entry) => entry !== undefined);
    return { entries: alive, last: found.length < limit ? undefined : found.at(-1)?.key[2] };
  }

  /** Names of scopes that have keys, sorted, `limit` at most, behind the name `after`. */
  async scopes(limit: number, after?: string): Promise<string[]> {
    const behind = after === undefined ? undefined : ["state_scopes", after];
    const found = await this.#setup.store.list(["state_scopes"], limit, behind);
    return found.map(({ key }) => key[1]!);
  }

  /** Changes one place and resolves when it is on disk. Throws what `change` throws. */
  async write(place: Place, change: StateChange, expiresAtMs?: number): Promise<StateChanged> {
    const now = this.#setup.clock.wall();
    let before: Entry | undefined;
    let after: JsonObject | undefined;
    const changes: KeyChange[] = [
      [entryKey(place), (entry) => {
        before = entry;
        return isExpired(entry, now) ? undefined : entry;
      }],
      [entryKey(place), (entry) => {
        const next = change(entry && readEntry(entry));
        after = next && recordOf(next, now);
        return after;
      }],
      [scopeKey(place), (count) => counted(count, before !== undefined, after !== undefined)],
    ];
    if (expiresAtMs !== undefined) {
      changes.push([dayKey({ ...place, at_ms: expiresAtMs }), (day) => {
        const hadUntil = before && endOf(before);
        return hadUntil !== undefined && hadUntil <= expiresAtMs ? day : true;
      }]);
    }
    const [expired, changed] = await this.#setup.store.write(changes);
    if (expired!.old && !expired!.new) this.#report(place, expired!.old, undefined);
    this.#report(place, changed!.old, changed!.new);
    if (expiresAtMs !== undefined) this.#setup.expires(expiresAtMs);
    return {
      old: changed!.old && readEntry(changed!.old),
      new: changed!.new && readEntry(changed!.new),
    };
  }

  /** The earliest days on which to look at an entry, `limit` at most. */
  async days(limit: number): Promise<ExpiryDay[]> {
    const found = await this.#setup.store.list(["state_expiry"], limit);
    return found.map(({ key: [, at, scope, key] }) => {
      return { at_ms: Number(at), scope: scope!, key: key! };
    });
  }

  /** Looks at the entry of a day that has come: removes what has expired, or moves the day on. */
  async look(day: ExpiryDay): Promise<void> {
    const now = this.#setup.clock.wall();
    const seen = await this.#setup.store.get(entryKey(day));
    const end = seen && endOf(seen);
    const removes = end !== undefined && end <= now;
    const changes: KeyChange[] = [
      [entryKey(day), (entry) => {
        if (entry?.version !== seen?.version) throw new Overtaken();
        return removes ? undefined : entry;
      }],
      [dayKey(day), () => undefined],
    ];
    if (removes) changes.push([scopeKey(day), (count) => counted(count, true, false)]);
    else if (end !== undefined) changes.push([dayKey({ ...day, at_ms: end }), () => true]);
    try {
      const [changed] = await this.#setup.store.write(changes);
      if (removes) this.#report(day, changed!.old, undefined);
    } catch (thrown) {
      if (!(thrown instanceof Overtaken)) throw thrown;
      await this.look(day);
    }
  }

  #alive(entry: Entry | undefined): StateEntry | undefined {
    return entry && !isExpired(entry, this.#setup.clock.wall()) ? readEntry(entry) : undefined;
  }

  #report({ scope, key }: Place, old: Entry | undefined, entry: Entry | undefined): void {
    if (!old && !entry) return;
    const event_type = !entry ? "state:deleted" : !old ? "state:created" : "state:updated";
    const old_value = old ? valueOf(old) : null;
    const new_value = entry ? valueOf(entry) : null;
    this.#setup.changed({ type: "state", event_type, scope, key, old_value, new_value });
  }
}

/** One page of a scope. */
export interface Listed {
  readonly entries: readonly StateEntry[];
  /** The key to go on behind; `undefined` when that was all. */
  readonly last: string | undefined;
}

/** The entry was written while somebody looked at it. */
class Overtaken extends Error {}

function entryKey({ scope, key }: Place): StoreKey {
  return ["state", scope, key];
}

function scopeKey({ scope }: Place): StoreKey {
  return ["state_scopes", scope];
}

function dayKey({ at_ms, scope, key }: ExpiryDay): StoreKey {
  return ["state_expiry", String(at_ms).padStart(DAY_DIGITS, "0"), scope, key];
}

/** The number of keys of a scope after one of them came, went or stayed. */
function counted(count: Entry | undefined, was: boolean, is: boolean): Entry | Json | undefined {
  if (was === is) return count;
  const keys = (count ? count.value as number : 0) + (is ? 1 : -1);
  return keys > 0 ? keys : undefined;
}

function recordOf({ value, expires_at_ms }: NewValue, now: number): JsonObject {
  const record: JsonObject = { value, updated_at_ms: now };
  if (expires_at_ms !== undefined) record.expires_at_ms = expires_at_ms;
  return record;
}

function readEntry(entry: Entry): StateEntry {
  const { value, updated_at_ms } = entry.value as JsonObject;
  const { key: [, scope, key], bytes, version, created } = entry;
  return {
    scope: scope!,
    key: key!,
    value: value!,
    bytes,
    version,
    created,
    updated_at_ms: updated_at_ms as number,
    expires_at_ms: endOf(entry),
  };
}

function valueOf(entry: Entry): Json {
  return (entry.value as JsonObject).value!;
}

function endOf(entry: Entry): number | undefined {
  return (entry.value as JsonObject).expires_at_ms as number | undefined;
}

function isExpired(entry: Entry | undefined, now: number): boolean {
  const end = entry && endOf(entry);
  return end !== undefined && end <= now;
}

const PAGE_FIRST = 16;
const PAGE_MAX = 1_000;
/** A page that has more is followed by a smaller one. */
const PAGE_BYTES = 1024 * 1024;

/** Which entries of a scope. */
export interface EntriesQuery {
  readonly scope: string;
  readonly prefix: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/**
 * All values of a scope, the oldest entry first.
 *
 * @throws {EngineError} `LIST_ERROR` when they are too large for one answer.
 */
export async function listValues(entries: StateEntries, scope: string): Promise<Json[]> {
  const found: StateEntry[] = [];
  let bytes = 0;
  for await (const entry of readScope(entries, scope, undefined)) {
    bytes += entry.bytes;
    if (bytes > STATE_ANSWER_BYTES_MAX) {
      const message = `Scope ${scope} is too large for one answer; use state::list_entries`;
      throw new EngineError("LIST_ERROR", message, { details: { scope } });
    }
    found.push(entry);
  }
  return found.sort((a, b) => a.created - b.created).map(({ value }) => value);
}

/** One page of entries in key order, and a cursor if there are more. */
export async function listEntries(entries: StateEntries, query: EntriesQuery): Promise<JsonObject> {
  const { scope, prefix, limit, cursor } = query;
  const page: JsonObject[] = [];
  let bytes = 0;
  let last = cursor;
  for await (const entry of readPrefix(entries, scope, prefix, cursor)) {
    bytes += entry.bytes;
    const isFull = page.length === limit || bytes > STATE_ANSWER_BYTES_MAX;
    if (isFull && page.length > 0) return { entries: page, cursor: last! };
    const { key, value, version } = entry;
    page.push({ key, value, version });
    last = key;
  }
  return { entries: page };
}

/** Names of all scopes that have keys, sorted. */
export async function listScopes(entries: StateEntries): Promise<string[]> {
  const names: string[] = [];
  let page: string[];
  do {
    page = await entries.scopes(PAGE_MAX, names.at(-1));
    names.push(...page);
  } while (page.length === PAGE_MAX);
  return names;
}

/** Entries whose key starts with a prefix; a key that is the prefix itself sorts before them. */
async function* readPrefix(
  entries: StateEntries,
  scope: string,
  prefix: string,
  cursor: string | undefined,
): AsyncGenerator<StateEntry> {
  if (cursor === undefined && prefix !== "") {
    const exact = await entries.get({ scope, key: prefix });
    if (exact) yield exact;
  }
  for await (const entry of readScope(entries, scope, cursor ?? (prefix || undefined))) {
    if (!entry.key.startsWith(prefix)) return;
    yield entry;
  }
}

async function* readScope(
  entries: StateEntries,
  scope: string,
  after: string | undefined,
): AsyncGenerator<StateEntry> {
  let limit = PAGE_FIRST;
  let last = after;
  do {
    const page = await entries.list(scope, limit, last);
    yield* page.entries;
    last = page.last;
    const bytes = page.entries.reduce((sum, entry) => sum + entry.bytes, 0);
    limit = bytes > PAGE_BYTES ? Math.ceil(limit / 4) : Math.min(PAGE_MAX, limit * 4);
  } while (last !== undefined);
}
