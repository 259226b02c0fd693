/**
 * What pages ask the engine: calls, watched queries, triggers, HTTP requests.
 *
 * Equal queries are watched once, however many components use them, and for a moment longer than
 * they are used, so that going back to a page shows it at once.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { CALL_TIMEOUT_MS } from "../../../../sdk/typescript/wire/limits.ts";
import type { ErrorBody, Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import {
  type Answer,
  Connection,
  type ConnectionState,
  type ConsoleSocket,
  type Request,
} from "./connection.ts";

/** The page waits this much longer than the deadline of a call for its answer. */
export const ANSWER_GRACE_MS = 5_000;
/** A watch stays open this long after its last user. */
const LINGER_MS = 10_000;

/** The state of the connections that the page depends on. */
export interface LiveStatus {
  /** Between page and console. */
  readonly connection: ConnectionState;
  /** Whether the console reaches the engine; `null`: not known. */
  readonly engine: boolean | null;
  /** Since when, in milliseconds since 1970. */
  readonly since_ms: number;
  /** Such as `0.1.0`; empty before `welcome`. */
  readonly version: string;
  readonly engine_url: string;
  /** Whether this page may manage workers and see payloads of calls. */
  readonly operator: boolean;
}

/** Options of a call besides function and payload. */
interface CallOptions {
  readonly namespace?: string;
  /** @default 30000 */
  readonly timeout_ms?: number;
  readonly metadata?: JsonObject;
  /** No person made it: it has no trace and does not count. */
  readonly background?: boolean;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (data: Json) => void;
}

/** The outcome of a successful call. */
export interface CallOutcome {
  /** `null` when the function returned nothing. */
  readonly result: Json;
  readonly duration_ms: number;
  readonly trace_id: string | null;
}

/** A call, watch or request that failed. */
export class CallFailure extends Error {
  /** From the engine or the handler. */
  readonly code: string;
  readonly body: ErrorBody;
  readonly duration_ms: number;
  readonly trace_id: string | null;

  constructor(answer: Extract<Answer, { readonly type: "error" }>) {
    super(answer.error.message);
    this.name = "CallFailure";
    this.code = answer.error.code;
    this.body = answer.error;
    this.duration_ms = answer.duration_ms;
    this.trace_id = answer.trace_id;
  }
}

/** The state of a watched query. */
export interface QueryState<T = Json> {
  /** `failed`: no more updates until {@linkcode Live.retry}, or until the engine is back. */
  readonly status: "loading" | "ready" | "failed";
  /** The list of a query with `items`; empty while loading. Never changed in place. */
  readonly items: readonly T[];
  /** The result of a query without `items`; `null` while loading. */
  readonly value: T | null;
  readonly error: CallFailure | null;
}

/** A request to the engine's HTTP port. */
interface HttpRequest {
  readonly method: string;
  /** Begins with a slash; includes the query string. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The response to a {@linkcode HttpRequest}. */
export type HttpResponse = Omit<Extract<Answer, { readonly type: "http_answer" }>, "type" | "id">;

/** What {@linkcode Live} needs of its environment. */
interface LiveOptions {
  /** Opens a socket to the console. */
  readonly open: () => ConsoleSocket;
  readonly token: () => string;
  /** Runs something later; the result cancels it. */
  readonly later: (ms: number, run: () => void) => () => void;
  readonly now: () => number;
}

interface WatchedState {
  readonly state: Signal<QueryState>;
  readonly query: WatchedQuery;
  readonly on: readonly WatchedTrigger[];
  users: number;
  end: () => void;
  cancelLinger: (() => void) | undefined;
}

const LOADING: QueryState = { status: "loading", items: [], value: null, error: null };

/** Calls, watches and HTTP requests over one connection. */
export class Live {
  readonly #options: LiveOptions;
  readonly #connection: Connection;
  readonly #watched = new Map<string, WatchedState>();
  readonly #status: Signal<LiveStatus>;

