/**
 * Where the page is: path and query of the address, as a signal.
 *
 * Everything that a person may want to send to another (a chosen worker, filters) lives in the
 * address; nothing else here remembers it.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { IconName } from "./icons.tsx";

/** A place within the console. */
export interface Route {
  /** Such as `/workers/shop`, without the query. */
  readonly path: string;
  /** Its parts, decoded: `["workers", "shop"]`. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

/** What of the browser's window is needed. */
export interface AddressBar {
  /** Path and query, such as `/logs?level=warn`. */
  read(): string;
  write(address: string, replace: boolean): void;
  /** Somebody else changed it (back, forward). */
  onChange(heard: () => void): () => void;
}

/** See the module. */
export class Router {
  readonly #bar: AddressBar;
  readonly #route: Signal<Route>;

  /** Makes one; {@linkcode start} follows the address bar. */
  constructor(bar: AddressBar) {
    this.#bar = bar;
    this.#route = signal(parseAddress(bar.read()));
  }

  /** Where the page is, now and whenever it changes. */
  get route(): ReadonlySignal<Route> {
    return this.#route;
  }

  /** Follows back and forward; call the result to stop. */
  start(): () => void {
    return this.#bar.onChange(() => {
      this.#route.value = parseAddress(this.#bar.read());
    });
  }

  /** Goes to an address made with {@linkcode link}. `replace`: back does not come here. */
  go(address: string, options: { readonly replace?: boolean } = {}): void {
    if (address === this.#bar.read()) return;
    this.#bar.write(address, options.replace ?? false);
    this.#route.value = parseAddress(address);
  }

  /** Changes members of the query where the page is; `null` and the empty string remove one. */
  setQuery(
    change: Readonly<Record<string, string | null>>,
    options: { readonly replace?: boolean } = { replace: true },
  ): void {
    const { path, query } = this.#route.value;
    const merged: Record<string, string | null> = { ...Object.fromEntries(query), ...change };
    this.go(withQuery(path, merged), options);
  }
}

/** The address of a place: `link("/workers", "my shop")` is `/workers/my%20shop`. */
export function link(page: string, ...rest: readonly (string | QueryMembers)[]): string {
  const last = rest.at(-1);
  const query = typeof last === "object" ? last : {};
  const parts = rest.filter((part) => typeof part === "string").map(encodeURIComponent);
  return withQuery([page, ...parts].join("/"), query);
}

/** Members of a query; `null`, `undefined` and the empty string are left out. */
export type QueryMembers = Readonly<Record<string, string | null | undefined>>;

/** Takes an address apart. */
export function parseAddress(address: string): Route {
  const cut = address.indexOf("?");
  const path = (cut < 0 ? address : address.slice(0, cut)).replace(/(?<=.)\/+$/, "");
  const query = new URLSearchParams(cut < 0 ? "" : address.slice(cut + 1));
  return { path, segments: path.split("/").filter((part) => part !== "").map(decoded), query };
}

function withQuery(path: string, members: QueryMembers): string {
  const said = Object.entries(members).filter(([, value]) => value);
  const query = new URLSearchParams(said as [string, string][]).toString();
  return query === "" ? path : `${path}?${query}`;
}

/** A part of a path; what is not encoded as it must be stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Handed to a page. */
export interface PageProps {
  /** What stands behind the page's own path, decoded: of `/workers/shop`, `["shop"]`. */
  readonly rest: readonly string[];
}

/** One page. */
export interface ConsolePage {
  /** Such as `/workers`; everything below it belongs to the page. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Part of the side bar it stands in. */
  readonly group: "run" | "watch" | "keep";
  /** `g` and then this key leads here. */
  readonly key: string;
  readonly view: ComponentType<PageProps>;
  /** Has a place of its own in the bar of phones; there is room for four. */
  readonly onPhones?: boolean;
  /** What the command palette finds here, besides the page itself. */
  readonly finders?: readonly Finder[];
}

/** Something the command palette looks through while it is open. */
export interface Finder {
  /** Such as `Function`. */
  readonly kind: string;
  readonly query: WatchedQuery;
  readonly on: readonly WatchedTrigger[];
  /** What an item is called and where it leads; `null` leaves it out. */
  readonly find: (item: Json) => Found | null;
}

/** Something found. */
export interface Found {
  readonly text: string;
  /** Said smaller beside it. */
  readonly hint?: string;
  /** Address, made with `link()`. */
  readonly to: string;
}
