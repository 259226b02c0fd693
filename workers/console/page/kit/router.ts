/**
 * The pages of the console and where the person is: path and query of the address, as a signal.
 *
 * Everything that a person may want to send to another (a chosen worker, filters) is in the
 * address, and is stored nowhere else.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { AddressBar } from "./browser.ts";
import type { IconName } from "./icons.tsx";

/** One page. */
export interface ConsolePage {
  /** Such as `/workers`; everything below it belongs to the page. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Group of the side bar; `start` stands above all groups. */
  readonly group: "start" | "build" | "observe" | "data";
  /** The key that leads here after `g`; no two pages share one. */
  readonly key: string;
  readonly view: ComponentType<PageProps>;
  /** Whether it is in the bar at the bottom of phones, which has room for four. */
  readonly onPhones?: boolean;
  /** What stands beside the title in the side bar, such as a number of problems. */
  readonly mark?: ComponentType;
  /** What the command palette finds on this page, besides the page itself. */
  readonly finders?: readonly Finder[];
}

/** Properties of every page. */
export interface PageProps {
  /** Decoded path segments below the page: for `/workers/shop`, `["shop"]`. */
  readonly rest: readonly string[];
}

/** A list that the command palette searches while it is open. */
export interface Finder {
  /** Such as `Function`. */
  readonly kind: string;
  readonly query: WatchedQuery;
  readonly on: readonly WatchedTrigger[];
  /** How an item is shown and where it leads; `null` leaves it out. */
  readonly find: (item: Json) => Found | null;
}

/** An entry of the command palette. */
export interface Found {
  readonly text: string;
  /** Shown smaller beside the text. */
  readonly hint?: string;
  /** An address made with {@linkcode link}. */
  readonly to: string;
}

/** An address taken apart. */
export interface Route {
  /** Such as `/workers/shop`, without the query. */
  readonly path: string;
  /** Decoded parts of the path: `["workers", "shop"]`. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

/** The address as a signal, and navigation. */
export class Router {
  readonly #bar: AddressBar;
  readonly #route: Signal<Route>;

  constructor(bar: AddressBar) {
    this.#bar = bar;
    this.#route = signal(parseAddress(bar.read()));
  }

  /** Where the person is. */
  get route(): ReadonlySignal<Route> {
    return this.#route;
  }

  /** Follows the browser's back and forward until the result is called. */
  start(): () => void {
    return this.#bar.onChange(() => {
      this.#route.value = parseAddress(this.#bar.read());
    });
  }

  /** Goes to an address made with {@linkcode link}. `replace`: back skips the current address. */
  go(address: string, options: { readonly replace?: boolean } = {}): void {
    if (address === this.#bar.read()) return;
    this.#bar.write(address, options.replace ?? false);
    this.#route.value = parseAddress(address);
  }

  /** Changes members of the query; `null` and the empty string remove one. */
  setQuery(
    change: Readonly<Record<string, string | null>>,
    options: { readonly replace?: boolean } = { replace: true },
  ): void {
    const { path, query } = this.#route.value;
    const merged: Record<string, string | null> = { ...Object.fromEntries(query), ...change };
    this.go(withQuery(path, merged), options);
  }
}

/** Members of a query; `null`, `undefined` and the empty string are left out. */
export type QueryMembers = Readonly<Record<string, string | null | undefined>>;

/** An address: `link("/workers", "my shop", { tab: "logs" })` is `/workers/my%20shop?tab=logs`. */
export function link(page: string, ...rest: readonly (string | QueryMembers)[]): string {
  const last = rest.at(-1);
  const query = typeof last === "object" ? last : {};
  const parts = rest.filter((part) => typeof part === "string").map(encodeURIComponent);
  return withQuery([page, ...parts].join("/"), query);
}

/** Takes an address apart. */
export function parseAddress(address: string): Route {
  const cut = address.indexOf("?");
  const path = (cut < 0 ? address : address.slice(0, cut)).replace(/(?<=.)\/+$/, "");
  const query = new URLSearchParams(cut < 0 ? "" : address.slice(cut + 1));
  const segments = path.split("/").filter((part) => part !== "").map(decodeSegment);
  return { path, segments, query };
}

function withQuery(path: string, members: QueryMembers): string {
  const present = Object.entries(members).filter(([, value]) => value);
  const query = new URLSearchParams(present as [string, string][]).toString();
  return query === "" ? path : `${path}?${query}`;
}

/** A decoded segment; one with an invalid encoding stays as it is. */
function decodeSegment(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
