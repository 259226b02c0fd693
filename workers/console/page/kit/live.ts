/**
 * What a page asks the engine: calls, watched queries, triggers, HTTP requests.
 *
 * Equal queries are watched once, however many components want them, and stay for a moment after
 * the last one went, so that going back to a page shows it at once.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { CALL_TIMEOUT_MS } from "../../../../sdk/typescript/wire/limits.ts";
import type { ErrorBody, Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../wire.ts";
import { type Answer, type LineSocket, type LineState, LiveLine } from "./connection.ts";

/** The page waits this much longer than the deadline of a call for its answer. */
export const ANSWER_GRACE_MS = 5_000;
/** A watch stays open this long after its last user, so that going back is instant. */
const LINGER_MS = 10_000;

/** How the page fares. */
export interface Connection {
  readonly line: LineState;
  /** Whether the console reaches the engine; `null` until it said so. */
  readonly engine: boolean | null;
  /** Since when that is so, in milliseconds since 1970. */
  readonly since_ms: number;
  /** Such as `0.1.0`; empty before the welcome. */
  readonly version: string;
  readonly engine_url: string;
  /** Whether this page may manage workers and sees payloads of calls. */
  readonly operator: boolean;
}

/** What may be said of a call besides function and payload. */
export interface CallOptions {
  readonly namespace?: string;
  /** @default 30000 */
  readonly timeout_ms?: number;
  readonly metadata?: JsonObject;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (data: Json) => void;
}

/** A call that ended well. */
export interface CallOutcome {
  /** `null` when there was none. */
  readonly result: Json;
  readonly duration_ms: number;
  readonly trace_id: string | null;
}

/** A call, watch or request that failed. */
export class CallFailure extends Error {
  /** As the engine or the handler gave it. */
  readonly code: string;
  readonly body: ErrorBody;
  readonly duration_ms: number;
  readonly trace_id: string | null;

  /** Makes one of what came. */
  constructor(answer: Extract<Answer, { readonly type: "error" }>) {
    super(answer.error.message);
    this.name = "CallFailure";
    this.code = answer.error.code;
    this.body = answer.error;
    this.duration_ms = answer.duration_ms;
    this.trace_id = answer.trace_id;
  }
}

/** What a watched query knows now. */
export interface QueryState<T = Json> {
  /** `failed`: nothing more comes until {@linkcode Live.retry}, or until the engine is back. */
  readonly status: "loading" | "ready" | "failed";
  /** The list, for queries with `items`; empty before it came. Never changed in place. */
  readonly items: readonly T[];
  /** The whole result, for queries without `items`; `null` before it came. */
  readonly value: T | null;
  readonly error: CallFailure | null;
}

/** An HTTP request to the engine's HTTP port. */
export interface HttpRequest {
  readonly method: string;
  /** From the slash on, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Its answer. */
export type HttpAnswer = Omit<Extract<Answer, { readonly type: "http_answer" }>, "type" | "id">;

/** What the page's surroundings lend. */
export interface LiveOptions {
  readonly open: () => LineSocket;
  readonly token: () => string;
  readonly later: (ms: number, run: () => void) => () => void;
  readonly now: () => number;
}

interface Watched {
  readonly state: Signal<QueryState>;
  readonly query: WatchedQuery;
  readonly on: readonly WatchedTrigger[];
  users: number;
  end: () => void;
  stopLinger: (() => void) | undefined;
}

const LOADING: QueryState = { status: "loading", items: [], value: null, error: null };

/** See the module. */
export class Live {
  readonly #options: LiveOptions;
  readonly #line: LiveLine;
  readonly #watched = new Map<string, Watched>();
  readonly #connection: Signal<Connection>;

