/**
 * The entries of one scope: fetched page by page, and kept up to date by changes.
 *
 * Pages come in the order of keys. A change beyond the last fetched page is left to its page; one
 * before it is applied at once. Lists are immutable: each step makes another one.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CallFailure, useLive, useTrigger } from "../../kit/mod.ts";

/** Entries fetched at once. */
const PAGE_ENTRIES = 500;
/** Entries of a scope that the page holds, also for a search in all of them. */
const ENTRIES_MAX = 20_000;
/** Changes that the page remembers. */
const CHANGES_MAX = 200;
/** Changes within this time are shown together. */
const CHANGES_BATCH_MS = 100;

/** An entry of the list. */
export interface ShownEntry {
  readonly key: string;
  readonly value: Json;
  /** `null` after a change, which has no version. */
  readonly version: number | null;
  /** When it last changed, in milliseconds since 1970; `null`: not since it was fetched. */
  readonly changed_ms: number | null;
}

/** What is known of a scope. */
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

/** The result of `state::list_entries`. */
interface EntriesPage {
  readonly entries: readonly {
    readonly key: string;
    readonly value: Json;
    readonly version: number;
  }[];
  readonly cursor?: string | null;
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

/** The list after a change; the same list if the change is beyond the fetched pages. */
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

/** A change and when the page received it. */
export interface SeenChange {
  readonly change: StateChange;
  readonly at_ms: number;
  /** Identifies it in lists. */
  readonly number: number;
}

/** What is known of a scope. */
export interface EntriesState {
  readonly list: EntryList;
  readonly status: "loading" | "ready" | "failed";
  readonly error: CallFailure | null;
  /** Since the page was opened, the newest first. */
  readonly changes: readonly SeenChange[];
  /** Whether there are more entries than the page holds. */
  readonly isCut: boolean;
  /** Fetches the next page, if there is one. */
  readonly more: () => void;
  readonly retry: () => void;
}

/** The entries of a scope. `all`: fetches all pages, such as for a search. */
export function useEntries(scope: string, all: boolean): EntriesState {
  const live = useLive();
  const [list, setList] = useState(NO_ENTRIES);
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<CallFailure | null>(null);
  const [isLoading, setLoading] = useState(false);
  const { changes, clear } = useChanges(scope, setList, () => restart());
  const round = useRef(0);
  const connected = live.status.value.engine;
  const restart = () => {
    round.current++;
    setList(NO_ENTRIES);
    setError(null);
    setLoading(false);
    setAttempt((attempt) => attempt + 1);
  };
  const fetch = (cursor: string | null) => {
    const mine = round.current;
    setLoading(true);
    const payload = { scope, limit: PAGE_ENTRIES, ...cursor !== null && { cursor } };
    live.call("state::list_entries", payload).then((page) => {
      if (mine !== round.current) return;
      setList((list) => withPage(list, page as unknown as EntriesPage));
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
  }, [scope]);
  useEffect(() => {
    // After a reconnect, changes may have been missed.
    if (connected) restart();
  }, [connected]);
  useEffect(() => {
    if (attempt > 0 && scope !== "") fetch(null);
    return () => void round.current++;
  }, [attempt]);
  const isCut = list.entries.length >= ENTRIES_MAX && !list.isComplete;
  const canMore = list.cursor !== null && !isLoading && !isCut && error === null;
  const more = () => canMore && fetch(list.cursor);
  useEffect(() => {
    if (all && canMore) fetch(list.cursor);
  }, [all, canMore, list.cursor]);
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
function useChanges(
  scope: string,
  setList: (change: (list: EntryList) => EntryList) => void,
  missed: () => void,
): { changes: readonly SeenChange[]; clear: () => void } {
  const [changes, setChanges] = useState<readonly SeenChange[]>([]);
  const waiting = useRef<SeenChange[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const count = useRef(0);
  const flush = () => {
    timer.current = undefined;
    const fresh = waiting.current;
    waiting.current = [];
    setList((list) =>
      fresh.reduce((list, { change, at_ms }) => withChange(list, change, at_ms), list)
    );
    setChanges((changes) => [...fresh.toReversed(), ...changes].slice(0, CHANGES_MAX));
  };
  useTrigger<StateChange & Json>(
    scope === "" ? null : { type: "state", config: { scope } },
    (change) => {
      waiting.current.push({ change, at_ms: Date.now(), number: count.current++ });
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
