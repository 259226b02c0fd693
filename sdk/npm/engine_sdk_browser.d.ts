/// <reference lib="esnext.disposable" />
/**
 * Follows the streams of an engine, in browsers and anywhere with a `WebSocket`: the items of a
 * group, and every change of them as it happens.
 *
 * @example A list that is always up to date
 * ```ts
 * import { connectStreams } from "engine-sdk/browser";
 *
 * async function show(render: (messages: { text: string }[]) => void) {
 *   const streams = connectStreams("ws://127.0.0.1:3112/");
 *   const room = streams.subscribe<{ text: string }>("chat", "room-1");
 *   for await (const _event of room) render([...room.items.values()]);
 * }
 * ```
 *
 * @module
 */

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
declare function connectStreams(url: Credential, options?: StreamClientOptions): StreamClient;

/** A text, or what provides a fresh one for each connection. */
type Credential = string | (() => string | Promise<string>);

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
interface StreamClientOptions {
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

/**
 * How a worker reconnects. Each delay varies by up to 30 % in both directions, so that many workers
 * do not return at the same moment. A dial that is not answered does not postpone the next one.
 */
interface ReconnectOptions {
    /** First delay, in milliseconds; each further one is twice as long. @default {1000} */
    readonly firstMs?: number | undefined;
    /**
     * Longest delay, its variation included, in milliseconds. With the default, a worker is connected
     * at most two seconds after the engine has returned. A worker that access rules refuse waits up
     * to 30 seconds.
     *
     * @default {1800}
     */
    readonly maxMs?: number | undefined;
    /** Number of failed attempts in a row after which the state is `failed`. @default {Infinity} */
    readonly maxAttempts?: number | undefined;
}

/** Says what the id of an item is, if its data has it; see `idOf` of the options of the client. */
type ItemId = (item: Json, stream: string) => string | undefined;

/** Any JSON value. */
type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
interface JsonObject {
    /** Any member. */
    [key: string]: Json;
}

/**
 * An error with a code. A handler that throws one passes its code, message, details and `retryable`
 * to the caller, which receives them as {@linkcode InvocationError}.
 *
 * @example A handler that fails with a code of its own
 * ```ts
 * import { EngineError, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * worker.registerFunction("stock::take", ({ count }: { count: number }) => {
 *   if (count > 2) {
 *     throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
 *   }
 *   return { left: 2 - count };
 * });
 * await worker.shutdown();
 * ```
 */
declare class EngineError extends Error {
    /** Identifies the error for programs: a code of the engine, or one of your own. */
    readonly code: string;
    /** The values to act on. */
    readonly details: JsonObject | undefined;
    /** Whether the handler did not start and the same call may succeed later. */
    readonly retryable: boolean;
    /**
     * The code may be one of your own, such as `out_of_stock`.
     *
     * @param message One sentence for people.
     */
    constructor(code: string, message: string, options?: ErrorOptions);
    /** The error as it is sent: without cause and stack. */
    toJSON(): ErrorBody;
}

/** Optional properties of an {@linkcode EngineError}. */
interface ErrorOptions {
    /** The values to act on: any object that JSON can represent. */
    readonly details?: object;
    /**
     * Whether the handler did not start and the same call can succeed later.
     *
     * @default that of the code in the table of error codes, `false` for codes of your own
     */
    readonly retryable?: boolean;
    /** The original error; not sent to other workers. */
    readonly cause?: unknown;
}

/** An error as it is sent. */
interface ErrorBody {
    /** Identifies the kind of error for programs, such as `function_not_found`. */
    code: string;
    /** Describes the error for people, in one sentence. */
    message: string;
    /** Stack trace of the handler; never sent to HTTP clients. */
    stacktrace?: string;
    /** Values for programs, such as the id that was not found. */
    details?: JsonObject;
    /** `true`: the handler did not start, and the same call can succeed later. */
    retryable?: boolean;
}

/**
 * State of the connection to the engine.
 *
 * A worker starts as `connecting`. After it lost a connection, failed to connect, or got no answer
 * by the time of the next attempt, it is `reconnecting`. Two states are final: `disconnected` after
 * `shutdown()`, and `failed` when the attempts of `reconnect.maxAttempts` are used up or the engine
 * rejected the worker.
 */
type ConnectionState = "connecting" | "connected" | "reconnecting" | "disconnected" | "failed";

/**
 * Connects to an address and returns at once; the outcome arrives as an event. `opened` may come
 * before it returns.
 */
type Dial = (url: string, events: TransportEvents, options: DialOptions) => Transport;

/** The events of a transport. `closed` comes once and last, also if it never opened. */
interface TransportEvents {
    /** The connection is open: messages can be sent. */
    opened(): void;
    /** A text message arrived. */
    text(message: string): void;
    /** A binary message arrived. */
    binary(bytes: Uint8Array): void;
    /**
     * The connection is closed. `code` is the WebSocket close code, 1006 when the connection failed;
     * `reason` describes the cause, such as `HTTP 401`.
     */
    closed(code: number, reason: string): void;
}

/** Options of a {@linkcode Dial}. */
interface DialOptions {
    /** Headers of the upgrade request; browsers send none. */
    readonly headers?: Readonly<Record<string, string>>;
    /** Propose batches: several messages in one frame. @default false */
    readonly batch?: boolean;
    /** Subprotocols to offer, where a browser's `WebSocket` is used. @default none */
    readonly protocols?: readonly string[];
}

/** One connection as the SDK holds it. No method blocks or throws. */
interface Transport {
    /** Sends a message: a string as a text frame, bytes as a binary one. Ignored unless open. */
    send(message: string | Uint8Array): void;
    /** Bytes that were sent but have not left this process; absent if the platform cannot tell. */
    readonly queuedBytes?: number;
    /** Closes the connection; `closed` follows. The default code is 1000, without a reason. */
    close(code?: number, reason?: string): void;
}

/**
 * The clock of a worker: the source of time and of all timers except those of the WebSocket
 * transports. Tests pass one that they control as `WorkerOptions.clock`.
 */
interface WorkerClock {
    /** Milliseconds since an unspecified start; never decreases. */
    now(): number;
    /** Runs `task` once after `ms` milliseconds; the returned function cancels it. */
    after(ms: number, task: () => void): () => void;
    /** Milliseconds since 1970, with fractions. @default that of the platform */
    wall?(): number;
}

/** The connection to the streams of an engine. */
interface StreamClient extends AsyncDisposable {
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
    subscribe<Item = Json>(stream: string, group: string, options?: SubscribeOptions): StreamSubscription<Item>;
    /** Ends all subscriptions and closes the connection. Nothing the second time. */
    close(): Promise<void>;
}

/** Options of a subscription. */
interface SubscribeOptions {
    /** Follows this item only. Default: the whole group. */
    readonly id?: string | undefined;
    /** Ends the subscription, and the iteration without an error, when aborted. */
    readonly signal?: AbortSignal | undefined;
    /**
     * Events that wait for the iterator, at most; 8 Mi characters in any case. Beyond, all that wait
     * are replaced by one `sync`.
     *
     * @default {1000}
     */
    readonly bufferEvents?: number | undefined;
}

/**
 * A subscription. It yields `sync` first, then events in the order of the changes, and `sync` again
 * after each reconnect. Leaving a `for await` ends it.
 *
 * The iteration fails with an {@linkcode EngineError}: `unauthorized`; what the engine answers,
 * such as `STREAM_LIST_ERROR` or `overloaded`; `engine_unreachable` after the last attempt to
 * connect.
 */
interface StreamSubscription<Item = Json> extends AsyncIterableIterator<StreamEvent<Item>>, AsyncDisposable {
    /** Name of the stream. */
    readonly stream: string;
    /** The group. */
    readonly group: string;
    /**
     * The items by id, the oldest first, with all changes that have arrived, also those that the
     * iterator has not yielded yet. It is empty before the first `sync`, and keeps what it has while
     * there is no connection.
     */
    readonly items: ReadonlyMap<string, Item>;
    /** Whether the items are those of the engine: after a `sync`, until the connection is lost. */
    readonly isLive: boolean;
    /** Ends the subscription; the iterator yields what waits, then ends. Nothing the second time. */
    close(): void;
}

/** What an iterator of a subscription yields. */
type StreamEvent<Item = Json> = SyncEvent<Item> | ChangeEvent<Item> | SentEvent;

/** All items of a group, or the one that is followed: at first, and after anything was missed. */
interface SyncEvent<Item = Json> {
    /** Tells it from the other events. */
    readonly type: "sync";
    /** The oldest first. For one item: a list of it, empty if it is missing. */
    readonly items: readonly Item[];
    /** Milliseconds since 1970, on the clock of the engine. */
    readonly timestamp: number;
    /**
     * Events that this program did not take in time, and that are left out: their changes are in
     * `items`, events that were sent without an item's change are lost.
     */
    readonly missed: number;
}

/** An item was created, changed or deleted. */
interface ChangeEvent<Item = Json> {
    /** What happened. */
    readonly type: "create" | "update" | "delete";
    /** Id of the item. */
    readonly id: string;
    /** The item as it is now; for `delete` as it was. */
    readonly item: Item;
    /** Milliseconds since 1970, on the clock of the engine. */
    readonly timestamp: number;
}

/** An event of `stream::send`. */
interface SentEvent {
    /** Tells it from changes of items. */
    readonly type: "event";
    /** Id of the item that it is about; `null` for the group. */
    readonly id: string | null;
    /** Its name, such as `typing`. */
    readonly name: string;
    /** Any JSON; `null` if it was sent without. */
    readonly data: Json;
    /** Milliseconds since 1970, on the clock of the engine. */
    readonly timestamp: number;
}

export {
  EngineError,
  connectStreams,
  type ChangeEvent,
  type ConnectionState,
  type Credential,
  type Dial,
  type DialOptions,
  type ErrorBody,
  type ErrorOptions,
  type ItemId,
  type Json,
  type JsonObject,
  type ReconnectOptions,
  type SentEvent,
  type StreamClient,
  type StreamClientOptions,
  type StreamEvent,
  type StreamSubscription,
  type SubscribeOptions,
  type SyncEvent,
  type Transport,
  type TransportEvents,
  type WorkerClock,
};
