/**
 * What a page of the console is: a place, a name, what it shows and what the palette finds in it.
 *
 * @module
 */
import type { ComponentType } from "preact";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import type { IconName } from "./icons.tsx";

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
