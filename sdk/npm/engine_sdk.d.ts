/**
 * Write functions anywhere, call them from anywhere: the SDK for workers, for Deno, Node and
 * browsers.
 *
 * A worker connects to an engine over a WebSocket and says which functions it offers; the engine
 * finds a worker for each call and brings back the result.
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
 *   console.log(isTimeout(error) ? "no engine there" : error);
 * }
 *
 * await worker.shutdown(); // Leaves; without it the worker goes on until the process ends.
 * ```
 *
 * @module
 */

/**
 * Writes to the console and to the engine's logs.
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
     * Speaks for `worker`, else for the one registered last when a line is written. `service` is
     * the name in the engine's logs; the worker's if left out.
     */
    constructor(worker?: LogTarget, service?: string);
    /** Says what only somebody who looks for a bug wants to read. */
    trace(message: string, data?: Json): void;
    /** Says what helps to follow what happens. */
    debug(message: string, data?: Json): void;
    /** Says what happened. */
    info(message: string, data?: Json): void;
    /** Says what somebody should look at. */
    warn(message: string, data?: Json): void;
    /** Says what failed. */
    error(message: string, data?: Json): void;
}

/** What a {@linkcode Logger} needs of a worker. */
interface LogTarget {
    /** Shown with every line. */
    readonly name: string;
    /** Lines are sent when connected; a bounded number of them waits otherwise. */
    readonly connectionState: ConnectionState;
    /** Sends a line. */
    trigger(request: CallRequest): Promise<unknown>;
}

/** Where the line to the engine stands. `failed` and `disconnected` are final. */
type ConnectionState = "connecting" | "connected" | "reconnecting" | "disconnected" | "failed";

/** A call to make. */
interface CallRequest<In = Json> {
    /** Such as `math::add`. */
    readonly function_id: string;
    /** Anything JSON can hold. */
    readonly payload?: In | undefined;
    /** Other than a plain call: see {@linkcode TriggerAction}. */
    readonly action?: Action | undefined;
    /** Milliseconds to wait for the result, counted from now. @default {30000} */
    readonly timeout_ms?: number | undefined;
    /** The same as `timeout_ms`. */
    readonly timeoutMs?: number | undefined;
    /** Second argument of the handler. */
    readonly metadata?: Json | undefined;
    /** Namespace it belongs to. @default `default` */
    readonly namespace?: string | undefined;
    /** Cancels the call when aborted: an `AbortSignal`, or as much of one as a call listens to. */
    readonly signal?: {
        readonly aborted: boolean;
        readonly reason: unknown;
        addEventListener(type: "abort", listener: () => void, options?: {
            once?: boolean;
        }): void;
        removeEventListener(type: "abort", listener: () => void): void;
    } | undefined;
    /** W3C trace context. @default that of the call whose handler makes this one */
    readonly traceparent?: string | undefined;
    /** W3C baggage. @default that of the call whose handler makes this one */
    readonly baggage?: string | undefined;
    /** Gets what the handler sends with `context.progress()`, in order. */
    readonly onProgress?: ((data: Json) => void) | undefined;
}

/** Anything JSON can hold. */
type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
interface JsonObject {
    /** Any member. */
    [key: string]: Json;
}

/** How a call is to be run, if not as a plain call. Never sent to workers. */
type Action = {
    type: "void";
} | {
    type: "enqueue";
    queue: string;
};

/**
 * Makes a worker and starts to connect it, without waiting: what is registered and called meanwhile
 * goes out as soon as the line is open.
 *
 * @param url Address of the engine; left out: ENGINE_URL, else `ws://127.0.0.1:49134`.
 * @throws {EngineError} `INVALID_ARGUMENTS` for an address or an option that cannot be used.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker("ws://127.0.0.1:49134", { workerName: "math" });
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 * await worker.shutdown(); // Else it serves until the process ends.
 * ```
 */
declare function registerWorker(url?: string, options?: WorkerOptions): Worker;

