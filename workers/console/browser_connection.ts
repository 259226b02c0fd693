/**
 * One browser: what it asks, and what it is told.
 *
 * A request of a browser has a number, and ends in exactly one of these ways: its answer or its
 * error came, the browser ended it, or the line is over. Nothing of a line is left when it is over.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { problemsOf } from "../kit/fit.ts";
import { checkCall, holdsPayloads, type Rights, withoutPayloads } from "./access.ts";
import { beginTrace, type EngineLink, failureOf } from "./engine_client.ts";
import type { HttpDoor } from "./http_proxy.ts";
import {
  CONSOLE_HELLO_CHARS_MAX,
  CONSOLE_HELLO_MS,
  CONSOLE_MESSAGE_CHARS_MAX,
  CONSOLE_OPEN_MAX,
  CONSOLE_QUERY_TRIGGERS_MAX,
  CONSOLE_WRONG_TOKEN_MS,
} from "./limits.ts";
import { type BrowserSocket, Outbox } from "./outbox.ts";
import type { QueryFeeds, QueryPart } from "./query_feeds.ts";
import { patchMessage } from "./query_state.ts";
import type { TriggerFeeds } from "./trigger_feeds.ts";
import { type BrowserMessage, WRONG_TOKEN_CLOSE } from "./wire.ts";

/** What all browsers of a console share. */
export interface BrowserSetup {
  readonly clock: Clock;
  readonly link: EngineLink;
  readonly triggers: TriggerFeeds;
  readonly queries: QueryFeeds;
  readonly http: Pick<HttpDoor, "send">;
  /** What a token allows; `undefined`: it is wrong. */
  rightsOf(token: string): Rights | undefined;
  readonly version: string;
  /** Where the engine is, without secrets. */
  engineUrl(): string;
}

type Call = Extract<BrowserMessage, { type: "call" }>;
type QueryWatch = Extract<BrowserMessage, { type: "watch_query" }>;
type TriggerWatch = Extract<BrowserMessage, { type: "watch_trigger" }>;
type HttpRequest = Extract<BrowserMessage, { type: "http" }>;

/** Close codes of the WebSocket protocol. */
const BAD_MESSAGE_CLOSE = 1008;
const TOO_SLOW_CLOSE = 1013;

/** See the top of this file. */
export class BrowserLine {
  readonly #setup: BrowserSetup;
  readonly #socket: BrowserSocket;
  readonly #outbox: Outbox;
  /** What ends each open call, watch and request. */
  readonly #open = new Map<number, () => void>();
  #stopLink: () => void = () => {};
  #cancelWait: () => void;
  #rights: Rights | undefined;
  #isRefused = false;
  #isClosed = false;

