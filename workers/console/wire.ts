/**
 * What a browser and the console say to each other over their one WebSocket.
 *
 * The console knows no page. A page asks for calls and watches, and both name functions and trigger
 * types of the engine; so a page for a new built-in worker needs nothing new here.
 *
 * @module
 */
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Close code of a line whose `hello` held a wrong token. */
export const WRONG_TOKEN_CLOSE = 4401;

/** A trigger to register: each of its firings is pushed. */
export interface WatchedTrigger {
  readonly type: string;
  readonly config?: JsonObject;
}

/** A function to ask, and where the items are in its result. */
export interface WatchedQuery {
  readonly function_id: string;
  readonly payload?: JsonObject;
  /** Name of the member that holds the list; left out: the whole result is one value. */
  readonly items?: string;
  /** Members whose values together name an item; left out: the item's place. */
  readonly key?: readonly string[];
}

/** What a browser says. */
export type BrowserMessage =
  /**
   * First, once. The token stands in the page (`<meta name="engine-console-token" content="…">`,
   * empty in the file), or the user gave it. A wrong one: the line is closed with
   * {@linkcode WRONG_TOKEN_CLOSE}.
   */
  | { readonly type: "hello"; readonly token: string }
  /** Calls any function. `id` is the browser's own, unique among its open calls and watches. */
  | {
    readonly type: "call";
    readonly id: number;
    readonly function_id: string;
    readonly namespace?: string;
    readonly payload?: Json;
    readonly timeout_ms?: number;
    readonly metadata?: JsonObject;
  }
  /** Pushes firings of a trigger (`fired`). */
  | { readonly type: "watch_trigger"; readonly id: number; readonly trigger: WatchedTrigger }
  /** Pushes the result of a query, and again what changed of it whenever one of `on` fires. */
  | {
    readonly type: "watch_query";
    readonly id: number;
    readonly query: WatchedQuery;
    readonly on: readonly WatchedTrigger[];
  }
  /** Sends an HTTP request to the engine's HTTP port, and nowhere else. */
  | {
    readonly type: "http";
    readonly id: number;
    readonly method: string;
    /** From the slash on, with the query. */
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  }
  /** Ends a call, a watch or a request; nothing more comes for its id. */
  | { readonly type: "end"; readonly id: number };

/** What the console says. */
export type ConsoleMessage =
  /**
   * Answers `hello`. `operator`: the page was opened with the key of the engine's own user
   * (`?key=…` of the address that `engine console` prints), may manage workers and sees payloads.
   */
  | {
    readonly type: "welcome";
    readonly version: string;
    readonly engine_url: string;
    readonly operator: boolean;
  }
  /** Whether the engine can be reached; after `welcome`, and whenever it changes. */
  | { readonly type: "engine"; readonly connected: boolean; readonly since_ms: number }
  /** A call ended well. `duration_ms` as the console measured it. */
  | {
    readonly type: "result";
    readonly id: number;
    readonly result?: Json;
    readonly duration_ms: number;
    readonly trace_id: string | null;
  }
  /** A call, a watch or a request failed; nothing more comes for its id. */
  | {
    readonly type: "error";
    readonly id: number;
    readonly error: ErrorBody;
    readonly duration_ms: number;
    readonly trace_id: string | null;
  }
  | { readonly type: "progress"; readonly id: number; readonly data: Json }
  | { readonly type: "fired"; readonly id: number; readonly payload: Json }
  /** All of a query: when it was asked, when the engine is back, and when too much was missed. */
  | { readonly type: "snapshot"; readonly id: number; readonly items: readonly Json[] }
  /**
   * What changed since: items anew by key, and keys that are gone: JSON of the array of their
   * values, such as `["default","math::add"]`, also when the key has one member. New items belong
   * at the end. A query without `key` gets snapshots only.
   */
  | {
    readonly type: "patch";
    readonly id: number;
    readonly set: readonly Json[];
    readonly gone: readonly string[];
  }
  /** All of a query without `items`. */
  | { readonly type: "value"; readonly id: number; readonly value: Json }
  /** The browser was too slow: so many messages for this watch were left out. */
  | { readonly type: "missed"; readonly id: number; readonly count: number }
  | {
    readonly type: "http_answer";
    readonly id: number;
    readonly status: number;
    readonly headers: ReadonlyArray<readonly [string, string]>;
    /** Text, or base64 when `binary`. */
    readonly body: string;
    readonly binary: boolean;
    readonly duration_ms: number;
    readonly trace_id: string | null;
  };
