/**
 * Follows any number of groups and items over one WebSocket, and comes back by itself.
 *
 * The engine has one subscription for each topic, however many iterators follow it here: the
 * messages of the engine name a topic, not a subscription. After each reconnect the client joins
 * all topics again, and each begins with a `sync`.
 *
 * @module
 */
import { checkId, checkReconnect, invalid, readUrl, show } from "../typescript/arguments.ts";
import { BrowserSocket } from "../typescript/browser_socket.ts";
import { type Connection, ReconnectingConnection } from "../typescript/connection.ts";
import type { ConnectionState, ReconnectOptions } from "../typescript/options.ts";
import { platformClock, type WorkerClock } from "../typescript/platform.ts";
import { EngineError, normaliseError, thrownText } from "../typescript/wire/errors.ts";
import type { Json } from "../typescript/wire/protocol.ts";
import type { Dial, Transport, TransportEvents } from "../typescript/wire/transport.ts";
import { type ItemId, Items, keyOf, ownId, readMessage, type Topic } from "./events.ts";
import type { StreamMessage, SyncEvent } from "./events.ts";
import { type StreamSubscription, type SubscribeOptions, Subscription } from "./subscription.ts";

/** Subprotocol beside which a token travels. */
const SUBPROTOCOL = "engine.stream.v1";
/** First delay before a reconnect, and the longest. */
const RECONNECT: ReconnectOptions = { firstMs: 1_000, maxMs: 15_000 };
/** How long the connection stays open without subscriptions. */
const IDLE_MS = 2_000;
/**
 * A client or a topic that was admitted before is tried again so often: after a restart of the
 * engine, the workers that decide and that keep items may return later than the clients.
 */
const RETRIES_MAX = 6;
/** First delay before a topic is joined again; twice as long each time. */
const REJOIN_FIRST_MS = 500;
/** Close code of an engine that does not admit a client. */
const NOT_ADMITTED = 1008;

/** A text, or what provides a fresh one for each connection. */
export type Credential = string | (() => string | Promise<string>);

/**
 * Options of {@linkcode connectStreams}.
 *
 * @example A token that expires
 * ```ts
 * import { connectStreams } from "engine-sdk/browser";
 *
 * const streams = connectStreams("wss://streams.example.com/", {
 *   token: async () => await (await fetch("/token")).text(),
 *   onError: (error) => console.warn(error.code, error.message),
 * });
 * await streams.close();
 * ```
 */
export interface StreamClientOptions {
  /**
   * Sent with each connection. A function is called for each, so that a token may expire. On the
   * stream port the auth function finds it in `headers["sec-websocket-protocol"]`.
   */
  readonly token?: Credential | undefined;
  /**
   * How the token is sent: `protocol`, as a subprotocol, on the stream port; `query`, as the
   * parameter `token`, which the worker port needs. A subprotocol consists of letters, digits and
   * ``!#$%&'*+-.^_`|~`` and is not written to the logs of proxies, unlike an address.
   *
   * @default {"protocol"}
   */
  readonly tokenIn?: "protocol" | "query" | undefined;
  /**
   * How to reconnect: `firstMs` 1000, `maxMs` 15000, each delay varied by 30 %; attempts do not
   * end unless `maxAttempts` is set.
   */
  readonly reconnect?: ReconnectOptions | undefined;
  /**
   * Says which id an item has, where a worker keeps the items of a stream, since the engine does
   * not know it then. Default: the field `id` of the item.
   */
  readonly idOf?: ItemId | undefined;
  /**
   * Receives what concerns no single subscription: the engine cannot be reached, a message is not
   * understood. Default: nothing; `onState` says whether there is a connection.
   */
  readonly onError?: ((error: EngineError) => void) | undefined;
  /** Receives each new state of the connection. */
  readonly onState?: ((state: ConnectionState) => void) | undefined;
  /** Opens connections; for tests. */
  readonly dial?: Dial | undefined;
  /** The clock; for tests. */
  readonly clock?: WorkerClock | undefined;
  /** Numbers from 0 to 1, by which delays vary; for tests. */
  readonly random?: (() => number) | undefined;
}

