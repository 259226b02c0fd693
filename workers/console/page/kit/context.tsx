/**
 * What every component of the page may use, handed down by the app: line, address, toasts, looks.
 *
 * Components ask for it with the hooks here; nothing of it is a global, so a test can lend its own.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type ComponentChildren, type Context, createContext, type JSX, type VNode } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { Clipboard, Preferences, Session } from "./browser.ts";
import type { Live, QueryState } from "./live.ts";
import type { Route, Router } from "./router.ts";

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

/** Toasts shown at once. */
export const TOASTS_MAX = 4;
/** A toast that reports no failure disappears after this time. */
export const TOAST_MS = 5_000;

/** One notice. */
export interface Toast {
  readonly id: number;
  readonly tone: "ok" | "bad" | "info";
  readonly text: string;
  /** Said below, smaller; such as the code of an error. */
  readonly detail?: string;
}

/** See the module. */
export class Toasts {
  readonly #later: (ms: number, run: () => void) => () => void;
  readonly #list: Signal<readonly Toast[]> = signal([]);
  #nextId = 1;

  /** Makes one. */
  constructor(later: (ms: number, run: () => void) => () => void) {
    this.#later = later;
  }

  /** What is shown now, the oldest first. */
  get list(): ReadonlySignal<readonly Toast[]> {
    return this.#list;
  }

  /** Shows a notice. Failures stay until somebody closes them; others go by themselves. */
  show(tone: Toast["tone"], text: string, detail?: string): void {
    const toast = { id: this.#nextId++, tone, text, ...detail !== undefined && { detail } };
    this.#list.value = [...this.#list.value, toast].slice(-TOASTS_MAX);
    if (tone !== "bad") this.#later(TOAST_MS, () => this.close(toast.id));
  }

  /** Shows why something failed, whatever was thrown. */
  fail(what: string, thrown: unknown): void {
    const text = thrown instanceof Error ? thrown.message : String(thrown);
    this.show("bad", what, text);
  }

  /** Takes a notice away. */
  close(id: number): void {
    this.#list.value = this.#list.value.filter((toast) => toast.id !== id);
  }
}

/** Typed text takes effect after this time without another key. */
const SETTLE_MS = 250;

/** The value as it was before the last changes, until no change came for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** A member of the query for a field: shown at once, written into the address when at rest. */
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
    // Somebody else changed the address, such as the back button or a link.
    if (written === last.current) return;
    last.current = written;
    type(written);
  }, [written]);
  return [typed, type, written];
}

/** What a {@linkcode Link} takes. */
export interface LinkProps {
  /** An address made with `link()`. */
  readonly to: string;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  /** Said by screen readers instead of the content. */
  readonly label?: string | undefined;
  /** Marks the place where the page is. */
  readonly current?: boolean | undefined;
  /** Besides going there. */
  readonly onGo?: (() => void) | undefined;
  readonly children: ComponentChildren;
}

/** Goes to another place of the console without loading it anew. */
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
