/**
 * The connection of one open page: reads its messages and answers them.
 *
 * Each request of a page has an id of its own and ends exactly once: its result or error was sent,
 * the page ended it, or the connection closed. Closing releases everything that the page had open.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { problemsOf } from "../kit/fit.ts";
import { isTooDeep, JSON_DEPTH_MAX } from "../../sdk/typescript/wire/json_depth.ts";
import { checkCall, checkTrigger, guestView, type Rights } from "./access.ts";
import { beginTrace, type EngineClient, errorBodyOf } from "./engine_client.ts";
import type { HttpProxy } from "./http_proxy.ts";
import { type BrowserSocket, Outbox } from "./outbox.ts";
import type { QueryFeeds, QueryWatch } from "./query_feeds.ts";
import { patchMessage } from "./query_state.ts";
import type { TriggerFeeds } from "./trigger_feeds.ts";
import { type BrowserMessage, type ConsoleMessage, WRONG_TOKEN_CLOSE } from "./wire.ts";

/** A page has to send `hello` within this time. */
export const HELLO_MS = 10_000;
/** Longest message before `hello` was accepted, in characters. */
export const HELLO_CHARS_MAX = 4_096;
/** A wrong token is answered after this delay, which makes guessing slow. */
export const WRONG_TOKEN_MS = 500;
/** Longest message of a page, in characters. */
export const MESSAGE_CHARS_MAX = 16 * 1024 * 1024;
/** Calls, watches and requests that one page has open at once. */
export const OPEN_REQUESTS_MAX = 500;
/** Triggers that one query is refreshed by. */
export const QUERY_TRIGGERS_MAX = 20;

/** Close codes of the WebSocket protocol. */
const POLICY_VIOLATION_CLOSE = 1008;
const TOO_LONG_CLOSE = 1009;
const TRY_LATER_CLOSE = 1013;

/** What the connections of all pages share. */
export interface BrowserServices {
  readonly clock: Clock;
  readonly engine: EngineClient;
  readonly triggers: TriggerFeeds;
  readonly queries: QueryFeeds;
  readonly http: Pick<HttpProxy, "send">;
  /** What a token allows; `undefined`: it is wrong. */
  rightsOf(token: string): Rights | undefined;
  /** Whether there is room for another page with these rights; if so, it counts as one. */
  admit?(rights: Rights): boolean;
  readonly version: string;
  /** Where the engine is, without secrets. */
  engineUrl(): string;
}

type CallMessage = Extract<BrowserMessage, { type: "call" }>;
type QueryMessage = Extract<BrowserMessage, { type: "watch_query" }>;
type TriggerMessage = Extract<BrowserMessage, { type: "watch_trigger" }>;
type HttpMessage = Extract<BrowserMessage, { type: "http" }>;

/** One page from its `hello` until its WebSocket closes. */
export class BrowserConnection {
  readonly #services: BrowserServices;
  readonly #socket: BrowserSocket;
  readonly #outbox: Outbox;
  /** Ends each open call, watch and request, by id. */
  readonly #open = new Map<number, () => void>();
  #stopListening: () => void = () => {};
  #cancelWait: () => void;
  #rights: Rights | undefined;
  #isRefused = false;
  #isClosed = false;

