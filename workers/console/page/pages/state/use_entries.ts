/**
 * The entries of a scope while a component stands: fetched page by page, changed by what happens.
 *
 * @module
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CallFailure, useLive, useTrigger } from "../../kit/mod.ts";
import {
  type EntriesPage,
  type EntryList,
  NO_ENTRIES,
  type StateChange,
  withChange,
  withPage,
} from "./entries.ts";

/** Entries fetched at once. */
const PAGE_ENTRIES = 500;
/** Entries of a scope that the page holds, also for a search in all of them. */
const ENTRIES_MAX = 20_000;
/** Changes that the page remembers. */
const CHANGES_MAX = 200;
/** Changes within this time are shown together. */
const CHANGES_BATCH_MS = 100;

/** A change and when the page heard of it. */
export interface SeenChange {
  readonly change: StateChange;
  readonly at_ms: number;
  /** Grows; a key for lists. */
  readonly number: number;
}

/** What is known of a scope. */
export interface EntriesState {
  readonly list: EntryList;
  readonly status: "loading" | "ready" | "failed";
  readonly error: CallFailure | null;
  /** The newest first, since the page was opened. */
  readonly changes: readonly SeenChange[];
  /** More entries than the page keeps. */
  readonly isCut: boolean;
  /** Fetches the next page, if there is one and none is on its way. */
  readonly more: () => void;
  readonly retry: () => void;
}

/** `all`: fetch one page after the other, such as for a search. */
export function useEntries(scope: string, all: boolean): EntriesState {
  const live = useLive();
  const [list, setList] = useState(NO_ENTRIES);
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<CallFailure | null>(null);
  const [isLoading, setLoading] = useState(false);
  const { changes, clear } = useChanges(scope, setList, () => restart());
  const round = useRef(0);
  const connected = live.connection.value.engine;
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
    // Back after a loss: what happened meanwhile is not known.
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

/** Hears changes and puts them into the list, several at once. */
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