  /** Connects to nothing before {@linkcode connect}. */
  constructor(options: LiveOptions) {
    this.#options = options;
    this.#status = signal<LiveStatus>({
      connection: "connecting",
      engine: null,
      since_ms: options.now(),
      version: "",
      engine_url: "",
      operator: false,
    });
    this.#connection = new Connection({
      ...options,
      onState: (connection) => {
        const since = connection === "lost" && { since_ms: options.now() };
        this.#update({ connection, ...connection !== "open" && { engine: null }, ...since });
      },
      onNotice: (notice) => {
        if (notice.type === "welcome") {
          const { version, engine_url, operator } = notice;
          this.#update({ version, engine_url, operator });
        } else {
          this.#update({ engine: notice.connected, since_ms: notice.since_ms });
          if (notice.connected) this.#retryFailed();
        }
      },
    });
  }

  /** The state of the connections. */
  get status(): ReadonlySignal<LiveStatus> {
    return this.#status;
  }

  /** Connects to the console, or again at once, such as with another token. */
  connect(): void {
    this.#connection.open();
  }

  /** Closes the connection for good. */
  close(): void {
    this.#connection.close();
  }

  /** Calls a function. @throws {CallFailure} With the callee's code or the engine's. */
  async call<T extends Json = Json>(
    function_id: string,
    payload?: Json,
    options: CallOptions = {},
  ): Promise<T> {
    const { result } = await this.callFully(function_id, payload, options);
    return result as T;
  }

  /** Calls a function and also returns duration and trace. @throws {CallFailure} */
  callFully(function_id: string, payload?: Json, options: CallOptions = {}): Promise<CallOutcome> {
    const { signal: abort, onProgress, ...rest } = options;
    const request = { type: "call", function_id, ...payload !== undefined && { payload }, ...rest };
    const limitMs = (options.timeout_ms ?? CALL_TIMEOUT_MS) + ANSWER_GRACE_MS;
    return this.#once(request as never, limitMs, abort, (answer, resolve) => {
      if (answer.type === "progress") onProgress?.(answer.data);
      if (answer.type !== "result") return;
      const { result = null, duration_ms, trace_id } = answer;
      resolve({ result, duration_ms, trace_id });
    });
  }

  /** Sends an HTTP request to the engine's HTTP port. @throws {CallFailure} */
  http(request: HttpRequest, abort?: AbortSignal): Promise<HttpResponse> {
    const limitMs = CALL_TIMEOUT_MS + ANSWER_GRACE_MS;
    return this.#once({ type: "http", ...request }, limitMs, abort, (answer, resolve) => {
      if (answer.type === "http_answer") resolve(answer);
    });
  }

  /**
   * Calls `fired` for each firing of a trigger, until the result is called. `missed` is called with
   * the number of firings that a slow page missed; after `failed` no call follows.
   */
  onTrigger(
    trigger: WatchedTrigger,
    fired: (payload: Json) => void,
    listener: {
      readonly missed?: (count: number) => void;
      readonly failed?: (failure: CallFailure) => void;
    } = {},
  ): () => void {
    return this.#connection.request({ type: "watch_trigger", trigger }, true, (answer) => {
      if (answer.type === "fired") fired(answer.payload);
      if (answer.type === "missed") listener.missed?.(answer.count);
      if (answer.type === "error") listener.failed?.(new CallFailure(answer));
    });
  }

  /** Keeps a query up to date until {@linkcode release} with the same arguments. */
  watch(query: WatchedQuery, on: readonly WatchedTrigger[]): ReadonlySignal<QueryState> {
    const key = JSON.stringify([query, on]);
    const known = this.#watched.get(key);
    const watched = known ??
      { state: signal(LOADING), query, on, users: 0, end: () => {}, cancelLinger: undefined };
    watched.cancelLinger?.();
    watched.cancelLinger = undefined;
    watched.users++;
    if (known === undefined) {
      this.#watched.set(key, watched);
      this.#request(watched);
    } else if (watched.users === 1 && watched.state.value.status === "failed") {
      this.retry(query, on); // It lingered without users; what it failed by may be mended.
    }
    return watched.state;
  }

  /** Gives up one use of a watch; the last one ends it after a moment. */
  release(query: WatchedQuery, on: readonly WatchedTrigger[]): void {
    const key = JSON.stringify([query, on]);
    const watched = this.#watched.get(key);
    if (watched === undefined || --watched.users > 0) return;
    watched.cancelLinger = this.#options.later(LINGER_MS, () => {
      this.#watched.delete(key);
      watched.end();
    });
  }

  /** Requests a query again, such as after it failed. */
  retry(query: WatchedQuery, on: readonly WatchedTrigger[]): void {
    const watched = this.#watched.get(JSON.stringify([query, on]));
    if (watched === undefined) return;
    watched.end();
    if (watched.state.value.status === "failed") watched.state.value = LOADING;
    this.#request(watched);
  }

  #request(watched: WatchedState): void {
    const { state, query, on } = watched;
    watched.end = this.#connection.request({ type: "watch_query", query, on }, true, (answer) => {
      state.value = stateAfter(state.value, query.key ?? [], answer);
    });
  }

  #retryFailed(): void {
    for (const { state, query, on } of this.#watched.values()) {
      if (state.value.status === "failed") this.retry(query, on);
    }
  }

  /** Sends a request that ends with one answer, or fails after `limitMs`. */
  #once<T>(
    request: Request,
    limitMs: number,
    abort: AbortSignal | undefined,
    onAnswer: (answer: Answer, resolve: (value: T) => void) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (finish: () => void) => {
        cancelTimer();
        abort?.removeEventListener("abort", aborted);
        finish();
      };
      const failLocally = (code: string, message: string) => {
        end();
        const error = { code, message };
        const answer = { type: "error", id: 0, error, duration_ms: 0, trace_id: null } as const;
        settle(() => reject(new CallFailure(answer)));
      };
      const aborted = () => failLocally("cancelled", "The call was cancelled here");
      const end = this.#connection.request(request, false, (answer) => {
        if (answer.type === "error") return settle(() => reject(new CallFailure(answer)));
        onAnswer(answer, (value) => settle(() => resolve(value)));
      });
      const cancelTimer = this.#options.later(limitMs, () => {
        failLocally("timeout", `Nothing came within ${limitMs} ms`);
      });
      if (abort?.aborted) aborted();
      else abort?.addEventListener("abort", aborted);
    });
  }

  #update(change: Partial<LiveStatus>): void {
    this.#status.value = { ...this.#status.value, ...change };
  }
}

