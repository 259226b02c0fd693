/**
 * Entries by key, such as those of one scope: fetched page by page, and kept up to date by changes.
 *
 * Pages come in the order of keys. A change beyond the last fetched page is left to its page; one
 * before it is applied at once. Lists are immutable: each step makes another one.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedTrigger } from "../../../wire.ts";
import { CallFailure, useLive, useTrigger } from "../../kit/mod.ts";

/** Entries fetched at once. */
const PAGE_ENTRIES = 500;
/** Entries that the page holds, also for a search in all of them. */
const ENTRIES_MAX = 20_000;
/** Changes that the page remembers. */
const CHANGES_MAX = 200;
/** Changes within this time are shown together. */
const CHANGES_BATCH_MS = 100;
/** With more of them waiting, as in a page that is in the background, everything is read anew. */
const WAITING_MAX = 10_000;

/** An entry of the list. */
export interface ShownEntry {
  readonly key: string;
  readonly value: Json;
  /** `null` after a change, which has no version. */
  readonly version: number | null;
  /** When it last changed, in milliseconds since 1970; `null`: not since it was fetched. */
  readonly changed_ms: number | null;
}

/** What is known of the entries. */
export interface EntryList {
  /** Sorted by key, as the engine sorts. */
  readonly entries: readonly ShownEntry[];
  /** The start of the next page; `null`: everything was fetched. */
  readonly cursor: string | null;
  readonly isComplete: boolean;
}

/** The payload of a trigger of type `state`. */
export interface StateChange {
  readonly event_type: "state:created" | "state:updated" | "state:deleted";
  readonly scope: string;
  readonly key: string;
  readonly old_value: Json;
  readonly new_value: Json;
}

/** A page of entries. */
export interface EntriesPage {
  readonly entries: readonly {
    readonly key: string;
    readonly value: Json;
    readonly version: number | null;
  }[];
  readonly cursor?: string | null;
}

/** Where entries are from, and how their changes arrive. Equal sources are the same. */
export interface EntrySource<Happening> {
  /** Returns pages of entries, given `limit` and `cursor`. */
  readonly function_id: string;
  readonly payload: JsonObject;
  readonly trigger: WatchedTrigger;
  readPage(answer: Json): EntriesPage;
  /** `undefined`: nothing happened to an entry. */
  changeIn(happening: Happening): EntryChange | undefined;
}

/** The entries of a scope of the state. */
export function stateSource(scope: string): EntrySource<StateChange> {
  return {
    function_id: "state::list_entries",
    payload: { scope },
    trigger: { type: "state", config: { scope } },
    readPage: (answer) => answer as unknown as EntriesPage,
    changeIn: (change) => change,
  };
}

/** The list before the first page. */
export const NO_ENTRIES: EntryList = { entries: [], cursor: null, isComplete: false };

/** The list with another page appended. */
export function withPage(list: EntryList, page: EntriesPage): EntryList {
  const last = list.entries.at(-1)?.key;
  const fresh = page.entries
    // A change may have added an entry ahead of its page.
    .filter(({ key }) => last === undefined || compareKeys(key, last) > 0)
    .map((entry): ShownEntry => ({ ...entry, changed_ms: null }));
  const cursor = page.cursor ?? null;
  return { entries: [...list.entries, ...fresh], cursor, isComplete: cursor === null };
}

/** What a change does to an entry. */
export type EntryChange = Pick<StateChange, "event_type" | "key" | "new_value">;