  constructor(services: BrowserServices, socket: BrowserSocket) {
    const { clock } = services;
    this.#services = services;
    this.#socket = socket;
    this.#outbox = new Outbox(socket, clock, (reason) => this.close(TRY_LATER_CLOSE, reason));
    this.#cancelWait = clock.after(
      HELLO_MS,
      () => this.close(POLICY_VIOLATION_CLOSE, "the page sent no hello"),
    );
  }

  /** Calls, watches and requests that are open. */
  get openCount(): number {
    return this.#open.size;
  }

  /** What it may do; `undefined` before its `hello` was accepted. */
  get rights(): Rights | undefined {
    return this.#rights;
  }

  /** Handles a text message. */
  receive(text: string): void {
    // After a wrong token nothing is read until the delay is over, or guessing would be quick.
    if (this.#isClosed || this.#isRefused) return;
    if (text.length > (this.#rights ? MESSAGE_CHARS_MAX : HELLO_CHARS_MAX)) {
      return this.close(TOO_LONG_CLOSE, "a message is too long");
    }
    const read = readMessage(text);
    if ("message" in read) return this.#handle(read.message);
    if (read.id === undefined || !this.#rights) {
      return this.close(POLICY_VIOLATION_CLOSE, "not a message");
    }
    this.#fail(read.id, { code: "bad_message", message: read.problem });
  }

  /** Handles a binary message: the protocol has none. */
  receiveBinary(): void {
    this.close(POLICY_VIOLATION_CLOSE, "not a message");
  }

  /** Closes the socket and ends everything that is open. */
  close(code: number, reason: string): void {
    this.closed();
    this.#socket.close(code, reason);
  }

  /** Ends everything that is open, because the socket is closed. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelWait();
    this.#stopListening();
    this.#outbox.stop();
    for (const end of this.#open.values()) end();
    this.#open.clear();
  }

  #handle(message: BrowserMessage): void {
    if (message.type === "hello") return this.#hello(message.token);
    const rights = this.#rights;
    if (!rights) return this.close(POLICY_VIOLATION_CLOSE, "hello comes first");
    const { id } = message;
    if (message.type === "end") return this.#end(id);
    if (this.#open.has(id)) return this.close(POLICY_VIOLATION_CLOSE, `${id} is in use`);
    try {
      this.#begin(message, rights);
    } catch (thrown) {
      this.#fail(id, errorBodyOf(thrown));
    }
  }

  #hello(token: string): void {
    if (this.#rights) return this.close(POLICY_VIOLATION_CLOSE, "the page sent hello twice");
    const { version, engine, clock } = this.#services;
    this.#cancelWait();
    const rights = this.#services.rightsOf(token);
    if (!rights) {
      this.#isRefused = true;
      this.#cancelWait = clock.after(
        WRONG_TOKEN_MS,
        () => this.close(WRONG_TOKEN_CLOSE, "wrong token"),
      );
      return;
    }
    if (this.#services.admit?.(rights) === false) {
      return this.close(TRY_LATER_CLOSE, "too many pages are open; close one");
    }
    this.#rights = rights;
    const engine_url = this.#services.engineUrl();
    this.#outbox.send({ type: "welcome", version, engine_url, operator: rights === "operator" });
    const sendState = (): void => {
      const { isConnected, sinceMs } = engine;
      this.#outbox.send({ type: "engine", connected: isConnected, since_ms: sinceMs });
    };
    sendState();
    this.#stopListening = engine.onChange(sendState);
  }

  #begin(
    message: CallMessage | QueryMessage | TriggerMessage | HttpMessage,
    rights: Rights,
  ): void {
    if (this.#open.size >= OPEN_REQUESTS_MAX) {
      const text =
        `This page has ${OPEN_REQUESTS_MAX} requests open, the maximum; wait until one has ended`;
      throw new EngineError("overloaded", text);
    }
    switch (message.type) {
      case "call":
        checkCall(rights, message.function_id, message.payload);
        return this.#call(message, rights);
      case "watch_trigger":
        return this.#watchTrigger(message, rights);
      case "watch_query":
        checkCall(rights, message.query.function_id, message.query.payload);
        return this.#watchQuery(message, rights);
      case "http":
        return this.#http(message);
    }
  }

  #call(call: CallMessage, rights: Rights): void {
    const { id, function_id, payload, namespace, timeout_ms, metadata, background } = call;
    // Calls of core functions only feed the page; recorded, they would hide the others.
    const isRecorded = !background && !function_id.startsWith("engine::");
    const { traceparent, trace_id } = beginTrace(isRecorded);
    this.#run(id, trace_id, async (signal, duration) => {
      const result = await this.#services.engine.call({
        function_id,
        traceparent,
        signal,
        onProgress: (data) => {
          if (this.#open.has(id)) this.#outbox.push({ type: "progress", id, data });
        },
        ...payload !== undefined && { payload },
        ...namespace !== undefined && { namespace },
        ...timeout_ms !== undefined && { timeout_ms },
        ...metadata !== undefined && { metadata },
      });
      const view = rights === "guest" ? guestView(function_id) : undefined;
      const shown = view ? view(result) : result;
      const duration_ms = duration();
      return {
        type: "result",
        id,
        ...shown !== undefined && { result: shown },
        duration_ms,
        trace_id,
      };
    });
  }

  #http(request: HttpMessage): void {
    const { id } = request;
    this.#run(id, null, async (signal, duration) => {
      const response = await this.#services.http.send(request, signal);
      return { type: "http_answer", id, ...response, duration_ms: duration() };
    });
  }

  /** Runs a task whose message, or error, ends the request. */
  #run(
    id: number,
    trace_id: string | null,
    task: (signal: AbortSignal, duration: () => number) => Promise<ConsoleMessage>,
  ): void {
    const { clock } = this.#services;
    const abort = new AbortController();
    const began = clock.now();
    const duration = (): number => clock.now() - began;
    const end = (): void => abort.abort(new EngineError("cancelled", "The page ended the request"));
    this.#open.set(id, end);
    const settle = (message: () => ConsoleMessage): void => {
      if (this.#open.get(id) !== end) return; // Ended by the page; the id may be in use again.
      this.#open.delete(id);
      this.#outbox.send(message());
      this.#outbox.forget(id);
    };
    task(abort.signal, duration).then(
      (message) => settle(() => message),
      (thrown) =>
        settle(() => {
          const duration_ms = duration();
          return { type: "error", id, error: errorBodyOf(thrown), duration_ms, trace_id };
        }),
    );
  }

  #watchTrigger({ id, trigger }: TriggerMessage, rights: Rights): void {
    checkTrigger(rights, trigger);
    const stop = this.#services.triggers.watch(trigger, {
      fired: (payload: Json) => this.#outbox.push({ type: "fired", id, payload }),
      missed: (count) => this.#outbox.send({ type: "missed", id, count }),
      failed: (error) => this.#fail(id, error),
    }, rights === "operator");
    this.#open.set(id, stop);
  }

  #watchQuery({ id, query, on }: QueryMessage, rights: Rights): void {
    for (const trigger of on) checkTrigger(rights, trigger);
    const apply = rights === "guest" ? guestView(query.function_id) : undefined;
    const watch: QueryWatch = this.#services.queries.watch({
      query,
      on,
      isOperator: rights === "operator",
      ...apply && { view: { name: "guest", apply } },
    }, {
      changed: (change, state) => {
        const text = change.type === "patch"
          ? () => patchMessage(id, change)
          : () => state.wholeMessage(id);
        this.#outbox.pushState(id, text, () => watch.sendAll());
      },
      failed: (error) => this.#fail(id, error),
    });
    this.#open.set(id, () => watch.stop());
  }

  #fail(id: number, error: ErrorBody): void {
    this.#open.delete(id);
    this.#outbox.forget(id);
    this.#outbox.send({ type: "error", id, error, duration_ms: 0, trace_id: null });
  }

  #end(id: number): void {
    const end = this.#open.get(id);
    this.#open.delete(id);
    this.#outbox.forget(id);
    end?.();
  }
}

