/**
 * The types of the public API: options of a worker, of functions, triggers and calls.
 *
 * Fields that are sent have the spelling of the wire; the others are camelCase.
 *
 * @module
 */
import type { WorkerClock } from "./platform.ts";
import type { StandardSchema } from "./typed/standard_schema.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Action, EnqueueOptions, Json, JsonInput } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";

/**
 * State of the connection to the engine.
 *
 * A worker starts as `connecting`. After it lost a connection, failed to connect, or got no answer
 * by the time of the next attempt, it is `reconnecting`. Two states are final: `disconnected` after
 * `shutdown()`, and `failed` when the attempts of `reconnect.maxAttempts` are used up or the engine
 * rejected the worker.
 */
export type ConnectionState =
  | "connecting"
  | "connected"
  | "reconnecting"
  | "disconnected"
  | "failed";

/**
 * How a worker reconnects. Each delay varies by up to 30 % in both directions, so that many workers
 * do not return at the same moment. A dial that is not answered does not postpone the next one.
 */
export interface ReconnectOptions {
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
export interface WorkerOptions {
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

/** The call that a handler is running: its ids, its deadline, and its connection to the caller. */
export interface CallContext {
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
export type Handler<In = Json, Out = unknown> = (
  payload: In,
  metadata: Json | undefined,
  context: CallContext,
) => Out | Promise<Out>;

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
export interface HttpInvocation {
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
export type HttpAuth =
  | {
    /** Sends `x-engine-Signature`: HMAC-SHA256 of time and body. */
    readonly type: "hmac";
    /** Variable with the secret. */
    readonly secret_key: string;
  }
  | {
    /** Sends `Authorization: Bearer`. */
    readonly type: "bearer";
    /** Variable with the token. */
    readonly token_key: string;
  }
  | {
    /** Sends a header of your choice. */
    readonly type: "api_key";
    /** Name of the header. */
    readonly header: string;
    /** Variable with its value. */
    readonly value_key: string;
  };

/** How the jobs of a queue are given out; the defaults are those of `engine-queue`. */
export interface QueueDeclaration {
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
  readonly rate?: { readonly jobs: number; readonly per_ms?: number | undefined } | undefined;
  /** A job that has not begun by then is dead, in milliseconds. */
  readonly expires_ms?: number | undefined;
}

/** Options of a function. */
export interface FunctionOptions {
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
export interface SchemaOptions<
  In extends StandardSchema = StandardSchema,
  Out extends StandardSchema = StandardSchema,
> extends FunctionOptions {
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
export interface TriggerInput {
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
export interface TriggerTypeInput {
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

/** A trigger as the provider of its type receives it. */
export interface TriggerInstance<Config = Json> {
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
export interface TriggerHandlers<Config = Json> {
  /**
   * Starts to watch for events of a trigger. If it throws, the trigger is rejected, and the
   * originator receives the message.
   */
  registerTrigger(trigger: TriggerInstance<Config>): void | Promise<void>;
  /**
   * Stops to watch. Called once for each registered trigger: when it is unregistered, and when the
   * connection is lost. After a reconnect, live triggers are registered again with the same ids.
   */
  unregisterTrigger(trigger: { id: string; trigger_type: string }): void | Promise<void>;
}

/** A registered function, trigger or trigger type. */
export interface Registration {
  /** Id of the function, the trigger or the trigger type. */
  readonly id: string;
  /** Removes the registration; has no effect the second time. */
  unregister(): void;
}

/** What the parts of the SDK that consist of registrations and calls use of a worker. */
export interface WorkerCalls {
  readonly connectionState: ConnectionState;
  registerFunction<In = Json, Out = unknown>(
    id: string,
    handler: Handler<In, Out>,
    options?: FunctionOptions,
  ): Registration;
  registerTrigger(trigger: TriggerInput): Registration;
  trigger<In = Json, Out = unknown>(request: CallRequest<In>): Promise<Out>;
  onConnectionState(listener: (state: ConnectionState) => void): () => void;
}

/** A call to make. */
export interface CallRequest<In = Json> {
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
    addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
    removeEventListener(type: "abort", listener: () => void): void;
  } | undefined;
  /** W3C `traceparent`. @default inside a handler, that of the call that it runs */
  readonly traceparent?: string | undefined;
  /** W3C `baggage`. @default inside a handler, that of the call that it runs */
  readonly baggage?: string | undefined;
  /** Receives what the handler passes to `context.progress()`, in order. */
  readonly onProgress?: ((data: Json) => void) | undefined;
}

/** How a typed client makes a call: a {@linkcode CallRequest} without function and payload. */
export type CallOptions = Omit<CallRequest, "action" | "function_id" | "namespace" | "payload">;

/** A call for a queue to make later. */
export interface EnqueueRequest<In = Json> extends EnqueueOptions {
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
export interface EnqueueReceipt {
  /** Id of the job. */
  readonly messageReceiptId: string;
  /** A job with this id came within a day; nothing was added. */
  readonly duplicate?: true;
}

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
export const TriggerAction = {
  /** Fire and forget: the call resolves with `undefined` at once; its outcome is not reported. */
  Void: (): Action => ({ type: "void" }),
  /**
   * Puts the call into a queue: it resolves with `{ messageReceiptId }` when the queue has accepted
   * it, and fails with `enqueue_error` if there is no such queue. See {@linkcode EnqueueOptions}
   * for delays, priority and more.
   */
  Enqueue: ({ queue, ...options }: { queue: string } & EnqueueOptions): Action => {
    return { type: "enqueue", queue, ...options };
  },
} as const;
