/**
 * The messages between a page and the console, over one WebSocket.
 *
 * They are the same for all pages: a page asks for calls and watches, which name functions and
 * trigger types of the engine. A page for a new built-in worker needs nothing new here.
 *
 * @module
 */
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Close code of a connection whose `hello` held a wrong token. */
export const WRONG_TOKEN_CLOSE = 4401;

/** A trigger to register; each of its firings is pushed. */
export interface WatchedTrigger {
  readonly type: string;
  readonly config?: JsonObject;
}

/** A function to call, and where the items are in its result. */
export interface WatchedQuery {
  readonly function_id: string;
  readonly payload?: JsonObject;
  /** Name of the member that holds the list; left out: the whole result is one value. */
  readonly items?: string;
  /** Members whose values together identify an item; left out: its index. */
  readonly key?: readonly string[];
}

/** What a page sends. */
export type BrowserMessage =
  /**
   * The first message, sent once. The token is in the page
   * (`<meta name="engine-console-token" content="…">`, empty in the built file), or the user typed
   * it. After a wrong one the console closes the connection with {@linkcode WRONG_TOKEN_CLOSE}.
   */
  | { readonly type: "hello"; readonly token: string }
  /**
   * Calls a function. The page chooses `id`, unique among its open calls and watches. A call in the
   * `background` is one that no person made: it has no trace and does not count.
   */
  | {
    readonly type: "call";
    readonly id: number;
    readonly function_id: string;
    readonly namespace?: string;
    readonly payload?: Json;
    readonly timeout_ms?: number;
    readonly metadata?: JsonObject;
    readonly background?: boolean;
  }
  /** Subscribes to the firings of a trigger (`fired`). */
  | { readonly type: "watch_trigger"; readonly id: number; readonly trigger: WatchedTrigger }
  /** Subscribes to the result of a query, asked again whenever a trigger of `on` fires. */
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
    /** Begins with a slash; includes the query string. */
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  }
  /** Ends a call, a watch or a request; the console sends nothing more for its id. */
  | { readonly type: "end"; readonly id: number };

/** What the console sends. */
export type ConsoleMessage =
  /**
   * Answers `hello`. `operator`: the page was opened with the key of the engine's own user
   * (`?key=…` of the address that `engine console` prints); it may manage workers and see payloads.
   */
  | {
    readonly type: "welcome";
    readonly version: string;
    readonly engine_url: string;
    readonly operator: boolean;
  }
  /** Whether the console reaches the engine; sent after `welcome` and on every change. */
  | { readonly type: "engine"; readonly connected: boolean; readonly since_ms: number }
  /** The result of a call. `duration_ms` is measured by the console. */
  | {
    readonly type: "result";
    readonly id: number;
    readonly result?: Json;
    readonly duration_ms: number;
    readonly trace_id: string | null;
  }
  /** A call, a watch or a request failed; its id is free again. */
  | {
    readonly type: "error";
    readonly id: number;
    readonly error: ErrorBody;
    readonly duration_ms: number;
    readonly trace_id: string | null;
  }
  | { readonly type: "progress"; readonly id: number; readonly data: Json }
  | { readonly type: "fired"; readonly id: number; readonly payload: Json }
  /** All items: at first, after a reconnect, and when the page missed changes. */
  | { readonly type: "snapshot"; readonly id: number; readonly items: readonly Json[] }
  /**
   * A difference: `set` holds changed and new items, `gone` the keys of removed ones, each a JSON
   * array of the values of the key members, such as `["default","math::add"]`. New items belong at
   * the end. A query without `key` gets snapshots only.
   */
  | {
    readonly type: "patch";
    readonly id: number;
    readonly set: readonly Json[];
    readonly gone: readonly string[];
  }
  /** The result of a query without `items`. */
  | { readonly type: "value"; readonly id: number; readonly value: Json }
  /** The page was too slow: this many messages of the watch were dropped. */
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
