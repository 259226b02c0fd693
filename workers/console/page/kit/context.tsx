/**
 * What the app provides to every component, and the hooks through which components use it.
 *
 * Nothing of it is global, so a test can provide its own.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type ComponentChildren, type Context, createContext, type JSX, type VNode } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { DEFAULT_NAMESPACE, type Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { Clipboard, Preferences, Session } from "./browser.ts";
import type { Live, QueryState } from "./live.ts";
import type { Route, Router } from "./router.ts";

/** Typed text takes effect after this time without another key. */
const SETTLE_MS = 250;
/** Toasts shown at once. */
export const TOASTS_MAX = 4;
/** A toast that reports no failure disappears after this time. */
export const TOAST_MS = 5_000;

/** What the app provides. */
export interface Shell {
  readonly live: Live;
  readonly router: Router;
  readonly toasts: Toasts;
  readonly preferences: Preferences;
  readonly clipboard: Clipboard;
  readonly session: Session;
  /** The time in milliseconds since 1970; changes once a second. */
  readonly clock: ReadonlySignal<number>;
  readonly chartCursors: ChartCursors;
}

/** The times under the pointer, in milliseconds since 1970, by the charts that share one. */
export class ChartCursors {
  readonly #cursors = new Map<string, Signal<number | null>>();

  /** The time that some charts share; `null`: the pointer is elsewhere. */
  of(sync: string): Signal<number | null> {
    let cursor = this.#cursors.get(sync);
    if (cursor === undefined) this.#cursors.set(sync, cursor = signal(null));
    return cursor;
  }
}

/** The time under the pointer of a chart and of those with the same `sync`. */
export function useChartCursor(sync: string | undefined): Signal<number | null> {
  const { chartCursors } = useShell();
  return useMemo(() => sync === undefined ? signal(null) : chartCursors.of(sync), [sync]);
}

/** Set by the app; components use {@linkcode useShell}. */
export const ShellContext: Context<Shell | null> = createContext<Shell | null>(null);

/** Everything that the app provides. @throws {Error} Outside of the app. */
export function useShell(): Shell {
  const shell = useContext(ShellContext);
  if (shell === null) throw new Error("This component stands outside of the app");
  return shell;
}

/** Calls functions and sends HTTP requests: `useLive().call("state::get", {…})`. */
export function useLive(): Live {
  return useShell().live;
}

/** Where the person is; renders again when that changes. */
export function useRoute(): Route {
  return useShell().router.route.value;
}

/** One member of the query in the address and its setter; `fallback` is left out of the address. */
export function useQueryMember(name: string, fallback = ""): [string, (value: string) => void] {
  const { router } = useShell();
  const set = useCallback((value: string) => {
    router.setQuery({ [name]: value === fallback ? null : value });
  }, [router, name, fallback]);
  return [router.route.value.query.get(name) ?? fallback, set];
}

/**
 * A member of the query for a text field: what is typed, its setter, and the text in the address,
 * which follows when typing pauses.
 */