const Id = v.int(0);
const Name = v.text(1, ID_CHARS_MAX);
// Parsed JSON is JSON: checking all of it would take time, and a stack as deep as it is nested.
const Members = v.record(v.unknown());
const Trigger = v.object({ type: Name, config: v.optional(Members) });

const Message = v.variant("type", [
  v.object({ type: v.literal("hello"), token: v.string() }),
  v.object({
    type: v.literal("call"),
    id: Id,
    function_id: Name,
    namespace: v.optional(Name),
    payload: v.optional(v.unknown()),
    timeout_ms: v.optional(v.int(1, TIMEOUT_MS_MAX)),
    metadata: v.optional(Members),
    background: v.optional(v.boolean()),
  }),
  v.object({ type: v.literal("watch_trigger"), id: Id, trigger: Trigger }),
  v.object({
    type: v.literal("watch_query"),
    id: Id,
    query: v.object({
      function_id: Name,
      payload: v.optional(Members),
      items: v.optional(Name),
      key: v.optional(v.pipe(v.array(Name), v.minLength(1))),
    }),
    on: v.list(Trigger, QUERY_TRIGGERS_MAX),
  }),
  v.object({
    type: v.literal("http"),
    id: Id,
    method: v.pipe(v.string(), v.regex(/^[A-Z]{1,20}$/, "expected a method such as GET")),
    path: v.pipe(v.string(), v.startsWith("/")),
    headers: v.record(v.string()),
    body: v.optional(v.string()),
  }),
  v.object({ type: v.literal("end"), id: Id }),
]);

/** A message, or what is wrong with it; `id` is that of the wrong request, if it can be read. */
export type ReadMessage =
  | { readonly message: BrowserMessage }
  | { readonly problem: string; readonly id: number | undefined };

/** Reads and checks a message of a page. Never throws. */
export function readMessage(text: string): ReadMessage {
  let value: unknown;
  if (isTooDeep(text)) {
    const problem = `The message is nested more deeply than ${JSON_DEPTH_MAX} levels`;
    return { problem, id: undefined };
  }
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "The message is not JSON", id: undefined };
  }
  try {
    return checkMessage(value);
  } catch (thrown) {
    return { problem: `The message cannot be read: ${thrownText(thrown)}`, id: undefined };
  }
}

function checkMessage(value: unknown): ReadMessage {
  const read = v.safeParse(Message, value);
  // The schema matches the type, except that it allows `undefined` in optional members.
  if (read.success) return { message: read.output as BrowserMessage };
  const id = v.safeParse(Id, (value as { id?: unknown } | null)?.id);
  return {
    problem: `The message cannot be understood: ${problemsOf(read.issues, value).join("; ")}`,
    id: id.success ? id.output : undefined,
  };
}