/** The list after a change; the same list if the change is beyond the fetched pages. */
export function withChange(list: EntryList, change: EntryChange, now: number): EntryList {
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

/** The entries whose key or value contains a text, ignoring case. */
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

/** Compares keys by code points, as the engine's store does. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left === right) continue;
    // A surrogate belongs to a code point above all single code units.
    const isPair = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;
    if (isPair(left) !== isPair(right)) return isPair(left) ? 1 : -1;
    return left - right;
  }
  return a.length - b.length;
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

/** Something that happened, and when the page heard of it. */
export interface Seen<Happening> {
  readonly change: Happening;
  readonly at_ms: number;
  /** Identifies it in lists. */
  readonly number: number;
}

/** A change of the state and when the page received it. */
export type SeenChange = Seen<StateChange>;

/** What is known of a source. */
export interface EntriesState<Happening = StateChange> {
  readonly list: EntryList;
  readonly status: "loading" | "ready" | "failed";
  readonly error: CallFailure | null;
  /** Since the page was opened, the newest first. */
  readonly changes: readonly Seen<Happening>[];
  /** Whether there are more entries than the page holds. */
  readonly isCut: boolean;
  /** Fetches the next page, if there is one. */
  readonly more: () => void;
  readonly retry: () => void;
}

/**
 * The entries of a source; `null` has none. `all`: fetches all pages, such as for a search.
 */
export function useEntries<Happening extends object>(
  source: EntrySource<Happening> | null,
  all: boolean,
): EntriesState<Happening> {
  const live = useLive();
  const [list, setList] = useState(NO_ENTRIES);
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<CallFailure | null>(null);
  const [isLoading, setLoading] = useState(false);
  const { changes, clear } = useChanges(source, setList, () => restart());
  const round = useRef(0);
  const connected = live.status.value.engine;
  const content = JSON.stringify(source && [source.function_id, source.payload]);
  const restart = () => {
    round.current++;
    setList(NO_ENTRIES);
    setError(null);
    setLoading(false);
    setAttempt((attempt) => attempt + 1);
  };
  const fetch = (cursor: string | null) => {
    if (source === null) return;
    const mine = round.current;
    setLoading(true);
    const payload = { ...source.payload, limit: PAGE_ENTRIES, ...cursor !== null && { cursor } };
    live.call(source.function_id, payload, { background: true }).then((page) => {
      if (mine !== round.current) return;
      setList((list) => withPage(list, source.readPage(page)));
      setLoading(false);
    }, (thrown: unknown) => {
      if (mine !== round.current || !(thrown instanceof CallFailure)) return;
      setError(thrown);
      setLoading(false);
    });
  };
  useEffect(() => {
    clear();
    restart();
  }, [content]);
  useEffect(() => {
    // After a reconnect, changes may have been missed.
    if (connected) restart();
  }, [connected]);
  useEffect(() => {
    if (attempt > 0) fetch(null);
    return () => void round.current++;
  }, [attempt]);
  const isCut = list.entries.length >= ENTRIES_MAX && !list.isComplete;
  const canMore = list.cursor !== null && !isLoading && !isCut && error === null;
  const more = () => canMore && fetch(list.cursor);
  useEffect(() => void (all && more()), [all, canMore, list.cursor]);
  const isFirst = list.entries.length === 0 && !list.isComplete;
  return {
    list,
    status: error && isFirst ? "failed" : isFirst ? "loading" : "ready",
    error,
    changes,
    isCut,
    more,
    retry: restart,
  };
}

/** Applies changes to the list, in batches. */
function useChanges<Happening extends object>(
  source: EntrySource<Happening> | null,
  setList: (change: (list: EntryList) => EntryList) => void,
  missed: () => void,
): { changes: readonly Seen<Happening>[]; clear: () => void } {
  const [changes, setChanges] = useState<readonly Seen<Happening>[]>([]);
  const waiting = useRef<Seen<Happening>[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const count = useRef(0);
  const flush = () => {
    timer.current = undefined;
    const fresh = waiting.current;
    waiting.current = [];
    setList((list) =>
      fresh.reduce((list, { change, at_ms }) => {
        const entry = source?.changeIn(change);
        return entry === undefined ? list : withChange(list, entry, at_ms);
      }, list)
    );
    setChanges((changes) => [...fresh.toReversed(), ...changes].slice(0, CHANGES_MAX));
  };
  useTrigger<Happening>(
    source?.trigger ?? null,
    (change) => {
      waiting.current.push({ change, at_ms: Date.now(), number: count.current++ });
      // Without an end, a busy group would fill the memory of a page in the background.
      if (waiting.current.length > WAITING_MAX) {
        waiting.current = [];
        missed();
      }
      timer.current ??= globalThis.setTimeout(flush, CHANGES_BATCH_MS);
    },
    missed,
  );
  useEffect(() => () => clearTimeout(timer.current), []);
  const clear = () => {
    waiting.current = [];
    setChanges([]);
  };
  return { changes, clear };
}