/** How a worker is set up; everything may be left out. */
interface WorkerOptions {
    /** Name in listings and logs. @default ENGINE_WORKER_NAME, else `<hostname>:<pid>` */
    readonly workerName?: string | undefined;
    /** One line for people. */
    readonly description?: string | undefined;
    /** Proves to the engine that this worker may connect (`engine.auth_token` of its config). */
    readonly token?: string | undefined;
    /** Sent with every attempt to connect; a browser sends none. */
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** Reported in listings; does not change where functions are registered. */
    readonly namespace?: string | undefined;
    /** Time-out of calls that name none, in milliseconds. @default {30000} */
    readonly timeoutMs?: number | undefined;
    /** How to come back after the line is lost. */
    readonly reconnect?: ReconnectOptions | undefined;
    /**
     * Hears of what went wrong outside of any call: the engine cannot be reached
     * (`engine_unreachable`), a trigger was refused, a frame could not be read.
     *
     * @default prints it with console.error
     */
    readonly onError?: ((error: EngineError) => void) | undefined;
    /**
     * Whether the worker sends its log lines, spans of its handlers and what it uses to the engine,
     * over a line of their own. Log lines travel as calls of `engine::log::*` otherwise.
     *
     * @default {true} unless OTEL_ENABLED is `false`, or `dial` is given
     */
    readonly telemetry?: boolean | undefined;
    /** Opens the line; for tests and for workers in the engine's own process. */
    readonly dial?: Dial | undefined;
    /** Time, for tests. */
    readonly clock?: WorkerClock | undefined;
}

/** How a worker comes back after its line is lost. */
interface ReconnectOptions {
    /** First wait, in milliseconds; each further one is twice as long. @default {1000} */
    readonly firstMs?: number | undefined;
    /** Longest wait, in milliseconds; all waits vary by 30 %. @default {30000} */
    readonly maxMs?: number | undefined;
    /** Attempts in a row that may fail before the state is `failed`. @default {Infinity} */
    readonly maxAttempts?: number | undefined;
}

/**
 * A failure with a code. A handler that throws one sends its code, details and `retryable`.
 *
 * @example
 * ```ts
 * throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
 * ```
 */
declare class EngineError extends Error {
    /** What happened, for programs: a key of {@linkcode ERRORS} or a handler's own. */
    readonly code: string;
    /** The values to act on. */
    readonly details: JsonObject | undefined;
    /** Whether the handler did not start and the same call may succeed later. */
    readonly retryable: boolean;
    /** Makes an error. */
    constructor(code: string, message: string, options?: ErrorOptions);
    /** The error as it travels: no cause, no local stack. */
    toJSON(): ErrorBody;
}

/** What may be told about a failure besides its code and message. */
interface ErrorOptions {
    /** The values to act on. */
    readonly details?: JsonObject;
    /** Default: what {@linkcode ERRORS} says of the code, else `false`. */
    readonly retryable?: boolean;
    /** Stays in this process. */
    readonly cause?: unknown;
}

/** A failure as it travels. */
interface ErrorBody {
    /** What happened, for programs, such as `function_not_found`. */
    code: string;
    /** What happened, for people: one sentence. */
    message: string;
    /** Where the handler failed; never shown to HTTP clients. */
    stacktrace?: string;
    /** The values to act on. */
    details?: JsonObject;
    /** `true`: the handler did not start, and the same call may succeed later. */
    retryable?: boolean;
}

/** Opens a line to an address. */
type Dial = (url: string, events: TransportEvents, options: DialOptions) => Transport;

/** What a line reports. `closed` comes once and last, also when the line never opened. */
interface TransportEvents {
    /** Messages may be sent from now on. */
    opened(): void;
    /** A text message. */
    text(message: string): void;
    /** A binary message. */
    binary(bytes: Uint8Array): void;
    /** The line is over: a close code, or 1006 with what went wrong (such as `HTTP 401`). */
    closed(code: number, reason: string): void;
}

/** What a dialler may be told besides the address. */
interface DialOptions {
    /** Sent with the upgrade where the platform can (a browser cannot). */
    readonly headers?: Readonly<Record<string, string>>;
    /** Offer to send several messages in one frame. @default false */
    readonly batch?: boolean;
}

/** The SDK's end of a line. Nothing here waits or throws. */
interface Transport {
    /** Sends a message: a string is a text frame, bytes a binary one. */
    send(message: string | Uint8Array): void;
    /** Bytes that were sent and have not left yet; left out where nobody can tell. */
    readonly queuedBytes?: number;
    /** Ends the line, at once and without a word about what was registered. */
    close(code?: number, reason?: string): void;
}