/** The connection to the streams of an engine. */
export interface StreamClient extends AsyncDisposable {
  /** `disconnected` while nothing is followed. */
  readonly state: ConnectionState;
  /**
   * Follows a group, or one item. Any number of subscriptions share the connection, which opens
   * with the first and closes after the last.
   *
   * @param stream Name of the stream.
   * @param group The group.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `SHUTDOWN` after `close()`.
   *
   * @example Events of one group, until the signal
   * ```ts
   * import { connectStreams } from "engine-sdk/browser";
   *
   * async function follow(signal: AbortSignal) {
   *   await using streams = connectStreams("ws://127.0.0.1:3112/");
   *   for await (const event of streams.subscribe("chat", "room-1", { signal })) {
   *     if (event.type === "sync") console.log("all", event.items);
   *     else if (event.type === "event") console.log(event.name, event.data);
   *     else console.log(event.type, event.id, event.item);
   *   }
   * }
   * ```
   */
  subscribe<Item = Json>(
    stream: string,
    group: string,
    options?: SubscribeOptions,
  ): StreamSubscription<Item>;
  /** Ends all subscriptions and closes the connection. Nothing the second time. */
  close(): Promise<void>;
}

/**
 * Follows streams of the engine at an address. Nothing is sent before the first subscription.
 *
 * @param url Of the stream port, such as `ws://127.0.0.1:3112/`, or of the worker port with the
 * path `/stream`; also a function that provides it for each connection.
 * @throws {EngineError} `INVALID_ARGUMENTS`
 *
 * @example
 * ```ts
 * import { connectStreams } from "engine-sdk/browser";
 *
 * const streams = connectStreams("ws://127.0.0.1:3112/?user=ann");
 * await streams.close();
 * ```
 */
export function connectStreams(url: Credential, options: StreamClientOptions = {}): StreamClient {
  return new Client(url, options);
}

/** What the iterators of one topic share. */
interface FollowedTopic extends Topic {
  readonly subscriptionId: string;
  readonly items: Items;
  readonly subscriptions: Set<Subscription>;
  /** It has had a `sync` since the connection opened. */
  isLive: boolean;
  wasLive: boolean;
  /** Time of its last message. */
  timestamp: number;
  failures: number;
  cancelRejoin: (() => void) | undefined;
}

class Client implements StreamClient {
  readonly #url: Credential;
  readonly #options: StreamClientOptions;
  readonly #clock: WorkerClock;
  readonly #topics = new Map<string, FollowedTopic>();
  #connection: ReconnectingConnection | undefined;
  #cancelIdle: (() => void) | undefined;
  #ids = 0;
  /** Connections in a row that the engine opened, but did not admit. */
  #rejections = 0;
  #wasAdmitted = false;
  #isClosed = false;

  constructor(url: Credential, options: StreamClientOptions) {
    if (typeof url !== "function") readUrl(url);
    const { token, tokenIn, reconnect } = options;
    if (tokenIn !== undefined && tokenIn !== "protocol" && tokenIn !== "query") {
      throw invalid(`tokenIn must be "protocol" or "query", got ${show(tokenIn)}`);
    }
    if (typeof token !== "function") checkToken(token, tokenIn);
    checkReconnect(reconnect ?? {});
    this.#url = url;
    this.#options = options;
    this.#clock = options.clock ?? platformClock;
  }

  get state(): ConnectionState {
    return this.#connection?.state ?? "disconnected";
  }