export function useTypedMember(name: string): [string, (value: string) => void, string] {
  const [written, write] = useQueryMember(name);
  const [typed, type] = useState(written);
  const last = useRef(written);
  useEffect(() => {
    if (typed === last.current) return;
    const timer = setTimeout(() => {
      last.current = typed;
      write(typed);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, write]);
  useEffect(() => {
    // The address changed from elsewhere, such as by the back button or a link.
    if (written === last.current) return;
    last.current = written;
    type(written);
  }, [written]);
  return [typed, type, written];
}

/** The state of a query, and a way to ask it again. */
export interface Query<T> extends QueryState<T> {
  readonly retry: () => void;
}

const NOTHING: QueryState<never> = { status: "loading", items: [], value: null, error: null };

/**
 * A query that is kept up to date while the component is mounted; `null` asks nothing and stays
 * `loading`. Query and triggers may be new objects each time: they are compared by content.
 */
export function useQuery<T = Json>(
  query: WatchedQuery | null,
  on: readonly WatchedTrigger[] = [],
): Query<T> {
  const { live } = useShell();
  const content = JSON.stringify([query, on]);
  const args = useMemo(() => JSON.parse(content) as Parameters<Live["watch"]>, [content]);
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
  // Until the effect has run, `state` belongs to the previous query.
  const shown = useRef(content);
  const isCurrent = shown.current === content;
  useEffect(() => {
    shown.current = content;
  }, [content]);
  return { ...(isCurrent ? state : NOTHING) as QueryState<T>, retry };
}

/** What changes which functions there are. */
const FUNCTION_CHANGES: readonly WatchedTrigger[] = [{ type: "engine::functions-available" }];

/**
 * Whether a worker offers a function of the default namespace, as the list of functions says;
 * `undefined`: not known yet. A call of one that is absent would count as an error of the system.
 * `null` asks nothing.
 */
export function useIsOffered(function_id: string | null): boolean | undefined {
  const { status, items } = useQuery<{ readonly function_id: string; readonly namespace: string }>(
    function_id === null ? null : {
      function_id: "engine::functions::list",
      payload: { prefix: function_id, include_internal: true },
      items: "functions",
      key: ["namespace", "function_id"],
    },
    FUNCTION_CHANGES,
  );
  if (status === "loading") return undefined;
  // Without the list, the answer of the function itself says more.
  return status === "failed" || items.some((item) => {
    return item.function_id === function_id && item.namespace === DEFAULT_NAMESPACE;
  });
}

/** A {@linkcode Query} that is asked only while a worker offers its function. */
export interface OfferedQuery<T> extends Query<T> {
  /** No worker offers the function. */
  readonly isAbsent: boolean;
}

/** As {@linkcode useQuery}, of a function whose worker may not run. */
export function useOfferedQuery<T = Json>(
  query: WatchedQuery | null,
  on: readonly WatchedTrigger[] = [],
): OfferedQuery<T> {
  const isOffered = useIsOffered(query?.function_id ?? null);
  return { ...useQuery<T>(isOffered ? query : null, on), isAbsent: isOffered === false };
}

/**
 * Calls `fired` for each firing of a trigger while the component is mounted; `null` watches
 * nothing. The newest callbacks are used, so they may be new functions each time.
 */
export function useTrigger<T = Json>(
  trigger: WatchedTrigger | null,
  fired: (payload: T) => void,
  missed?: (count: number) => void,
): void {
  const { live } = useShell();
  const listener = useRef({ fired, missed });
  listener.current = { fired, missed };
  const content = JSON.stringify(trigger);
  useEffect(() => {
    if (trigger === null) return;
    return live.onTrigger(
      JSON.parse(content),
      (payload) => listener.current.fired(payload as T),
      { missed: (count) => listener.current.missed?.(count) },
    );
  }, [live, content]);
}

/** Whether a media query matches; renders again when that changes. */
export function useMediaQuery(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [matches, setMatches] = useState(media.matches);
  useEffect(() => {
    const update = () => setMatches(media.matches);
    update();
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [media]);
  return matches;
}

/** The theme that is shown: the chosen one, or that of the system. */
export function useShownTheme(): "light" | "dark" {
  const theme = useShell().preferences.theme.value;
  const isDark = useMediaQuery("(prefers-color-scheme: dark)");
  return theme === "system" ? (isDark ? "dark" : "light") : theme;
}

/** Now, in milliseconds since 1970; renders again once a second. */
export function useNow(): number {
  return useShell().clock.value;
}

/** A short message at the edge of the page. */
interface Toast {
  readonly id: number;
  readonly tone: "ok" | "bad" | "info";
  readonly text: string;
  /** Shown smaller below the text, such as the code of an error. */
  readonly detail?: string;
}

/** The toasts that are shown now: what an action did, or why it failed. */
export class Toasts {
  readonly #later: (ms: number, run: () => void) => () => void;
  readonly #list: Signal<readonly Toast[]> = signal([]);
  #nextId = 1;

  constructor(later: (ms: number, run: () => void) => () => void) {
    this.#later = later;
  }

  /** The oldest first. */
  get list(): ReadonlySignal<readonly Toast[]> {
    return this.#list;
  }

  /** Shows a toast. Failures (`bad`) stay until they are closed, others disappear. */
  show(tone: Toast["tone"], text: string, detail?: string): void {
    const toast = { id: this.#nextId++, tone, text, ...detail !== undefined && { detail } };
    this.#list.value = [...this.#list.value, toast].slice(-TOASTS_MAX);
    if (tone !== "bad") this.#later(TOAST_MS, () => this.close(toast.id));
  }

  /** Shows a failure with the text of what was thrown. */
  fail(what: string, thrown: unknown): void {
    const text = thrown instanceof Error ? thrown.message : String(thrown);
    this.show("bad", what, text);
  }

  /** Removes a toast. */
  close(id: number): void {
    this.#list.value = this.#list.value.filter((toast) => toast.id !== id);
  }
}

/** Properties of a {@linkcode Link}. */
interface LinkProps {
  /** An address made with `link()`. */
  readonly to: string;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  /** Read by screen readers instead of the content. */
  readonly label?: string | undefined;
  /** Marks the current page. */
  readonly current?: boolean | undefined;
  /** Called besides going there. */
  readonly onGo?: (() => void) | undefined;
  readonly children: ComponentChildren;
}

/**
 * A link within the console that does not reload the page. It is a real `<a>`, so that it can be
 * copied and opened in a new tab.
 */
export function Link({ to, label, current, onGo, children, ...rest }: LinkProps): VNode {
  const { router } = useShell();
  const click = (event: JSX.TargetedMouseEvent<HTMLAnchorElement>) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    router.go(to);
    onGo?.();
  };
  return (
    <a href={to} onClick={click} aria-label={label} aria-current={current && "page"} {...rest}>
      {children}
    </a>
  );
}