/** A clock that tests can move by hand. */
interface WorkerClock {
    /** Milliseconds since an unspecified start; never goes back. */
    now(): number;
    /** Runs `task` once, `ms` milliseconds from now; call the result to cancel. */
    after(ms: number, task: () => void): () => void;
    /** Milliseconds since 1970, with fractions. @default the platform's */
    wall?(): number;
}

/** Offers functions to an engine and calls those of others. Made by {@linkcode registerWorker}. */
declare class Worker implements AsyncDisposable {
    #private;
    /** Its name in listings and logs. */
    readonly name: string;
    private constructor();
    /** As {@linkcode registerWorker}, for an address that has been checked. */
    static connect(url: string, options: WorkerOptions): Worker;
    /** Where the line to the engine stands. */
    get connectionState(): ConnectionState;
    /**
     * Offers a function under an id such as `math::add`; the same id again replaces it.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options JSON cannot hold.
     */
    registerFunction<In = Json, Out = unknown>(id: string, handler: Handler<In, Out>, options?: FunctionOptions): Registration;
    /**
     * Asks for a function to be called when something happens. A trigger that the engine or the
     * provider of its type refuses is reported to `onError`; one of an unknown type waits for it.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a config JSON cannot hold.
     */
    registerTrigger(trigger: TriggerInput): Registration;
    /**
     * Offers a kind of trigger: the engine hands over every trigger of the type, and this worker
     * calls `trigger.function_id` when it happens.
     *
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for formats JSON cannot hold.
     */
    registerTriggerType<Config = Json>(type: TriggerTypeInput, handlers: TriggerHandlers<Config>): Registration;
    /**
     * Calls a function, wherever it runs, and resolves with what it returned; with `undefined` when
     * it returned nothing. Made while there is no line, the call waits for one within its time.
     *
     * @throws {InvocationError} The failure of the function, or of reaching it:
     * `function_not_found`, `invocation_stopped` (whether it ran is not known), `TIMEOUT` and
     * `timeout` (see `isTimeout`), `cancelled`, `overloaded`, `SHUTDOWN`, `engine_unreachable`.
     * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a payload that JSON
     * cannot hold.
     *
     * @example
     * ```ts
     * import { registerWorker } from "engine-sdk";
     *
     * const worker = registerWorker();
     * const payload = { a: 2, b: 3 };
     * const sum = await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 })
     *   .catch((error) => error.code); // Such as `TIMEOUT` when no engine is there.
     * console.log(sum);
     * await worker.shutdown();
     * ```
     */
    trigger<In = Json, Out = Json>(request: CallRequest<In>): Promise<Out>;
    /** Hears of every new state from now on; call the result to stop. */
    onConnectionState(listener: (state: ConnectionState) => void): () => void;
    /**
     * Leaves the engine at once: its functions and triggers are no longer offered, calls that wait
     * fail with `SHUTDOWN`. Resolves when the line is closed; a second time does nothing more.
     */
    shutdown(): Promise<void>;
    /** As {@linkcode Worker.shutdown}, at the end of an `await using` block. */
    [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Runs one call: payload in, result out, failure thrown.
 *
 * `payload` is `null` when the caller gave none; `metadata` is what the caller or the trigger adds.
 * A returned `undefined` is no result at all. An error with a string `code` keeps its code.
 */
type Handler<In = Json, Out = unknown> = (payload: In, metadata: Json | undefined, context: CallContext) => Out | Promise<Out>;

/** What a running handler knows of its call besides the payload. */
interface CallContext {
    /** Id of the call, as the engine names it; `undefined` when nobody waits for a result. */
    readonly invocation_id: string | undefined;
    /** The function that was called. */
    readonly function_id: string;
    /** Connection that called; only the engine's own workers are told. */
    readonly caller: string | undefined;
    /** Aborted when the caller gave up, the time is over, or the line to the engine is lost. */
    readonly signal: AbortSignal;
    /** Milliseconds the caller waits, counted from the arrival of the call. */
    readonly timeout_ms: number | undefined;
    /** W3C trace context of the call. */
    readonly traceparent: string | undefined;
    /** W3C baggage of the call. */
    readonly baggage: string | undefined;
    /** Sends news to the caller's `onProgress`; ignored once the handler has ended. */
    progress(data: Json): void;
}

/** What may be said of a function. */
interface FunctionOptions {
    /** One line for people. */
    readonly description?: string | undefined;
    /** JSON Schema of the payload; the engine refuses calls that do not fit. */
    readonly request_format?: Json | undefined;
    /** JSON Schema of the result; shown in listings, not checked. */
    readonly response_format?: Json | undefined;
    /** Anything; `{ internal: true }` hides the function from listings. */
    readonly metadata?: Json | undefined;
    /** Namespace it belongs to. @default `default` */
    readonly namespace?: string | undefined;
}

/** Something that was registered. */
interface Registration {
    /** Id of the function, the trigger or the trigger type. */
    readonly id: string;
    /** Takes it back; a second time does nothing. */
    unregister(): void;
}

/** A trigger to register: when `type` happens, call `function_id`. */
interface TriggerInput {
    /** The kind of trigger, such as `http`. */
    readonly type: string;
    /** The function to call; it need not exist yet. */
    readonly function_id: string;
    /** What the type wants to know, such as `{ api_path: "/orders" }`. */
    readonly config?: Json | undefined;
    /** Handed to the function with every firing. */
    readonly metadata?: Json | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
    /** Namespace of the trigger type. @default `default` */
    readonly trigger_namespace?: string | undefined;
}

/** A trigger type to register. */
interface TriggerTypeInput {
    /** Such as `file-watch`. */
    readonly id: string;
    /** One line for people. */
    readonly description: string;
    /** JSON Schema of a trigger's `config`. */
    readonly trigger_request_format?: Json | undefined;
    /** JSON Schema of the payload that functions get. */
    readonly call_request_format?: Json | undefined;
    /** Namespace it belongs to. @default `default` */
    readonly namespace?: string | undefined;
}

/** What the provider of a trigger type does. */
interface TriggerHandlers<Config = Json> {
    /** Starts to watch; a throw refuses the trigger, and its text reaches the originator. */
    registerTrigger(trigger: TriggerInstance<Config>): void | Promise<void>;
    /**
     * Stops to watch. Called once for every registered trigger: when the engine says so, and when
     * the line to the engine ends (a new line brings the live ones again, with the same ids).
     */
    unregisterTrigger(trigger: {
        id: string;
        trigger_type: string;
    }): void | Promise<void>;
}

/** A trigger that somebody registered, as the provider of its type sees it. */
interface TriggerInstance<Config = Json> {
    /** Names the trigger; the same one after a reconnect. */
    readonly id: string;
    /** Its type, as registered. */
    readonly trigger_type: string;
    /** The function to call when it happens. */
    readonly function_id: string;
    /** What the originator configured; `{}` when nothing. */
    readonly config: Config;
    /** To be handed on as `metadata` with every firing. */
    readonly metadata: Json | undefined;
    /** Namespace of the function; `undefined` for `default`. */
    readonly namespace: string | undefined;
}

/** A call that failed: the callee's error, or the engine's. */
declare class InvocationError extends EngineError {
    /** The function that was called. */
    readonly function_id: string;
    /** The call, as its caller named it. */
    readonly invocation_id: string | undefined;
    /** Where the handler failed, in the callee's process. */
    readonly stacktrace: string | undefined;
    /** Makes one from the body that came back; `message` becomes `"<code>: <message>"`. */
    constructor(body: ErrorBody, function_id: string, invocation_id?: string);
}

/** Whether a failure is a deadline that passed: the engine's `timeout` or the SDK's `TIMEOUT`. */
declare function isTimeout(error: unknown): boolean;

/**
 * Ways to run a function other than waiting for its result.
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
    /** Nobody waits: the call resolves at once, with nothing, whatever becomes of it. */
    readonly Void: () => Action;
    /** A queue takes it: the call resolves with `{ messageReceiptId }`. */
    readonly Enqueue: ({ queue }: {
        queue: string;
    }) => Action;
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
  type CallContext,
  type CallRequest,
  type ConnectionState,
  type Dial,
  type DialOptions,
  type ErrorBody,
  type ErrorOptions,
  type FunctionOptions,
  type Handler,
  type Json,
  type JsonObject,
  type LogTarget,
  type ReconnectOptions,
  type Registration,
  type Transport,
  type TransportEvents,
  type TriggerHandlers,
  type TriggerInput,
  type TriggerInstance,
  type TriggerTypeInput,
  type WorkerClock,
  type WorkerOptions,
};