  subscribe<Item = Json>(
    streamName: string,
    groupId: string,
    options: SubscribeOptions = {},
  ): StreamSubscription<Item> {
    checkId("The name of a stream", streamName, "chat");
    checkId("A group", groupId, "room-1");
    if (options.id !== undefined) checkId("The id of an item", options.id, "m7");
    if (this.#isClosed) throw new EngineError("SHUTDOWN", "The client of streams is closed");
    const place = { streamName, groupId, id: options.id ?? null };
    const known = this.#topics.get(keyOf(place));
    const topic = known ?? this.#createTopic(place);
    const subscription = new Subscription({
      stream: streamName,
      group: groupId,
      items: topic.items.map,
      isLive: () => topic.isLive,
      sync: (missed) => syncOf(topic, missed),
      ended: (ended) => this.#leave(topic, ended),
    }, options);
    if (options.signal?.aborted) subscription.close();
    else this.#add(topic, subscription, known !== undefined);
    return subscription as unknown as StreamSubscription<Item>;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { subscriptions } of [...this.#topics.values()]) {
      for (const subscription of [...subscriptions]) subscription.close();
    }
    await this.#disconnect();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #createTopic(place: Topic): FollowedTopic {
    return {
      ...place,
      subscriptionId: `s${++this.#ids}`,
      items: new Items(this.#options.idOf ?? ownId),
      subscriptions: new Set(),
      isLive: false,
      wasLive: false,
      timestamp: 0,
      failures: 0,
      cancelRejoin: undefined,
    };
  }

  #add(topic: FollowedTopic, subscription: Subscription, isKnown: boolean): void {
    topic.subscriptions.add(subscription);
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    if (isKnown) {
      if (topic.isLive) subscription.push(syncOf(topic, 0), 0);
      return;
    }
    this.#topics.set(keyOf(topic), topic);
    if (!this.#connection || this.#connection.isFinal) this.#connect();
    else this.#join(topic);
  }

  /** One iterator of a topic has ended; the engine hears of the last. */
  #leave(topic: FollowedTopic, subscription: Subscription): void {
    topic.subscriptions.delete(subscription);
    if (topic.subscriptions.size > 0 || this.#topics.get(keyOf(topic)) !== topic) return;
    this.#remove(topic);
    this.#say("leave", topic);
  }

  #remove(topic: FollowedTopic): void {
    topic.cancelRejoin?.();
    topic.isLive = false;
    this.#topics.delete(keyOf(topic));
    if (this.#topics.size > 0) return;
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => void this.#disconnect());
  }

  #connect(): void {
    const { reconnect, random = Math.random, onState } = this.#options;
    this.#rejections = 0;
    const connection = this.#connection = new ReconnectingConnection({
      url: typeof this.#url === "string" ? this.#url : "",
      dial: (_, events) => this.#dial(events),
      dialOptions: {},
      clock: this.#clock,
      reconnect: { ...RECONNECT, ...reconnect },
      random,
    }, {
      opened: (opened) => {
        for (const topic of this.#topics.values()) this.#join(topic, opened);
      },
      text: (text) => this.#receive(text),
      lost: () => {
        for (const topic of this.#topics.values()) this.#pause(topic);
      },
      failed: (reason, retryMs) => this.#failed(reason, retryMs),
      state: (state) => onState?.(state),
    });
    connection.start();
  }

  async #disconnect(state: "disconnected" | "failed" = "disconnected"): Promise<void> {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.stop(state);
  }