  /** Makes one; {@linkcode start} opens its line. */
  constructor(options: LiveOptions) {
    this.#options = options;
    this.#connection = signal<Connection>({
      line: "connecting",
      engine: null,
      since_ms: options.now(),
      version: "",
      engine_url: "",
      operator: false,
    });
    this.#line = new LiveLine({
      ...options,
      onState: (line) => {
        const lost = line === "lost" && { since_ms: options.now() };
        this.#become({ line, ...line !== "open" && { engine: null }, ...lost });
      },
      onNews: (news) => {
        if (news.type === "welcome") {
          const { version, engine_url, operator } = news;
          this.#become({ version, engine_url, operator });
        } else {
          this.#become({ engine: news.connected, since_ms: news.since_ms });
          if (news.connected) this.#askFailedAgain();
        }
      },
    });
  }

  /** How the page fares, now and whenever it changes. */
  get connection(): ReadonlySignal<Connection> {
    return this.#connection;
  }

  /** Opens the line; again: opens it anew at once, such as with another token. */
  start(): void {
    this.#line.start();
  }

  /** Closes the line for good. */
  stop(): void {
    this.#line.stop();
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

  /** Calls a function and says how long it took. @throws {CallFailure} */
  callFully(function_id: string, payload?: Json, options: CallOptions = {}): Promise<CallOutcome> {
    const { signal: abort, onProgress, ...said } = options;
    const request = { type: "call", function_id, ...payload !== undefined && { payload }, ...said };
    const limit = (options.timeout_ms ?? CALL_TIMEOUT_MS) + ANSWER_GRACE_MS;
    return this.#once(request as never, limit, abort, (answer, done) => {
      if (answer.type === "progress") onProgress?.(answer.data);
      if (answer.type !== "result") return;
      const { result = null, duration_ms, trace_id } = answer;
      done({ result, duration_ms, trace_id });
    });
  }

  /** Sends an HTTP request to the engine's HTTP port. @throws {CallFailure} */
  http(request: HttpRequest, abort?: AbortSignal): Promise<HttpAnswer> {
    const limit = CALL_TIMEOUT_MS + ANSWER_GRACE_MS;
    return this.#once({ type: "http", ...request }, limit, abort, (answer, done) => {
      if (answer.type === "http_answer") done(answer);
    });
  }

  /** Hears each firing of a trigger until the result is called. `failed`: nothing more comes. */
  onTrigger(
    trigger: WatchedTrigger,
    fired: (payload: Json) => void,
    told: {
      readonly missed?: (count: number) => void;
      readonly failed?: (failure: CallFailure) => void;
    } = {},
  ): () => void {
    return this.#line.ask({ type: "watch_trigger", trigger }, true, (answer) => {
      if (answer.type === "fired") fired(answer.payload);
      if (answer.type === "missed") told.missed?.(answer.count);
      if (answer.type === "error") told.failed?.(new CallFailure(answer));
    });
  }

  /** A query that is kept up to date, until {@linkcode release} with the same arguments. */
  watch(query: WatchedQuery, on: readonly WatchedTrigger[]): ReadonlySignal<QueryState> {
    const name = JSON.stringify([query, on]);
    const known = this.#watched.get(name);
    const watched = known ??
      { state: signal(LOADING), query, on, users: 0, end: () => {}, stopLinger: undefined };
    watched.stopLinger?.();
    watched.stopLinger = undefined;
    watched.users++;
    if (known === undefined) {
      this.#watched.set(name, watched);
      this.#askQuery(watched);
    }
    return watched.state;
  }

  /** One user less; the last one ends the watch after a moment. */
  release(query: WatchedQuery, on: readonly WatchedTrigger[]): void {
    const name = JSON.stringify([query, on]);
    const watched = this.#watched.get(name);
    if (watched === undefined || --watched.users > 0) return;
    watched.stopLinger = this.#options.later(LINGER_MS, () => {
      this.#watched.delete(name);
      watched.end();
    });
  }

  /** Asks a query anew, such as after it failed. */
  retry(query: WatchedQuery, on: readonly WatchedTrigger[]): void {
    const watched = this.#watched.get(JSON.stringify([query, on]));
    if (watched === undefined) return;
    watched.end();
    if (watched.state.value.status === "failed") watched.state.value = LOADING;
    this.#askQuery(watched);
  }

  #askQuery(watched: Watched): void {
    const { state, query, on } = watched;
    watched.end = this.#line.ask({ type: "watch_query", query, on }, true, (answer) => {
      state.value = next(state.value, query.key ?? [], answer);
    });
  }

  #askFailedAgain(): void {
    for (const { state, query, on } of this.#watched.values()) {
      if (state.value.status === "failed") this.retry(query, on);
    }
  }

  #once<T>(
    request: Parameters<LiveLine["ask"]>[0],
    limitMs: number,
    abort: AbortSignal | undefined,
    read: (answer: Answer, done: (value: T) => void) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (finish: () => void) => {
        stopTimer();
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
      const end = this.#line.ask(request, false, (answer) => {
        if (answer.type === "error") return settle(() => reject(new CallFailure(answer)));
        read(answer, (value) => settle(() => resolve(value)));
      });
      const stopTimer = this.#options.later(limitMs, () => {
        failLocally("timeout", `Nothing came within ${limitMs} ms`);
      });
      if (abort?.aborted) aborted();
      else abort?.addEventListener("abort", aborted);
    });
  }

  #become(change: Partial<Connection>): void {
    this.#connection.value = { ...this.#connection.value, ...change };
  }
}

/** What a query knows after an answer. */
function next(state: QueryState, key: readonly string[], answer: Answer): QueryState {
  switch (answer.type) {
    case "snapshot":
      return { status: "ready", items: answer.items, value: null, error: null };
    case "patch": {
      const items = patched(state.items, key, answer.set, answer.gone);
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

/** The key of an item as the wire spells it; `undefined` for what is no object. */
export function itemKey(item: Json, members: readonly string[]): string | undefined {
  if (item === null || typeof item !== "object" || Array.isArray(item)) return undefined;
  return JSON.stringify(members.map((member) => item[member] ?? null));
}

/** The list after a patch: known items in their place, new ones at the end. */
export function patched(
  items: readonly Json[],
  members: readonly string[],
  set: readonly Json[],
  gone: readonly string[],
): readonly Json[] {
  const fresh = new Map<string, Json>();
  for (const item of set) fresh.set(itemKey(item, members) ?? JSON.stringify(item), item);
  const without = new Set(gone);
  const list: Json[] = [];
  for (const item of items) {
    const key = itemKey(item, members) ?? "";
    const next = fresh.get(key);
    if (next !== undefined) {
      list.push(next);
      fresh.delete(key);
    } else if (!without.has(key)) {
      list.push(item);
    }
  }
  list.push(...fresh.values());
  return list;
}
