/**
 * What a worker is told: its own options, and those of functions, triggers and calls.
 *
 * Fields that travel have the spelling of the wire; the others are camelCase.
 *
 * @module
 */
import type { WorkerClock } from "./platform.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Action, Json } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";

/** Where the line to the engine stands. `failed` and `disconnected` are final. */
export type ConnectionState =
  | "connecting"
  | "connected"
  | "reconnecting"
  | "disconnected"
  | "failed";

/** How a worker comes back after its line is lost. */
export interface ReconnectOptions {
  /** First wait, in milliseconds; each further one is twice as long. @default {1000} */
  readonly firstMs?: number | undefined;
  /** Longest wait, in milliseconds; all waits vary by 30 %. @default {30000} */
  readonly maxMs?: number | undefined;
  /** Attempts in a row that may fail before the state is `failed`. @default {Infinity} */
  readonly maxAttempts?: number | undefined;
}

/** How a worker is set up; everything may be left out. */
export interface WorkerOptions {
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

/** What a running handler knows of its call besides the payload. */
export interface CallContext {
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

/**
 * Runs one call: payload in, result out, failure thrown.
 *
 * `payload` is `null` when the caller gave none; `metadata` is what the caller or the trigger adds.
 * A returned `undefined` is no result at all. An error with a string `code` keeps its code.
 */
export type Handler<In = Json, Out = unknown> = (
  payload: In,
  metadata: Json | undefined,
  context: CallContext,
) => Out | Promise<Out>;

/** What may be said of a function. */
export interface FunctionOptions {
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

/** A trigger to register: when `type` happens, call `function_id`. */
export interface TriggerInput {
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
export interface TriggerTypeInput {
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

/** A trigger that somebody registered, as the provider of its type sees it. */
export interface TriggerInstance<Config = Json> {
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

/** What the provider of a trigger type does. */
export interface TriggerHandlers<Config = Json> {
  /** Starts to watch; a throw refuses the trigger, and its text reaches the originator. */
  registerTrigger(trigger: TriggerInstance<Config>): void | Promise<void>;
  /**
   * Stops to watch. Called once for every registered trigger: when the engine says so, and when
   * the line to the engine ends (a new line brings the live ones again, with the same ids).
   */
  unregisterTrigger(trigger: { id: string; trigger_type: string }): void | Promise<void>;
}

/** Something that was registered. */
export interface Registration {
  /** Id of the function, the trigger or the trigger type. */
  readonly id: string;
  /** Takes it back; a second time does nothing. */
  unregister(): void;
}

/** A call to make. */
export interface CallRequest<In = Json> {
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
    addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
    removeEventListener(type: "abort", listener: () => void): void;
  } | undefined;
  /** W3C trace context. @default that of the call whose handler makes this one */
  readonly traceparent?: string | undefined;
  /** W3C baggage. @default that of the call whose handler makes this one */
  readonly baggage?: string | undefined;
  /** Gets what the handler sends with `context.progress()`, in order. */
  readonly onProgress?: ((data: Json) => void) | undefined;
}

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
export const TriggerAction = {
  /** Nobody waits: the call resolves at once, with nothing, whatever becomes of it. */
  Void: (): Action => ({ type: "void" }),
  /** A queue takes it: the call resolves with `{ messageReceiptId }`. */
  Enqueue: ({ queue }: { queue: string }): Action => ({ type: "enqueue", queue }),
} as const;