function stateAfter(state: QueryState, key: readonly string[], answer: Answer): QueryState {
  switch (answer.type) {
    case "snapshot":
      return { status: "ready", items: answer.items, value: null, error: null };
    case "patch": {
      const items = patchItems(state.items, key, answer.set, answer.gone);
      return { status: "ready", items, value: null, error: null };
    }
    case "value":
      return { status: "ready", items: [], value: answer.value, error: null };
    case "error":
      return { ...state, status: "failed", error: new CallFailure(answer) };
    default:
      return state; // `missed`: a snapshot follows it.
  }
}

/** The list after a patch: changed items in their place, new ones at the end. */
export function patchItems(
  items: readonly Json[],
  members: readonly string[],
  set: readonly Json[],
  gone: readonly string[],
): readonly Json[] {
  const changed = new Map<string, Json>();
  for (const item of set) changed.set(itemKey(item, members) ?? JSON.stringify(item), item);
  const removed = new Set(gone);
  const list: Json[] = [];
  for (const item of items) {
    const key = itemKey(item, members) ?? "";
    const next = changed.get(key);
    if (next !== undefined) {
      list.push(next);
      changed.delete(key);
    } else if (!removed.has(key)) {
      list.push(item);
    }
  }
  list.push(...changed.values());
  return list;
}

/** The key of an item, as the wire spells it; `undefined` for what is no object. */
export function itemKey(item: Json, members: readonly string[]): string | undefined {
  if (item === null || typeof item !== "object" || Array.isArray(item)) return undefined;
  return JSON.stringify(members.map((member) => item[member] ?? null));
}