  /** Waits for `hello`. */
  constructor(setup: BrowserSetup, socket: BrowserSocket) {
    this.#setup = setup;
    this.#socket = socket;
    this.#outbox = new Outbox(socket, setup.clock, (reason) => this.close(TOO_SLOW_CLOSE, reason));
    this.#cancelWait = setup.clock.after(
      CONSOLE_HELLO_MS,
      () => this.close(BAD_MESSAGE_CLOSE, "no hello came"),
    );
  }

  /** Calls, watches and requests that are open. */
  get openCount(): number {
    return this.#open.size;
  }

  /** A message came. */
  text(text: string): void {
    // After a wrong token nothing counts any more, or guessing would be as quick as saying.
    if (this.#isClosed || this.#isRefused) return;
    if (text.length > (this.#rights ? CONSOLE_MESSAGE_CHARS_MAX : CONSOLE_HELLO_CHARS_MAX)) {
      return this.close(1009, "a message is too long");
    }
    const read = readMessage(text);
    if ("message" in read) return this.#take(read.message);
    if (read.id === undefined || !this.#rights) {
      return this.close(BAD_MESSAGE_CLOSE, "not a message");
    }
    this.#refuse(read.id, { code: "bad_message", message: read.problem });
  }

  /** Something came that is no text. */
  binary(): void {
    this.close(BAD_MESSAGE_CLOSE, "not a message");
  }

  /** Ends the line and all that is open on it. */
  close(code: number, reason: string): void {
    this.closed();
    this.#socket.close(code, reason);
  }

  /** The line is over. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelWait();
    this.#stopLink();
    this.#outbox.stop();
    for (const end of this.#open.values()) end();
    this.#open.clear();
  }

  #take(message: BrowserMessage): void {
    if (message.type === "hello") return this.#hello(message.token);
    const rights = this.#rights;
    if (!rights) return this.close(BAD_MESSAGE_CLOSE, "hello comes first");
    const { id } = message;
    if (message.type === "end") return this.#end(id);
    if (this.#open.has(id)) return this.close(BAD_MESSAGE_CLOSE, `${id} is in use`);
    try {
      this.#begin(message, rights);
    } catch (thrown) {
      this.#open.delete(id);
      this.#refuse(id, failureOf(thrown));
    }
  }

  #hello(token: string): void {
    if (this.#rights) return this.close(BAD_MESSAGE_CLOSE, "hello came twice");
    this.#cancelWait();
    const rights = this.#setup.rightsOf(token);
    if (!rights) {
      this.#isRefused = true;
      this.#cancelWait = this.#setup.clock.after(
        CONSOLE_WRONG_TOKEN_MS,
        () => this.close(WRONG_TOKEN_CLOSE, "wrong token"),
      );
      return;
    }
    this.#rights = rights;
    const { version, link } = this.#setup;
    const engine_url = this.#setup.engineUrl();
    this.#outbox.send({ type: "welcome", version, engine_url, operator: rights === "operator" });
    const tell = (): void =>
      this.#outbox.send({ type: "engine", connected: link.isConnected, since_ms: link.sinceMs });
    tell();
    this.#stopLink = link.listen(tell);
  }

  #begin(message: Call | QueryWatch | TriggerWatch | HttpRequest, rights: Rights): void {
    if (this.#open.size >= CONSOLE_OPEN_MAX) {
      const text = `This page has ${CONSOLE_OPEN_MAX} requests open, which is the most`;
      throw new EngineError("overloaded", text);
    }
    switch (message.type) {
      case "call":
        checkCall(rights, message.function_id);
        return this.#call(message, rights);
      case "watch_trigger":
        return this.#watchTrigger(message);
      case "watch_query":
        checkCall(rights, message.query.function_id);
        return this.#watchQuery(message, rights);
      case "http":
        return this.#http(message);
    }
  }

  #call(call: Call, rights: Rights): void {
    const { id, function_id, payload, namespace, timeout_ms, metadata } = call;
    // What pages ask the engine itself, to show it, would only hide what people look for.
    const { traceparent, trace_id } = beginTrace(!function_id.startsWith("engine::"));
    this.#run(id, trace_id, async (signal, duration) => {
      const result = await this.#setup.link.call({
        function_id,
        traceparent,
        signal,
        onProgress: (data) => this.#isOpen(id) && this.#outbox.push({ type: "progress", id, data }),
        ...payload !== undefined && { payload },
        ...namespace !== undefined && { namespace },
        ...timeout_ms !== undefined && { timeout_ms },
        ...metadata !== undefined && { metadata },
      });
      const shown = rights === "guest" && holdsPayloads(function_id)
        ? withoutPayloads(result)
        : result;
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

  #http(request: HttpRequest): void {
    const { id } = request;
    this.#run(id, null, async (signal, duration) => {
      const answer = await this.#setup.http.send(request, signal);
      return { type: "http_answer", id, ...answer, duration_ms: duration() };
    });
  }

  /** Does what ends in one answer. */
  #run(
    id: number,
    trace_id: string | null,
    task: (signal: AbortSignal, duration: () => number) => Promise<Parameters<Outbox["send"]>[0]>,
  ): void {
    const { clock } = this.#setup;
    const ending = new AbortController();
    const began = clock.now();
    const duration = (): number => clock.now() - began;
    const end = (): void => ending.abort(new EngineError("cancelled", "The page ended it"));
    this.#open.set(id, end);
    const settle = (message: () => Parameters<Outbox["send"]>[0]): void => {
      if (this.#open.get(id) !== end) return; // Ended meanwhile; the number may be another's now.
      this.#open.delete(id);
      this.#outbox.send(message());
      this.#outbox.forget(id);
    };
    task(ending.signal, duration).then(
      (answer) => settle(() => answer),
      (thrown) =>
        settle(() => {
          const duration_ms = duration();
          return { type: "error", id, error: failureOf(thrown), duration_ms, trace_id };
        }),
    );
  }

  #watchTrigger({ id, trigger }: TriggerWatch): void {
    const stop = this.#setup.triggers.watch(trigger, {
      fired: (payload: Json) => this.#outbox.push({ type: "fired", id, payload }),
      failed: (error) => this.#refuse(id, error),
    });
    this.#open.set(id, stop);
  }

  #watchQuery({ id, query, on }: QueryWatch, rights: Rights): void {
    const view = rights === "guest" && holdsPayloads(query.function_id)
      ? { view: { name: "guest", apply: withoutPayloads } }
      : {};
    const part: QueryPart = this.#setup.queries.watch({ query, on, ...view }, {
      changed: (change, state) => {
        const text = change.type === "patch"
          ? () => patchMessage(id, change)
          : () => state.whole(id);
        this.#outbox.pushState(id, text, () => part.again());
      },
      failed: (error) => this.#refuse(id, error),
    });
    this.#open.set(id, () => part.stop());
  }

  #refuse(id: number, error: ErrorBody): void {
    this.#open.delete(id);
    this.#outbox.forget(id);
    this.#outbox.send({ type: "error", id, error, duration_ms: 0, trace_id: null });
  }

  #isOpen(id: number): boolean {
    return this.#open.has(id);
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
// What was JSON text is JSON: to look at all of it again would only take time, and a stack as deep.
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
    on: v.list(Trigger, CONSOLE_QUERY_TRIGGERS_MAX),
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

/** A message, or what is wrong with one; `id` says which request is wrong, if that can be read. */
export type ReadMessage =
  | { readonly message: BrowserMessage }
  | { readonly problem: string; readonly id: number | undefined };

/** Reads a message of a browser. Never throws. */
export function readMessage(text: string): ReadMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "The message is not JSON", id: undefined };
  }
  try {
    return check(value);
  } catch (thrown) {
    return { problem: `The message cannot be read: ${thrownText(thrown)}`, id: undefined };
  }
}

function check(value: unknown): ReadMessage {
  const read = v.safeParse(Message, value);
  // The schema is that of the type, but for `undefined` in optional members.
  if (read.success) return { message: read.output as BrowserMessage };
  const id = v.safeParse(Id, (value as { id?: unknown } | null)?.id);
  return {
    problem: `The message cannot be understood: ${problemsOf(read.issues, value).join("; ")}`,
    id: id.success ? id.output : undefined,
  };
}