  #join(topic: FollowedTopic, connection?: Connection): void {
    topic.cancelRejoin?.();
    topic.cancelRejoin = undefined;
    this.#say("join", topic, connection);
  }

  #say(
    type: "join" | "leave",
    { subscriptionId, streamName, groupId, id }: FollowedTopic,
    connection: Connection | undefined = this.#connection?.current,
  ): void {
    const data = { subscriptionId, streamName, groupId, ...id !== null && { id } };
    connection?.send(JSON.stringify({ type, data }));
  }

  /** Nothing is known of a topic until its next `sync`. */
  #pause(topic: FollowedTopic): void {
    topic.isLive = false;
    topic.cancelRejoin?.();
    topic.cancelRejoin = undefined;
  }

  #receive(text: string): void {
    const message = readMessage(text);
    if (!message) {
      const error = "The engine sent a message that is not understood";
      return this.#report(new EngineError("bad_message", error));
    }
    if (message.type === "error") return this.#refused(message);
    const topics = this.#topicsOf(message);
    for (const topic of topics) this.#hear(topic, message, text.length);
  }

  /** An event of an item concerns its group, too; the other messages are of one topic. */
  #topicsOf({ type, topic }: Exclude<StreamMessage, { type: "error" }>): FollowedTopic[] {
    const places = type === "event" && topic.id !== null
      ? [topic, { ...topic, id: null }]
      : [topic];
    return places.flatMap((place) => this.#topics.get(keyOf(place)) ?? []);
  }

  #hear(
    topic: FollowedTopic,
    message: Exclude<StreamMessage, { type: "error" }>,
    chars: number,
  ): void {
    if (message.type === "unauthorized") {
      const what = `${topic.groupId} of the stream ${topic.streamName}`;
      return this.#fail(topic, new EngineError("unauthorized", `You may not follow ${what}`));
    }
    if (message.type === "sync") {
      topic.items.replace(topic, message.data, message.ids);
      topic.timestamp = message.timestamp;
      topic.isLive = topic.wasLive = this.#wasAdmitted = true;
      topic.failures = this.#rejections = 0;
      const event = syncOf(topic, 0);
      for (const subscription of [...topic.subscriptions]) subscription.push(event, chars);
      return;
    }
    // What comes before the `sync` is in it, or follows it again.
    if (!topic.isLive) return;
    topic.items.apply(message.event);
    topic.timestamp = message.event.timestamp;
    for (const subscription of [...topic.subscriptions]) subscription.push(message.event, chars);
  }

  #refused({ subscriptionId, error: body }: Extract<StreamMessage, { type: "error" }>): void {
    const { code, message, details } = normaliseError(body);
    const error = new EngineError(code, message, details && { details });
    const topic = [...this.#topics.values()].find((it) => it.subscriptionId === subscriptionId);
    if (!topic) return this.#report(error);
    topic.isLive = false;
    const retries = topic.wasLive && code !== "bad_message" && topic.failures < RETRIES_MAX;
    if (!retries) return this.#fail(topic, error);
    const delayMs = REJOIN_FIRST_MS * 2 ** topic.failures++;
    topic.cancelRejoin = this.#clock.after(delayMs, () => this.#join(topic));
  }

  #fail(topic: FollowedTopic, error: EngineError): void {
    this.#remove(topic);
    for (const subscription of [...topic.subscriptions]) subscription.fail(error);
  }

  #failAll(error: EngineError): void {
    for (const topic of [...this.#topics.values()]) this.#fail(topic, error);
    void this.#disconnect("failed");
  }

  #failed(reason: string, retryMs: number | undefined): void {
    const error = new EngineError("engine_unreachable", `No connection to the engine: ${reason}`);
    this.#report(error);
    if (retryMs === undefined) this.#failAll(error);
  }

  /** The engine opened a connection and closed it, because it does not admit this client. */
  #rejected(reason: string): void {
    this.#rejections++;
    if (this.#wasAdmitted && this.#rejections <= RETRIES_MAX) return;
    this.#failAll(
      new EngineError("unauthorized", reason || "The engine does not admit this client"),
    );
  }

  #dial(events: TransportEvents): Transport {
    const own: TransportEvents = {
      opened: () => events.opened(),
      text: (text) => events.text(text),
      binary: (bytes) => events.binary(bytes),
      closed: (code, reason) => {
        events.closed(code, reason);
        if (code === NOT_ADMITTED) this.#rejected(reason);
      },
    };
    const { token, tokenIn, dial = dialStream } = this.#options;
    const open = (url: string, given?: string): Transport => {
      checkToken(given, tokenIn);
      const address = given !== undefined && tokenIn === "query" ? withToken(url, given) : url;
      const protocols = given !== undefined && tokenIn !== "query" ? [SUBPROTOCOL, given] : [];
      return dial(readUrl(address), own, { protocols });
    };
    const isReady = typeof this.#url === "string" && typeof token !== "function";
    try {
      if (isReady) return open(this.#url as string, token as string | undefined);
    } catch (thrown) {
      // A page that is served by HTTPS may open no socket without TLS.
      return new LateTransport(own, () => Promise.reject(thrown));
    }
    return new LateTransport(own, async () => open(await valueOf(this.#url), await valueOf(token)));
  }

  #report(error: EngineError): void {
    this.#options.onError?.(error);
  }
}

/** A transport that opens when its address and its token are known. */
class LateTransport implements Transport {
  #transport: Transport | undefined;
  #isClosed = false;
  readonly #events: TransportEvents;

  constructor(events: TransportEvents, open: () => Promise<Transport>) {
    this.#events = events;
    void this.#start(open);
  }

  send(message: string | Uint8Array): void {
    this.#transport?.send(message);
  }

  close(code?: number, reason?: string): void {
    if (this.#transport) return this.#transport.close(code, reason);
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events.closed(code ?? 1000, reason ?? "");
  }

  async #start(open: () => Promise<Transport>): Promise<void> {
    try {
      const transport = await open();
      this.#transport = transport;
      if (this.#isClosed) transport.close();
    } catch (thrown) {
      this.close(1006, `the address or the token cannot be obtained: ${thrownText(thrown)}`);
    }
  }
}

const dialStream: Dial = (url, events, { protocols }) => {
  const socket = new BrowserSocket(url, events, protocols);
  return {
    send: (message) => socket.send(message),
    close: (code = 1000, reason = "") => socket.close(code, reason),
  };
};

function syncOf({ items, timestamp }: FollowedTopic, missed: number): SyncEvent {
  return { type: "sync", items: [...items.map.values()], timestamp, missed };
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for a token that no subprotocol can be. */
function checkToken(token: unknown, tokenIn: StreamClientOptions["tokenIn"]): void {
  if (token === undefined) return;
  if (typeof token !== "string" || token === "") throw invalid("The token must be a string");
  if (tokenIn === "query" || /^[\w!#$%&'*+.^`|~-]+$/.test(token)) return;
  const allowed = "letters, digits and !#$%&'*+-.^_`|~";
  throw invalid(
    `A token that is sent as a subprotocol has only ${allowed}; or set tokenIn: "query"`,
  );
}

function withToken(url: string, token: string): string {
  const address = new URL(url);
  address.searchParams.set("token", token);
  return address.href;
}

async function valueOf<T extends Credential | undefined>(
  given: T,
): Promise<T extends undefined ? string | undefined : string> {
  return await (typeof given === "function" ? given() : given) as T extends undefined
    ? string | undefined
    : string;
}
