/// <reference lib="esnext.disposable" />
/**
 * Write functions anywhere, call them from anywhere: the SDK for workers, for Deno, Node and
 * browsers.
 *
 * A worker connects to an engine over a WebSocket and registers functions. The engine routes each
 * call to a worker that offers the function, and returns its result.
 *
 * @example A worker that offers a function and calls it
 * ```ts
 * import { isTimeout, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker(); // ENGINE_URL, or port 49134 on this machine
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 *
 * try {
 *   const payload = { a: 2, b: 3 };
 *   console.log(await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 }));
 * } catch (error) {
 *   console.log(isTimeout(error) ? "no engine runs" : error);
 * }
 *
 * await worker.shutdown(); // Without it, the worker runs until the process ends.
 * ```
 *
 * @module
 */

/**
 * Both ends of a channel, of which one is usually passed to another worker: `{ file: reader }` in a
 * payload arrives as a {@linkcode ChannelReader}.
 */
interface Channel {
    /** The end that sends. */
    readonly writer: ChannelWriter;
    /** The end that receives. */
    readonly reader: ChannelReader;
}

/**
 * The writing end of a channel: sends bytes and text messages to the reader. It connects at the
 * first write; only one writer can.
 *
 * A handler finds one wherever the payload holds a reference; inside the payload of a call or a
 * result it becomes a reference again, so it can be passed on unused.
 *
 * Writing fails with `channel_closed` once the reader has left; with `channel_not_found` if the
 * reference is unknown or was used already; with `engine_unreachable` if the engine cannot be
 * reached.
 *
 * @example
 * ```ts
 * import { type ChannelWriter, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * worker.registerFunction("numbers::count", async ({ to, out }: {
 *   to: number;
 *   out: ChannelWriter;
 * }) => {
 *   for (let i = 1; i <= to; i++) await out.write(`${i}\n`);
 *   await out.close();
 * });
 * await worker.shutdown();
 * ```
 */
declare class ChannelWriter implements AsyncDisposable {
    #private;
    /** Created by `Worker.createChannel()`, and from references inside payloads. */
    constructor(ref: ChannelRef, setup: EndSetup);
    /** The reference to this end, as it travels in payloads. */
    get ref(): ChannelRef;
    /** Aborted when nothing more can be written: the reader has left, or the connection is lost. */
    get signal(): AbortSignal;
    /** This end as a stream, such as for `pipeTo()`. */
    get writable(): WritableStream<Uint8Array | string>;
    /**
     * Sends bytes, or a string as one text message. Resolves when more may be written; writes that
     * are not awaited keep their order, and the promise of one that fails rejects.
     *
     * @throws {EngineError} `channel_closed`, `channel_not_found`, `engine_unreachable`,
     * `INVALID_ARGUMENTS`.
     */
    write(data: Uint8Array | string): Promise<void>;
    /**
     * Ends the stream: resolves when the engine has all of it, which takes as long as the reader
     * takes for all but the last part. Has no effect the second time.
     */
    close(): Promise<void>;
    /** Gives up: the reader gets what was sent, then an error with the reason. Never rejects. */
    abort(reason?: unknown): Promise<void>;
    /** Calls {@linkcode ChannelWriter.close} at the end of an `await using` block. */
    [Symbol.asyncDispose](): Promise<void>;
    /** The reference: a writer inside a payload arrives as a writer. */
    toJSON(): ChannelRef;
}

/** A reference to one end of a channel; the first program that connects with it has that end. */
interface ChannelRef {
    /** Id of the channel. */
    channel_id: string;
    /** The credential of this end. */
    access_key: string;
    /** Which end it is. */
    direction: ChannelDirection;
}

/** Which end of a channel a reference claims. */
type ChannelDirection = "read" | "write";

/** What the ends of one worker work with. */
interface EndSetup {
    /** The address of the engine. */
    readonly url: string;
    readonly open: OpenChannelSocket;
    /** Called when the end connects. */
    opened(end: EndConnection): void;
    /** Called when the connection has ended. */
    closed(end: EndConnection): void;
}

/** Opens the WebSocket of an end. */
type OpenChannelSocket = (url: string, events: ChannelSocketEvents) => ChannelSocket;

/** The events of a {@linkcode ChannelSocket}. `closed` comes once and last. */
interface ChannelSocketEvents {
    opened(): void;
    /** A message of the writer; its bytes are the receiver's. */
    message(data: string | Uint8Array): void;
    /** The WebSocket close code, 1006 when the connection failed, and a reason. */
    closed(code: number, reason: string): void;
}

/** One end of a channel. No method throws. */
interface ChannelSocket {
    /** Sends a message; a promise, which resolves when more may be sent, if too much is unsent. */
    send(data: string | Uint8Array): Promise<void> | undefined;
    /** Stops reading, where the platform can. */
    pause(): void;
    resume(): void;
    /** Closes when all is sent; `closed` follows when the engine has it, however long that takes. */
    finish(code: number, reason: string): void;
    /** Ends the connection now. */
    terminate(): void;
}

/** The connection of one end. */
declare class EndConnection {
    #private;
    readonly ref: ChannelRef;
    constructor(ref: ChannelRef, setup: EndSetup, events: EndEvents);
    /** The socket once it is open. */
    get socket(): ChannelSocket | undefined;
    get isOver(): boolean;
    /** Connects the first time; settles when it is open or `closed` was reported. */
    connect(): Promise<void>;
    /** Ends the connection now, with this error. */
    end(error: EngineError): void;
}

