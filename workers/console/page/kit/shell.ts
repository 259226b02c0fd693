/**
 * What every component of the page may use, handed down by the app: line, address, toasts, looks.
 *
 * Components ask for it with the hooks here; nothing of it is a global, so a test can lend its own.
 *
 * @module
 */
import type { ReadonlySignal } from "@preact/signals";
import { type Context, createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { Clipboard } from "./clipboard.ts";
import type { Live, QueryState } from "./live.ts";
import type { Preferences } from "./preferences.ts";
import type { Route, Router } from "./router.ts";
import type { Session } from "./session.ts";
import type { Toasts } from "./toasts.ts";

/** What the app lends. */
export interface Shell {
  readonly live: Live;
  readonly router: Router;
  readonly toasts: Toasts;
  readonly preferences: Preferences;
  readonly clipboard: Clipboard;
  readonly session: Session;
  /** Changes once a second; for what shows how long ago something was. */
  readonly clock: ReadonlySignal<number>;
}

/** Handed down by the app. */
export const ShellContext: Context<Shell | null> = createContext<Shell | null>(null);

/** All that the app lends. @throws {Error} Outside of the app. */
export function useShell(): Shell {
  const shell = useContext(ShellContext);
  if (shell === null) throw new Error("This component stands outside of the app");
  return shell;
}

/** Calls functions and sends HTTP requests: `useLive().call("state::get", {…})`. */
export function useLive(): Live {
  return useShell().live;
}

/** Where the page is; drawn anew whenever that changes. */
export function useRoute(): Route {
  return useShell().router.route.value;
}

/** One member of the query and how to change it; `""` takes it out of the address. */
export function useQueryMember(name: string, fallback = ""): [string, (value: string) => void] {
  const { router } = useShell();
  const set = useCallback((value: string) => {
    router.setQuery({ [name]: value === fallback ? null : value });
  }, [router, name, fallback]);
  return [router.route.value.query.get(name) ?? fallback, set];
}

/** What a query knows, and how to ask it anew. */
export interface Query<T> extends QueryState<T> {
  readonly retry: () => void;
}

const NOTHING: QueryState<never> = { status: "loading", items: [], value: null, error: null };

/**
 * A query that is kept up to date while the component stands; `null` asks nothing (and is
 * `loading`). Query and triggers may be fresh objects each time: they are compared by content.
 */
export function useQuery<T = Json>(
  query: WatchedQuery | null,
  on: readonly WatchedTrigger[] = [],
): Query<T> {
  const { live } = useShell();
  const asked = JSON.stringify([query, on]);
  const args = useMemo(() => JSON.parse(asked) as Parameters<Live["watch"]>, [asked]);
  const [state, setState] = useState<QueryState>(NOTHING);
  useEffect(() => {
    if (query === null) return setState(NOTHING);
    const stop = live.watch(...args).subscribe(setState);
    return () => {
      stop();
      live.release(...args);
    };
  }, [live, args]);
  const retry = useCallback(() => live.retry(...args), [live, args]);
  // The state of the query before this one is nobody's answer.
  const shown = useRef(asked);
  const fresh = shown.current === asked;
  useEffect(() => {
    shown.current = asked;
  }, [asked]);
  return { ...(fresh ? state : NOTHING) as QueryState<T>, retry };
}

/**
 * Hears each firing of a trigger while the component stands; `null` hears nothing. The last
 * `fired` counts, so it may be a fresh function each time.
 */
export function useTrigger<T = Json>(
  trigger: WatchedTrigger | null,
  fired: (payload: T) => void,
  missed?: (count: number) => void,
): void {
  const { live } = useShell();
  const heard = useRef({ fired, missed });
  heard.current = { fired, missed };
  const asked = JSON.stringify(trigger);
  useEffect(() => {
    if (trigger === null) return;
    return live.onTrigger(JSON.parse(asked), (payload) => heard.current.fired(payload as T), {
      missed: (count) => heard.current.missed?.(count),
    });
  }, [live, asked]);
}

/** Now, in milliseconds since 1970, drawn anew once a second. */
export function useNow(): number {
  return useShell().clock.value;
}