/** What an end does with its connection's events. */
interface EndEvents {
    message(data: string | Uint8Array): void;
    /** The error is `undefined` at the regular end of the stream. */
    closed(error: EngineError | undefined): void;
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

/** A JSON object. */
interface JsonObject {
    /** Any member. */
    [key: string]: Json;
}

/** Any JSON value. */
type Json = null | boolean | number | string | Json[] | JsonObject;

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
 * The reading end of a channel: an async iterable of what the writer sends, bytes as `Uint8Array`
 * and text messages as strings, in order. It connects when it is first read; only one reader can.
 *
 * A handler finds one wherever the payload holds a reference; inside the payload of a call or a
 * result it becomes a reference again, so it can be passed on unread.
 *
 * Reading fails with `channel_closed` if the stream is not whole, because the writer gave up or was
 * lost; with `channel_not_found` if the reference is unknown or was used already; with
 * `engine_unreachable` if the engine cannot be reached.
 *
 * @example
 * ```ts
 * import { type ChannelReader, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * worker.registerFunction("files::size", async ({ file }: { file: ChannelReader }) => {
 *   let bytes = 0;
 *   for await (const part of file) bytes += part.length;
 *   return { bytes };
 * });
 * await worker.shutdown();
 * ```
 */
declare class ChannelReader implements AsyncIterable<Uint8Array | string> {
    #private;
    /** Created by `Worker.createChannel()`, and from references inside payloads. */
    constructor(ref: ChannelRef, setup: EndSetup);
    /** The reference to this end, as it travels in payloads. */
    get ref(): ChannelRef;
    /**
     * The bytes as a stream, such as for a `Response`; text messages are encoded as UTF-8. Reads in
     * place of the iteration, not beside it.
     */
    get readable(): ReadableStream<Uint8Array>;
    /** The next message; `undefined` at the end of the stream. One read at a time. */
    read(): Promise<Uint8Array | string | undefined>;
    /** All that the writer sends, as bytes; at most `maxBytes`, by default 64 MiB. */
    bytes(maxBytes?: number): Promise<Uint8Array>;
    /** All that the writer sends, as one text; at most `maxBytes`, by default 64 MiB. */
    text(maxBytes?: number): Promise<string>;
    /** Ends the channel: the writer learns that nothing more is read. Never rejects. */
    cancel(): Promise<void>;
    /** Reads to the end; leaving the loop early cancels. */
    [Symbol.asyncIterator](): AsyncGenerator<Uint8Array | string, void, undefined>;
    /** The reference: a reader inside a payload arrives as a reader. */
    toJSON(): ChannelRef;
}

/** Options of `Worker.createChannel()`. */
interface ChannelOptions {
    /**
     * Messages that the engine holds before the reader connects, from 1 to 1,024, of 256 KiB in all;
     * then the writer waits.
     *
     * @default {64}
     */
    readonly bufferFrames?: number | undefined;
}

/** Options of `Worker.configuration()`. */
interface ConfigurationOptions {
    /**
     * JSON Schema of the value. With any of these members the configuration is registered first; a
     * value that it has stays.
     */
    readonly schema?: JsonInput | undefined;
    /** The value if it has none yet. */
    readonly initial_value?: JsonInput | undefined;
    /** Name in listings. @default the id */
    readonly name?: string | undefined;
    /** One sentence for listings. */
    readonly description?: string | undefined;
    /** Any JSON, for listings. */
    readonly metadata?: JsonInput | undefined;
    /**
     * Receives what a later read failed with; once until it changes. The value stays as it is.
     *
     * @default `onError` of the worker
     */
    readonly onError?: ((error: EngineError) => void) | undefined;
}

/**
 * A value to be sent as JSON. As {@linkcode Json}, but of any object type: TypeScript accepts an
 * interface for no type that has an index signature.
 */
type JsonInput = null | boolean | number | string | object;

/**
 * A configuration whose {@linkcode LiveConfiguration.value} is always the present one. Created by
 * `Worker.configuration()`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * async function run() {
 *   const worker = registerWorker();
 *   using mail = await worker.configuration<{ port: number }>("mail", {
 *     schema: { type: "object", properties: { port: { type: "integer" } } },
 *     initial_value: { port: 25 },
 *   });
 *   console.log(mail.value.port);
 *   for await (const { port } of mail.changes()) console.log("now", port);
 * }
 * ```
 */
interface LiveConfiguration<Value = Json> extends Disposable {
    /** Its id. */
    readonly id: string;
    /**
     * The value, with references expanded and secrets in plain text: the last one that could be read.
     * Another change makes another value; this one is never changed.
     */
    readonly value: Value;
    /** How often it was set, from 1 on. */
    readonly version: number;
    /** Why the value may be out of date; `undefined` while it is current. */
    readonly error: EngineError | undefined;
    /**
     * The values that follow, each once. A program that is slower than the changes gets the latest
     * one only. Ends when the configuration or the worker is closed, or `signal` is aborted.
     */
    changes(options?: {
        readonly signal?: AbortSignal | undefined;
    }): AsyncIterableIterator<Value>;
    /**
     * Calls `listener` with each value that follows; the returned function removes it. What it throws
     * is reported to `onError`.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
     */
    onChange(listener: (value: Value) => void): () => void;
    /** Stops to follow; the value stays as it is. Nothing the second time. */
    close(): void;
}

/** An entry as it is now. */
interface StateChange<Value = Json> {
    /** Its key in the scope. */
    readonly key: string;
    /** The value; `undefined`: there is none, it was deleted or has expired. */
    readonly value: Value | undefined;
    /** Its version, for `expected_version`; 0: there is no value. */
    readonly version: number;
}

/**
 * Entries of the state, first as they are, then each one that changed. Created by
 * `Worker.watchState()`; it begins with the first `next()`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * async function run() {
 *   const worker = registerWorker();
 *   for await (const { key, value, version } of worker.watchState<number>({ scope: "stock" })) {
 *     console.log(key, value ?? "gone", version);
 *   }
 * }
 * ```
 */
interface StateChanges<Value = Json> extends AsyncIterableIterator<StateChange<Value>>, AsyncDisposable {
}

/** What {@linkcode StateChanges} follows. */
interface StatePlace {
    /** Such as `stock`. */
    readonly scope: string;
    /** Such as `apples`. @default all keys of the scope */
    readonly key?: string | undefined;
}

/** Options of `Worker.watchState()`. */
interface WatchOptions {
    /** Ends it when aborted. */
    readonly signal?: AbortSignal | undefined;
}

/**
 * Writes log lines to the console and to the logs of the engine, with the trace of the handler that
 * runs. `data` is any JSON.
 *
 * @example
 * ```ts
 * import { Logger } from "engine-sdk";
 *
 * const logger = new Logger();
 * logger.info("order accepted", { order: 7 });
 * ```
 */
declare class Logger {
    #private;
    /**
     * Needs no arguments in a program with one worker.
     *
     * @param worker Sends the lines. Default: the worker that was registered last before a line is
     * written; without one, lines only appear on the console.
     * @param service Name in the logs. Default: that of the worker.
     */
    constructor(worker?: LogTarget, service?: string);
    /** Logs details that are useful only to find a bug. */
    trace(message: string, data?: JsonInput): void;
    /** Logs information for debugging. */
    debug(message: string, data?: JsonInput): void;
    /** Logs a normal event. */
    info(message: string, data?: JsonInput): void;
    /** Logs an event that needs attention. */
    warn(message: string, data?: JsonInput): void;
    /** Logs a failure. */
    error(message: string, data?: JsonInput): void;
}

/** The parts of a worker that a {@linkcode Logger} uses. */
interface LogTarget {
    /** Shown in each line. */
    readonly name: string;
    /** Lines are sent while `connected`, and dropped in the final states. */
    readonly connectionState: ConnectionState;
    /** Sends a line, as a call of `engine::log::<level>`. */
    trigger(request: CallRequest): Promise<unknown>;
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

/** A call to make. */
interface CallRequest<In = Json> {
    /** Id of the function, such as `math::add`. */
    readonly function_id: string;
    /** Any JSON. @default `null` */
    readonly payload?: In | undefined;
    /** Another way to run the function: see {@linkcode TriggerAction}. */
    readonly action?: Action | undefined;
    /**
     * How long to wait for the result, in milliseconds, from 1 to 604800000. Inside a handler, at
     * most what is left of the timeout of the call that it runs.
     *
     * @default `timeoutMs` of the worker, 30000
     */
    readonly timeout_ms?: number | undefined;
    /** The same as `timeout_ms`. */
    readonly timeoutMs?: number | undefined;
    /** Second argument of the handler. */
    readonly metadata?: JsonInput | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
    /** Cancels the call when aborted: an `AbortSignal`, or the part of one that is used. */
    readonly signal?: {
        readonly aborted: boolean;
        readonly reason: unknown;
        addEventListener(type: "abort", listener: () => void, options?: {
            once?: boolean;
        }): void;
        removeEventListener(type: "abort", listener: () => void): void;
    } | undefined;
    /** W3C `traceparent`. @default inside a handler, that of the call that it runs */
    readonly traceparent?: string | undefined;
    /** W3C `baggage`. @default inside a handler, that of the call that it runs */
    readonly baggage?: string | undefined;
    /** Receives what the handler passes to `context.progress()`, in order. */
    readonly onProgress?: ((data: Json) => void) | undefined;
}

/** How to run a call other than by waiting for its result. Never sent to workers. */
type Action = {
    type: "void";
} | ({
    type: "enqueue";
    queue: string;
} & EnqueueOptions);

/** How a queue keeps a job and begins it; an engine without an option ignores it (extension). */
interface EnqueueOptions {
    /** The same id again within a day is the same job: nothing is added. */
    id?: string;
    /** The job begins after so many milliseconds at the earliest. */
    delay_ms?: number;
    /** The job begins at this time at the earliest, in milliseconds since 1970. */
    run_at_ms?: number;
    /** 0 to 255; higher ones begin first. Not in a fifo queue. @default 0 */
    priority?: number;
    /** A job that has not begun so many milliseconds after it may is a dead letter. */
    expires_ms?: number;
    /** How long one attempt may take, in milliseconds. */
    timeout_ms?: number;
    /** `engine::queue::result` returns the result for so many milliseconds. */
    keep_result_ms?: number;
}

/** What a {@linkcode StreamSource} returns: a value, or a promise of it. */
type Awaitable<Value> = Value | Promise<Value>;

/**
 * A stream: items by group and id, kept by `engine-stream`. Created by `Worker.stream()`, which
 * sends nothing.
 *
 * Its calls fail as those of `Worker.trigger()` do: `function_not_found` without `engine-stream`,
 * `JSON_ERROR` for a name that is not allowed, `STREAM_<OP>_ERROR`, `overloaded`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * interface Message {
 *   text: string;
 * }
 * async function greet() {
 *   await using worker = registerWorker();
 *   const chat = worker.stream<Message>("chat");
 *   chat.onEvent(({ id, event }) => console.log(id, event.type), { group_id: "room-1" });
 *   await chat.group("room-1").set("m1", { text: "hi" });
 *   return await chat.groups();
 * }
 * ```
 */
interface Stream<Item = Json> {
    /** Its name. */
    readonly name: string;
    /** A group of it; sends nothing. */
    group(id: string): StreamGroup<Item>;
    /** The groups that have items, sorted. */
    groups(): Promise<string[]>;
    /**
     * Calls `handler` with each event until it is unregistered. What the engine refuses is reported
     * to `onError` of the worker.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    onEvent(handler: Handler<StreamTriggerEvent<Item>>, options?: StreamEventOptions): Registration;
    /**
     * Calls `handler` before a client may follow a group or an item of this stream. It refuses with
     * `false` or `{ unauthorized: true }`; one that fails refuses as well. While no worker has a
     * handler, everyone may follow: let the auth function of `engine-stream` refuse strangers.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    onJoin<Context = Json>(handler: Handler<StreamSubscriber<Context>>, options?: StreamTriggerOptions): Registration;
    /**
     * Calls `handler` after each subscription that was allowed has ended.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    onLeave<Context = Json>(handler: Handler<StreamSubscriber<Context>>, options?: StreamTriggerOptions): Registration;
}

/** A group of a stream. */
interface StreamGroup<Item = Json> {
    /** Name of the stream. */
    readonly stream: string;
    /** Its id. */
    readonly id: string;
    /** An item; `undefined` if there is none. */
    get(item_id: string): Promise<Item | undefined>;
    /**
     * Stores an item. Resolves when it is on disk; all that follow it get `create` or `update`.
     *
     * @param options `ttl_ms`: the item is removed after so many milliseconds. Default: never.
     */
    set(item_id: string, item: Item, options?: {
        readonly ttl_ms?: number | undefined;
    }): Promise<StreamChange<Item>>;
    /** Changes an item in one step; a missing one begins as `{}`. */
    update(item_id: string, ops: readonly UpdateOp[]): Promise<StreamChange<Item>>;
    /** Removes an item; resolves with it, `undefined` if there was none. */
    delete(item_id: string): Promise<Item | undefined>;
    /** The items, the oldest first. */
    list(): Promise<Item[]>;
    /**
     * The items with their ids, sorted by id, read page by page; changes meanwhile may be missing.
     * Not where a worker keeps the stream.
     *
     * @param prefix Only ids that begin with it. Default: all.
     */
    entries(prefix?: string): AsyncIterableIterator<[id: string, item: Item]>;
    /**
     * Sends an event to all that follow the group; nothing is stored.
     *
     * @param type Its name, such as `typing`.
     * @param data Any JSON. Default: `null`.
     * @param item_id The item that it is about. Default: none.
     */
    send(type: string, data?: JsonInput, item_id?: string): Promise<void>;
}

/** What `set` and `update` of an item did. */
interface StreamChange<Item = Json> {
    /** The item before; `null` if there was none. */
    readonly old_value: Item | null;
    /** The item now. */
    readonly new_value: Item;
    /** Operations of an update that could not be applied; the others were. */
    readonly errors?: readonly {
        readonly op_index: number;
        readonly code: string;
        readonly message: string;
    }[];
}

/**
 * One operation of an update, which is atomic for its item. `path` names a member of the item; an
 * array of names leads into nested objects; `""` is the item itself.
 */
type UpdateOp = {
    readonly type: "set";
    readonly path: string;
    readonly value: JsonInput;
} | {
    readonly type: "merge";
    readonly path?: string | readonly string[];
    readonly value: object;
} | {
    readonly type: "increment" | "decrement";
    readonly path: string;
    readonly by: number;
} | {
    readonly type: "append";
    readonly path?: string | readonly string[];
    readonly value: JsonInput;
} | {
    readonly type: "remove";
    readonly path: string;
};

/**
 * Runs one call: returns the result, or throws.
 *
 * `payload` is `null` if the caller sent none; `metadata` is that of the caller or of the trigger.
 * A handler that returns `undefined` has no result. An error with a string property `code` keeps
 * its code; any other reaches the caller as `invocation_failed`.
 *
 * @example
 * ```ts
 * import type { Handler } from "engine-sdk";
 *
 * const add: Handler<{ a: number; b: number }> = async ({ a, b }, _metadata, context) => {
 *   context.progress({ done: 0.5 });
 *   await fetch("https://example.com/log", { signal: context.signal });
 *   return { c: a + b };
 * };
 * ```
 */
type Handler<In = Json, Out = unknown> = (payload: In, metadata: Json | undefined, context: CallContext) => Out | Promise<Out>;

/** The call that a handler is running: its ids, its deadline, and its connection to the caller. */
interface CallContext {
    /** Id of the invocation, assigned by the engine; `undefined` if the caller wants no result. */
    readonly invocation_id: string | undefined;
    /** Id of the function, such as `math::add`. */
    readonly function_id: string;
    /** Id of the caller's connection; set for workers in the process of the engine only. */
    readonly caller: string | undefined;
    /**
     * Aborted when the caller cancels the call, its timeout passes, or the connection is lost. Its
     * `reason` is an {@linkcode EngineError}, `cancelled` or `invocation_stopped`.
     */
    readonly signal: AbortSignal;
    /** How long the caller waits, in milliseconds from the arrival of the call. */
    readonly timeout_ms: number | undefined;
    /** W3C `traceparent` of the call. */
    readonly traceparent: string | undefined;
    /** W3C `baggage` of the call. */
    readonly baggage: string | undefined;
    /** Sends `data` to the `onProgress` of the caller; ignored when the call has ended. */
    progress(data: JsonInput): void;
}

/** An event of a stream, as the function of a trigger of type `stream` gets it. */
interface StreamTriggerEvent<Item = Json> {
    /** Always `stream`. */
    readonly type: "stream";
    /** Milliseconds since 1970. */
    readonly timestamp: number;
    /** Name of the stream. */
    readonly streamName: string;
    /** The group. */
    readonly groupId: string;
    /** The item; `null` for an event of the group that was sent. */
    readonly id: string | null;
    /** What happened; `data` of `delete` is the removed item. `event` is what was sent. */
    readonly event: {
        readonly type: "create" | "update" | "delete";
        readonly data: Item;
    } | {
        readonly type: "event";
        readonly event: {
            readonly type: string;
            readonly data: Json;
        };
    };
}

/** Options of {@linkcode Stream.onEvent}. */
interface StreamEventOptions extends StreamTriggerOptions {
    /** Only events of this group. Default: all. */
    readonly group_id?: string | undefined;
    /** Only events of items with this id. Default: all. */
    readonly item_id?: string | undefined;
}

/** Options of a function that is called for a stream. */
interface StreamTriggerOptions {
    /**
     * Id of the function: workers that use the same id share its calls. By default each worker has
     * one of its own, and every worker gets every call.
     */
    readonly function_id?: string | undefined;
    /** A function that gets the same payload first; when it returns `false`, nothing is called. */
    readonly condition_function_id?: string | undefined;
    /** Second argument of the handler. */
    readonly metadata?: JsonInput | undefined;
}

/** A registered function, trigger or trigger type. */
interface Registration {
    /** Id of the function, the trigger or the trigger type. */
    readonly id: string;
    /** Removes the registration; has no effect the second time. */
    unregister(): void;
}

/** A subscription of a client, as functions of `stream:join` and `stream:leave` get it. */
interface StreamSubscriber<Context = Json> {
    /** The id that the client gave it. */
    readonly subscription_id: string;
    /** Name of the stream. */
    readonly stream_name: string;
    /** The group. */
    readonly group_id: string;
    /** The item that is followed; `null`: the whole group. */
    readonly id: string | null;
    /** What the auth function of `engine-stream` returned; `null` without one. */
    readonly context: Context;
}

/** Where an item is, as the functions of a {@linkcode StreamSource} get it. */
interface StreamItemPlace {
    /** Name of the stream. */
    readonly stream_name: string;
    /** The group. */
    readonly group_id: string;
    /** The item. */
    readonly item_id: string;
}

/**
 * Keeps the items of a stream in place of the engine, such as in a database.
 *
 * The engine calls it for `stream::get` and the others, and passes changes on to all that follow
 * the stream, as `set`, `update` and `delete` answer. What it throws reaches the caller as
 * `STREAM_<OP>_ERROR`. `ttl_ms` of `set` is its own matter.
 *
 * @example The items are in a map; changes of it reach all that follow the stream
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const users = new Map<string, { name: string }>();
 * const worker = registerWorker();
 * worker.createStream<{ name: string }>("users", {
 *   get: ({ item_id }) => users.get(item_id),
 *   set: ({ item_id, data }) => {
 *     const old_value = users.get(item_id);
 *     users.set(item_id, data);
 *     return { old_value, new_value: data };
 *   },
 *   delete: ({ item_id }) => {
 *     const old_value = users.get(item_id);
 *     users.delete(item_id);
 *     return { old_value };
 *   },
 *   list: () => [...users.values()],
 *   listGroups: () => ["all"],
 * });
 * await worker.shutdown();
 * ```
 */
interface StreamSource<Item = Json> {
    /** An item; `undefined` if there is none. */
    get(place: StreamItemPlace, context: CallContext): Awaitable<Item | null | undefined>;
    /** Stores an item, and returns it with the one before. */
    set(request: StreamItemPlace & {
        readonly data: Item;
        readonly ttl_ms?: number | null;
    }, context: CallContext): Awaitable<{
        readonly old_value?: Item | null | undefined;
        readonly new_value: Item;
    }>;
    /** Removes an item, and returns it if there was one. */
    delete(place: StreamItemPlace, context: CallContext): Awaitable<{
        readonly old_value?: Item | null | undefined;
    }>;
    /** The items of a group, in the order in which clients get them. */
    list(group: Pick<StreamItemPlace, "stream_name" | "group_id">, context: CallContext): Awaitable<readonly Item[]>;
    /** The groups that have items. */
    listGroups(stream: Pick<StreamItemPlace, "stream_name">, context: CallContext): Awaitable<readonly string[]>;
    /** Changes an item. Without it, `stream::update` changes the items that the engine keeps. */
    update?(request: StreamItemPlace & {
        readonly ops: readonly UpdateOp[];
    }, context: CallContext): Awaitable<{
        readonly old_value?: Item | null | undefined;
        readonly new_value: Item;
    }>;
}

/**
 * Creates a worker, which connects to the engine in the background: registrations and calls are
 * sent as soon as the connection is open. It reconnects until {@linkcode Worker.shutdown}. While a
 * test engine of `engine-sdk/testing` runs in this process, it connects to that one instead.
 *
 * @param url Address of the engine: `ws:`, `wss:`, `http:` or `https:`.
 * Default: ENGINE_URL, else `ws://127.0.0.1:49134`.
 * @throws {EngineError} `INVALID_ARGUMENTS` for an invalid address or option.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker("ws://127.0.0.1:49134", { workerName: "math" });
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 * await worker.shutdown(); // Without it, the worker runs until the process ends.
 * ```
 */
declare function registerWorker(url?: string, options?: WorkerOptions): Worker;

/**
 * Options of a worker.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker("ws://127.0.0.1:49134", {
 *   workerName: "math",
 *   timeoutMs: 5_000,
 *   onError: (error) => console.error(error.code, error.message),
 * });
 * await worker.shutdown();
 * ```
 */
interface WorkerOptions {
    /** Name in listings and logs. @default ENGINE_WORKER_NAME, else `<hostname>:<pid>` */
    readonly workerName?: string | undefined;
    /** One sentence for listings. */
    readonly description?: string | undefined;
    /** Bearer token, if the engine requires one (`engine.auth_token` in its configuration). */
    readonly token?: string | undefined;
    /** Headers of the upgrade request of each connection; browsers send none. */
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** Shown in listings; does not change the namespace of functions. */
    readonly namespace?: string | undefined;
    /** Timeout of calls that name none, in milliseconds, from 1 to 604800000. @default {30000} */
    readonly timeoutMs?: number | undefined;
    /** How to reconnect. */
    readonly reconnect?: ReconnectOptions | undefined;
    /**
     * What a call does while there is no connection. `wait`: it is sent with the next connection, if
     * its timeout has not passed; at most 10,000 calls of 64 MiB wait, further ones fail with
     * `overloaded`. `fail`: it fails at once with `engine_unreachable`, which is retryable; calls
     * made while the worker connects for the first time wait for the outcome of the first attempt.
     *
     * @default {"wait"}
     */
    readonly whenDisconnected?: "wait" | "fail" | undefined;
    /**
     * Receives errors outside of calls: the engine cannot be reached (`engine_unreachable`), a
     * registration was rejected, a frame is invalid, a handler of a call without result failed.
     *
     * @default prints the message with console.error
     */
    readonly onError?: ((error: EngineError) => void) | undefined;
    /**
     * Whether the worker sends its log lines, the spans of its handlers and its use of memory and
     * processor to the engine, over a connection of their own. Otherwise, log lines are sent as calls
     * of `engine::log::*`.
     *
     * @default {true} unless OTEL_ENABLED is `false`, or `dial` is set
     */
    readonly telemetry?: boolean | undefined;
    /**
     * Opens connections; for tests and for workers in the process of the engine. Such workers do not
     * print the stack traces of handlers that failed.
     */
    readonly dial?: Dial | undefined;
    /** The clock; for tests. */
    readonly clock?: WorkerClock | undefined;
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

/**
 * A worker: registers functions and triggers with an engine, and calls functions of other workers.
 * Created by `registerWorker()`.
 *
 * @example A worker that ends with a block
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * {
 *   await using worker = registerWorker();
 *   worker.registerFunction("hello::greet", ({ name }: { name: string }) => `Hello ${name}`);
 *   worker.registerTrigger({
 *     type: "http",
 *     function_id: "hello::greet",
 *     config: { api_path: "/hello", http_method: "POST" },
 *   });
 * } // Calls shutdown().
 * ```
 */
declare class Worker implements AsyncDisposable {
    #private;
    /** Name in listings and logs. */
    readonly name: string;
    private constructor();
    /** `registerWorker()` for an address that has been checked; use that instead. */
    static connect(url: string, options: WorkerOptions): Worker;
    /** State of the connection to the engine; `onConnectionState` reports its changes. */
    get connectionState(): ConnectionState;
    /**
     * Registers a function. The same id replaces the earlier registration of this worker.
     *
     * A registration that the engine rejects is reported to `onError`.
     *
     * @param id `<group>::<name>`, such as `math::add`; at most 1,024 characters. `engine::*` is
     * reserved.
     * @param handler Runs the calls, concurrently.
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options that JSON cannot
     * represent.
     *
     * @example A function whose payload the engine checks
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * worker.registerFunction("math::half", (n: number) => n / 2, {
     *   description: "Halves a number",
     *   request_format: { type: "number" },
     * });
     * await worker.shutdown();
     * ```
     */
    registerFunction<In extends StandardSchema, Out extends StandardSchema = StandardSchema>(id: string, handler: Handler<SchemaOutput<In>, SchemaInput<Out>>, options: SchemaOptions<In, Out> & {
        readonly input: In;
    }): Registration;
    /** Registers a function whose result has a schema. */
    registerFunction<Out extends StandardSchema, In = Json>(id: string, handler: Handler<In, SchemaInput<Out>>, options: SchemaOptions<never, Out> & {
        readonly output: Out;
    }): Registration;
    /** Registers a function without schemas of a library; its payload has the type you write. */
    registerFunction<In = Json, Out = unknown>(id: string, handler: Handler<In, Out>, options?: FunctionOptions): Registration;
    /**
     * Registers a function whose implementation is a URL: the engine makes the request, and callers
     * see no difference. The function exists while this worker is connected.
     *
     * The engine's configuration has to allow the host; what it refuses is reported to `onError`.
     *
     * @param invocation The URL and how to request it.
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options that JSON cannot
     * represent.
     *
     * @example A service that knows nothing of the engine
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * worker.registerFunction("legacy::quote", { url: "https://api.example.com/quote" });
     * await worker.shutdown();
     * ```
     */
    registerFunction(id: string, invocation: HttpInvocation, options?: FunctionOptions): Registration;
    /**
     * Registers a trigger: its function is called on events of its type.
     *
     * A trigger that the engine or the provider of the type rejects is reported to `onError`. A
     * trigger of an unknown type becomes live when a worker provides the type.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a config that JSON cannot
     * represent.
     *
     * @example An HTTP route
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * worker.registerFunction("orders::create", ({ body }: { body: unknown }) => {
     *   return { status_code: 201, body };
     * });
     * worker.registerTrigger({
     *   type: "http",
     *   function_id: "orders::create",
     *   config: { api_path: "/orders", http_method: "POST" },
     * });
     * await worker.shutdown();
     * ```
     */
    registerTrigger(trigger: TriggerInput): Registration;
    /**
     * Provides a trigger type: the engine passes every trigger of the type to `handlers`, and this
     * worker calls `trigger.function_id` on its events.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for formats that JSON cannot
     * represent.
     */
    registerTriggerType<Config = Json>(type: TriggerTypeInput, handlers: TriggerHandlers<Config>): Registration;
    /**
     * Calls a function of any worker and resolves with its result, `undefined` if it has none.
     *
     * While there is no connection, the call is queued until its timeout or fails at once, as
     * `whenDisconnected` says; the queue holds 10,000 calls and 64 MiB.
     *
     * @throws {InvocationError} With the code that the handler threw, or one of these:
     * `function_not_found`; `invalid_payload`, if the payload does not match `request_format`;
     * `invocation_failed`, for a thrown error without a code; `TIMEOUT` and `timeout` (see
     * `isTimeout`); `cancelled`, by `signal`; `invocation_stopped`, if the worker or the connection
     * was lost and the function may have run; `overloaded`, if a limit is reached and nothing has
     * run; `engine_unreachable`, without a connection if `whenDisconnected` is `fail`, and after the
     * last attempt to connect; `SHUTDOWN`, after `shutdown()`.
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a payload that JSON cannot
     * represent, that is nested more deeply than 128 levels, or that takes over 64 MiB.
     *
     * @example
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * const payload = { a: 2, b: 3 };
     * const sum = await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 })
     *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
     * console.log(sum);
     * await worker.shutdown();
     * ```
     */
    trigger<In = Json, Out = unknown>(request: CallRequest<In>): Promise<Out>;
    /**
     * Puts a call into a queue, which makes it later, at least once.
     * Resolves when the job is on disk.
     *
     * @throws {InvocationError} `enqueue_error`, if there is no such queue or it cannot keep the job;
     * `deserialization_error` for a bad option; otherwise as {@linkcode Worker.trigger}.
     *
     * @example A mail in a minute
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker(undefined, { timeoutMs: 500 });
     * const payload = { to: "a@b.c" };
     * await worker.enqueue({ function_id: "mail::send", payload, queue: "mail", delay_ms: 60_000 })
     *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
     * await worker.shutdown();
     * ```
     */
    enqueue<In = Json>(request: EnqueueRequest<In>): Promise<EnqueueReceipt>;
    /**
     * Publishes a message to all functions that are subscribed to a topic at that moment, at most
     * once; `engine-pubsub` provides it. Resolves when the engine has accepted the message, before it
     * is delivered.
     *
     * @param topic Such as `orders.created`; without `*` and `>`.
     * @param data Any JSON. Default: `null`.
     * @throws {InvocationError} As {@linkcode Worker.trigger}: `function_not_found` without
     * `engine-pubsub`; `overloaded`; `topic_not_set`; `VALUE_TOO_LARGE`; `deserialization_error` for
     * a topic that is too long or has a wildcard.
     *
     * @example
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker(undefined, { timeoutMs: 500 });
     * const code = await worker.publish("orders.created", { id: 7 }).catch((error) => error.code);
     * console.log(code); // `TIMEOUT` if no engine runs.
     * await worker.shutdown();
     * ```
     */
    publish(topic: string, data?: unknown): Promise<void>;
    /**
     * Calls `handler` with each message of a topic, or of all topics that a pattern matches, until it
     * is unregistered. Every worker that subscribes gets every message; for replicas that share them,
     * register a function and a trigger of type `subscribe` instead.
     *
     * A pattern that the engine rejects is reported to `onError`.
     *
     * @param topic A topic, or a pattern: `*` stands for one part, `>` at the end for one or more.
     * @param handler Its first argument is the published data; its result is ignored.
     * @throws {EngineError} `INVALID_ARGUMENTS`.
     *
     * @example
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * const subscription = worker.subscribe("orders.*", ({ id }: { id: number }) => console.log(id));
     * subscription.unregister();
     * await worker.shutdown();
     * ```
     */
    subscribe<Data = Json>(topic: string, handler: Handler<Data>): Registration;
    /**
     * A stream of `engine-stream`, whose items and events this worker reads and writes; see
     * {@linkcode Stream}.
     *
     * @param name Such as `chat`.
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    stream<Item = Json>(name: string): Stream<Item>;
    /**
     * Keeps the items of a stream in this worker, in place of the engine: registers the functions
     * `stream::get(<name>)`, `set`, `delete`, `list`, `list_groups`, and `update` if there is one.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    createStream<Item = Json>(name: string, source: StreamSource<Item>): Registration;
    /**
     * A value of `engine-configuration` that stays current: it is read again after every change and
     * every reconnect; see {@linkcode LiveConfiguration}.
     *
     * @param id Such as `mail`.
     * @throws {InvocationError} As {@linkcode Worker.trigger}: `NOT_REGISTERED`; `NOT_FOUND`, if it
     * has no value; `SCHEMA_INVALID`; `EXPAND_FAILED`; `function_not_found` without
     * `engine-configuration`.
     * @throws {EngineError} `INVALID_ARGUMENTS`
     */
    configuration<Value = Json>(id: string, options?: ConfigurationOptions): Promise<LiveConfiguration<Value>>;
    /**
     * Entries of the state, first as they are, then each that changed: {@linkcode StateChanges}.
     *
     * @param place A `scope`, such as `stock`, and a `key`; without it all keys of the scope.
     * @throws {EngineError} `INVALID_ARGUMENTS`; the first `next()`: `function_not_found` without
     * `engine-state`, and what else its first read fails with.
     */
    watchState<Value = Json>(place: StatePlace, options?: WatchOptions): StateChanges<Value>;
    /**
     * Creates a channel: a stream of bytes and text messages between any two workers, whose ends
     * travel inside payloads. The engine forwards what is written and holds the writer back while the
     * reader is slow. An end that never connects ends the channel after 5 minutes.
     *
     * @throws {InvocationError} As {@linkcode Worker.trigger}: `overloaded`, if this worker has 1,000
     * channels open.
     *
     * @example A file is passed to a function while it is read
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * async function upload(file: ReadableStream<Uint8Array>) {
     *   await using worker = registerWorker();
     *   const { writer, reader } = await worker.createChannel();
     *   const size = worker.trigger({ function_id: "files::size", payload: { file: reader } });
     *   await file.pipeTo(writer.writable);
     *   return await size;
     * }
     * ```
     */
    createChannel(options?: ChannelOptions): Promise<Channel>;
    /**
     * Calls `listener` with each new state; the returned function removes it.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
     */
    onConnectionState(listener: (state: ConnectionState) => void): () => void;
    /**
     * Disconnects from the engine: its functions and triggers are removed, the signals of running
     * handlers are aborted, and pending calls fail with `SHUTDOWN`. Resolves when the connection is
     * closed; has no effect the second time.
     */
    shutdown(): Promise<void>;
    /** Calls {@linkcode Worker.shutdown} at the end of an `await using` block. */
    [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A schema of any library that follows Standard Schema.
 *
 * @example A schema without a library
 * ```ts
 * import type { StandardSchema } from "engine-sdk";
 *
 * const text: StandardSchema<unknown, string> = {
 *   "~standard": {
 *     version: 1,
 *     vendor: "example",
 *     validate: (value) =>
 *       typeof value === "string" ? { value } : { issues: [{ message: "must be text" }] },
 *   },
 * };
 * console.log(text["~standard"].vendor);
 * ```
 */
interface StandardSchema<Input = unknown, Output = Input> {
    /** The schema's interface for other libraries. */
    readonly "~standard": {
        /** Version of Standard Schema. */
        readonly version: 1;
        /** Name of the library. */
        readonly vendor: string;
        /** Checks a value and returns it as the program gets it, or what is wrong with it. */
        readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
        /** Carries the types; never there at run time. */
        readonly types?: {
            readonly input: Input;
            readonly output: Output;
        } | undefined;
        /** The schema as JSON Schema, if the library offers it; throws for what it cannot represent. */
        readonly jsonSchema?: {
            readonly input: (options: {
                readonly target: "draft-2020-12";
            }) => object;
            readonly output: (options: {
                readonly target: "draft-2020-12";
            }) => object;
        } | undefined;
    };
}

/** The outcome of a check: a value, or the issues. */
type SchemaResult<Output> = {
    readonly value: Output;
    readonly issues?: undefined;
} | {
    readonly issues: readonly SchemaIssue[];
};

/** One thing that is wrong with a value. */
interface SchemaIssue {
    /** What is wrong. */
    readonly message: string;
    /** Where it is: keys from the root, or objects that have one. */
    readonly path?: readonly (PropertyKey | {
        readonly key: PropertyKey;
    })[] | undefined;
}

/** The values that a check of a schema returns. */
type SchemaOutput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

/** The values that a schema accepts. */
type SchemaInput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];

/**
 * Options of a function whose payload or result has a schema of a library with Standard Schema,
 * such as zod, valibot or arktype. The handler gets the types of the schemas.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 * import * as z from "zod";
 *
 * const worker = registerWorker();
 * worker.registerFunction("math::add", ({ a, b }) => ({ c: a + b }), {
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   output: z.object({ c: z.number() }),
 * });
 * await worker.shutdown();
 * ```
 */
interface SchemaOptions<In extends StandardSchema = StandardSchema, Out extends StandardSchema = StandardSchema> extends FunctionOptions {
    /**
     * Schema of the payload: the handler gets what it returns, and a caller whose payload does not
     * fit gets `invalid_payload`. It also makes `request_format`, if the library can write JSON
     * Schema.
     */
    readonly input?: In | undefined;
    /**
     * Schema of the result, in the same way: a result that does not fit becomes `invalid_result`. It
     * also makes `response_format`.
     */
    readonly output?: Out | undefined;
}

/** Options of a function. */
interface FunctionOptions {
    /**
     * Declares a queue for the function; `engine-queue` provides it. What is wrong with it is
     * reported to `onError`.
     */
    readonly queue?: QueueDeclaration | undefined;
    /** One sentence for listings. */
    readonly description?: string | undefined;
    /** JSON Schema of the payload; the engine rejects other payloads with `invalid_payload`. */
    readonly request_format?: JsonInput | undefined;
    /** JSON Schema of the result; shown in listings, not checked. */
    readonly response_format?: JsonInput | undefined;
    /** Any JSON; `{ internal: true }` hides the function from listings. */
    readonly metadata?: JsonInput | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
}

/** How the jobs of a queue are given out; the defaults are those of `engine-queue`. */
interface QueueDeclaration {
    /** Name of the queue. @default the id of the function */
    readonly name?: string | undefined;
    /** `fifo`: one job of a group at a time, in their order. @default `standard` */
    readonly type?: "standard" | "fifo" | undefined;
    /** Member of the payload that selects the group of a `fifo` queue. */
    readonly message_group_field?: string | undefined;
    /** Attempts in all. @default 3 */
    readonly max_retries?: number | undefined;
    /** Jobs that run at the same time. @default 10 */
    readonly concurrency?: number | undefined;
    /** The same for each worker of the function. */
    readonly concurrency_per_worker?: number | undefined;
    /** Delay after the first failed attempt, in milliseconds; it doubles. @default 1000 */
    readonly backoff_ms?: number | undefined;
    /** Longest delay, in milliseconds. @default 3600000 */
    readonly backoff_max_ms?: number | undefined;
    /** Share by which a delay varies, 0 to 1. @default 0.1 */
    readonly jitter?: number | undefined;
    /** How long one attempt may take, in milliseconds. */
    readonly timeout_ms?: number | undefined;
    /** Jobs that begin within a time. */
    readonly rate?: {
        readonly jobs: number;
        readonly per_ms?: number | undefined;
    } | undefined;
    /** A job that has not begun by then is dead, in milliseconds. */
    readonly expires_ms?: number | undefined;
}

/**
 * A function whose implementation is a URL: the engine sends the payload there as JSON, and the
 * JSON of the answer is the result. The engine's configuration (`engine.http_functions`) has to
 * allow the host.
 *
 * @example
 * ```ts
 * import type { HttpInvocation } from "engine-sdk";
 *
 * const quote: HttpInvocation = {
 *   url: "https://api.example.com/quote",
 *   headers: { "X-Tenant": "a" },
 *   timeout_ms: 8_000,
 *   auth: { type: "hmac", secret_key: "QUOTES_SECRET" },
 * };
 * ```
 */
interface HttpInvocation {
    /** Absolute address, `https:` or `http:`. */
    readonly url: string;
    /** Method of the request. @default `POST` */
    readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
    /** How long the URL may take; a shorter deadline of the call wins. @default 30000 */
    readonly timeout_ms?: number | undefined;
    /** Sent with each request; printable ASCII. */
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** How the engine proves who it is. */
    readonly auth?: HttpAuth | undefined;
}

/**
 * How the engine proves to a URL who it is. The `*_key` name environment variables of the engine,
 * not secrets; the engine's `http_functions.auth_env` has to list them.
 */
type HttpAuth = {
    /** Sends `x-engine-Signature`: HMAC-SHA256 of time and body. */
    readonly type: "hmac";
    /** Variable with the secret. */
    readonly secret_key: string;
} | {
    /** Sends `Authorization: Bearer`. */
    readonly type: "bearer";
    /** Variable with the token. */
    readonly token_key: string;
} | {
    /** Sends a header of your choice. */
    readonly type: "api_key";
    /** Name of the header. */
    readonly header: string;
    /** Variable with its value. */
    readonly value_key: string;
};

/**
 * A trigger: calls `function_id` on events of the type `type`.
 *
 * @example A function that serves an HTTP route
 * ```ts
 * import type { TriggerInput } from "engine-sdk";
 *
 * const trigger: TriggerInput = {
 *   type: "http",
 *   function_id: "orders::create",
 *   config: { api_path: "/orders", http_method: "POST" },
 * };
 * ```
 */
interface TriggerInput {
    /** Id of the trigger type, such as `http`. */
    readonly type: string;
    /** Id of the function to call; it may be registered later. */
    readonly function_id: string;
    /** Configuration, as the trigger type defines it, such as `{ api_path: "/orders" }`. */
    readonly config?: JsonInput | undefined;
    /** Second argument of the function's handler. */
    readonly metadata?: JsonInput | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
    /** Namespace of the trigger type. @default `default` */
    readonly trigger_namespace?: string | undefined;
}

/** A trigger type to provide. */
interface TriggerTypeInput {
    /** Such as `file-watch`. */
    readonly id: string;
    /** One sentence for listings. */
    readonly description: string;
    /** JSON Schema of the `config` of triggers. */
    readonly trigger_request_format?: JsonInput | undefined;
    /** JSON Schema of the payload that functions receive. */
    readonly call_request_format?: JsonInput | undefined;
    /** Namespace of the trigger type. @default `default` */
    readonly namespace?: string | undefined;
}

/**
 * What the provider of a trigger type implements.
 *
 * The SDK calls `registerTrigger` and `unregisterTrigger` in turn for each trigger, and waits for
 * one before it calls the other.
 *
 * @example A type whose triggers fire at an interval
 * ```ts
 * import { registerWorker, TriggerAction } from "engine-sdk";
 *
 * const worker = registerWorker();
 * const timers = new Map<string, ReturnType<typeof setInterval>>();
 * worker.registerTriggerType<{ ms: number }>({ id: "interval", description: "Every n ms" }, {
 *   registerTrigger({ id, function_id, config, metadata }) {
 *     if (!(config.ms > 0)) throw new Error("config.ms must be a number above 0");
 *     const action = TriggerAction.Void();
 *     const fire = () => worker.trigger({ function_id, payload: {}, metadata, action });
 *     timers.set(id, setInterval(fire, config.ms));
 *   },
 *   unregisterTrigger({ id }) {
 *     clearInterval(timers.get(id));
 *     timers.delete(id);
 *   },
 * });
 * await worker.shutdown();
 * ```
 */
interface TriggerHandlers<Config = Json> {
    /**
     * Starts to watch for events of a trigger. If it throws, the trigger is rejected, and the
     * originator receives the message.
     */
    registerTrigger(trigger: TriggerInstance<Config>): void | Promise<void>;
    /**
     * Stops to watch. Called once for each registered trigger: when it is unregistered, and when the
     * connection is lost. After a reconnect, live triggers are registered again with the same ids.
     */
    unregisterTrigger(trigger: {
        id: string;
        trigger_type: string;
    }): void | Promise<void>;
}

/** A trigger as the provider of its type receives it. */
interface TriggerInstance<Config = Json> {
    /** Identifies the trigger; the same after a reconnect. */
    readonly id: string;
    /** Id of its type. */
    readonly trigger_type: string;
    /** Id of the function to call. */
    readonly function_id: string;
    /** Configuration by the originator. @default `{}` */
    readonly config: Config;
    /** To be passed as `metadata` of each call. */
    readonly metadata: Json | undefined;
    /** Namespace of the function; `undefined` for `default`. */
    readonly namespace: string | undefined;
}

/** A call for a queue to make later. */
interface EnqueueRequest<In = Json> extends EnqueueOptions {
    /** Id of the function, such as `mail::send`. */
    readonly function_id: string;
    /** Any JSON. @default `null` */
    readonly payload?: In | undefined;
    /** Name of the queue. @default `default` */
    readonly queue?: string | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
}

/** What a queue answers when a job is on disk. */
interface EnqueueReceipt {
    /** Id of the job. */
    readonly messageReceiptId: string;
    /** A job with this id came within a day; nothing was added. */
    readonly duplicate?: true;
}

/** `Worker.createStream()` */
declare function createStream<Item>(worker: WorkerCalls, name: string, source: StreamSource<Item>): Registration;

/** What the parts of the SDK that consist of registrations and calls use of a worker. */
interface WorkerCalls {
    readonly connectionState: ConnectionState;
    registerFunction<In = Json, Out = unknown>(id: string, handler: Handler<In, Out>, options?: FunctionOptions): Registration;
    registerTrigger(trigger: TriggerInput): Registration;
    trigger<In = Json, Out = unknown>(request: CallRequest<In>): Promise<Out>;
    onConnectionState(listener: (state: ConnectionState) => void): () => void;
}

/** `Worker.watchState()` */
declare function watchState<Value>(setup: WatchSetup, place: StatePlace, options: WatchOptions): StateChanges<Value>;

/** What a watch needs besides the worker. */
interface WatchSetup {
    readonly worker: WorkerCalls;
    readonly clock: WorkerClock;
    /** The call whose handler may be running: reads do not share its deadline. */
    readonly scopes: CallScopes;
    /** Receives what a later read failed with; it is tried again. */
    report(error: EngineError): void;
}

/** The scopes of one worker. Workers in one process do not share them: each has its own clock. */
declare class CallScopes {
    #private;
    /** `find` loads `node:async_hooks`; it is called when the first handler runs. */
    constructor(find?: () => AsyncHooks | undefined);
    /** Runs `task`, in whose asynchronous flow {@linkcode CallScopes.current} returns `scope`. */
    run<T>(scope: CallScope, task: () => T): T;
    /** The scope of the handler that is running, if any. */
    current(): CallScope | undefined;
    /** Makes the scopes visible to {@linkcode runningTraceparent}. */
    attach(): void;
    /** Undoes {@linkcode CallScopes.attach}. */
    detach(): void;
}

/** The parts of `node:async_hooks` that are used. */
interface AsyncHooks {
    readonly AsyncLocalStorage: new () => Storage;
}

/** The parts of `AsyncLocalStorage` that are used. */
interface Storage {
    run<T>(scope: CallScope, task: () => T): T;
    getStore(): CallScope | undefined;
}

/** What a call inside a handler inherits. */
interface CallScope {
    /** Deadline of the call that the handler runs, on the worker's clock; `undefined` for none. */
    readonly deadline: number | undefined;
    readonly traceparent: string | undefined;
    readonly baggage: string | undefined;
}

/**
 * A failed call: the error of the function, of the engine or of the SDK. Its `message` is
 * `<code>: <message>`.
 */
declare class InvocationError extends EngineError {
    /** The function that was called. */
    readonly function_id: string;
    /** Id of the call; `undefined` if it failed before it was sent. */
    readonly invocation_id: string | undefined;
    /** Stack trace of the handler, if it sent one. */
    readonly stacktrace: string | undefined;
    /** Converts an error as it was received. */
    constructor(body: ErrorBody, function_id: string, invocation_id?: string);
}

/**
 * Whether an error is a timeout: `TIMEOUT` of the SDK, or `timeout` of the engine.
 *
 * @example
 * ```ts
 * import { isTimeout, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * try {
 *   await worker.trigger({ function_id: "math::add", payload: { a: 2, b: 3 }, timeout_ms: 100 });
 * } catch (error) {
 *   if (!isTimeout(error)) throw error;
 * }
 * await worker.shutdown();
 * ```
 */
declare function isTimeout(error: unknown): boolean;

/** How a typed client makes a call: a {@linkcode CallRequest} without function and payload. */
type CallOptions = Omit<CallRequest, "action" | "function_id" | "namespace" | "payload">;

/**
 * Ways to run a function other than by waiting for its result.
 *
 * @example
 * ```ts
 * import { registerWorker, TriggerAction } from "engine-sdk";
 *
 * const worker = registerWorker();
 * await worker.trigger({ function_id: "mail::send", action: TriggerAction.Void() });
 * await worker.shutdown();
 * ```
 */
declare const TriggerAction: {
    /** Fire and forget: the call resolves with `undefined` at once; its outcome is not reported. */
    readonly Void: () => Action;
    /**
     * Puts the call into a queue: it resolves with `{ messageReceiptId }` when the queue has accepted
     * it, and fails with `enqueue_error` if there is no such queue. See {@linkcode EnqueueOptions}
     * for delays, priority and more.
     */
    readonly Enqueue: ({ queue, ...options }: {
        queue: string;
    } & EnqueueOptions) => Action;
};

export {
  EngineError,
  InvocationError,
  Logger,
  TriggerAction,
  Worker,
  isTimeout,
  registerWorker,
  type Action,
  type Awaitable,
  type CallContext,
  type CallOptions,
  type CallRequest,
  type Channel,
  type ChannelDirection,
  type ChannelOptions,
  type ChannelReader,
  type ChannelRef,
  type ChannelWriter,
  type ConfigurationOptions,
  type ConnectionState,
  type Dial,
  type DialOptions,
  type EnqueueOptions,
  type EnqueueReceipt,
  type EnqueueRequest,
  type ErrorBody,
  type ErrorOptions,
  type FunctionOptions,
  type Handler,
  type HttpAuth,
  type HttpInvocation,
  type Json,
  type JsonInput,
  type JsonObject,
  type LiveConfiguration,
  type LogTarget,
  type QueueDeclaration,
  type ReconnectOptions,
  type Registration,
  type SchemaInput,
  type SchemaIssue,
  type SchemaOptions,
  type SchemaOutput,
  type SchemaResult,
  type StandardSchema,
  type StateChange,
  type StateChanges,
  type StatePlace,
  type Stream,
  type StreamChange,
  type StreamEventOptions,
  type StreamGroup,
  type StreamItemPlace,
  type StreamSource,
  type StreamSubscriber,
  type StreamTriggerEvent,
  type StreamTriggerOptions,
  type Transport,
  type TransportEvents,
  type TriggerHandlers,
  type TriggerInput,
  type TriggerInstance,
  type TriggerTypeInput,
  type UpdateOp,
  type WatchOptions,
  type WorkerClock,
  type WorkerOptions,
};
