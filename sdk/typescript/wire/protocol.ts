/**
 * Every message between a worker and the engine.
 *
 * Fields have the same names on the wire and in memory, in all languages. Optional fields are
 * absent, never `undefined` in JSON; where the wire allows `null` for absent, the codec removes it.
 *
 * @module
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/**
 * A value to be sent as JSON. As {@linkcode Json}, but of any object type: TypeScript accepts an
 * interface for no type that has an index signature.
 */
export type JsonInput = null | boolean | number | string | object;

/** A JSON object. */
export interface JsonObject {
  /** Any member. */
  [key: string]: Json;
}

/** An error as it is sent. */
export interface ErrorBody {
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

/** How a queue keeps a job and begins it; an engine without an option ignores it (extension). */
export interface EnqueueOptions {
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

/** How to run a call other than by waiting for its result. Never sent to workers. */
export type Action =
  | { type: "void" }
  | ({ type: "enqueue"; queue: string } & EnqueueOptions);

/**
 * Registers a function. There is no response; the same id replaces the sender's own registration.
 */
export interface RegisterFunction {
  type: "registerfunction";
  /** `group::name`, such as `math::add`. */
  id: string;
  description?: string;
  /** JSON Schema of the payload; the engine checks calls against it. */
  request_format?: Json;
  /** JSON Schema of the result; reported, not checked. */
  response_format?: Json;
  metadata?: Json;
  /** Present: the function is called over HTTP. */
  invocation?: JsonObject;
  /** Default: `default`. */
  namespace?: string;
}

/** Removes the sender's own registration. */
export interface UnregisterFunction {
  type: "unregisterfunction";
  id: string;
  namespace?: string;
}

/** Registers the sender as the provider of a trigger type. */
export interface RegisterTriggerType {
  type: "registertriggertype";
  id: string;
  description: string;
  /** JSON Schema of a trigger's `config`. */
  trigger_request_format?: Json;
  /** JSON Schema of the payload that functions receive. */
  call_request_format?: Json;
  namespace?: string;
}

/** Removes a trigger type; its triggers are parked. */
export interface UnregisterTriggerType {
  type: "unregistertriggertype";
  id: string;
  namespace?: string;
}

/** Registers a trigger. The engine forwards it to the provider of its type. */
export interface RegisterTrigger {
  type: "registertrigger";
  /** Chosen by the originator; identifies the trigger. */
  id: string;
  trigger_type: string;
  /** The function to call; it need not exist yet. */
  function_id: string;
  /** Configuration, as the trigger type defines it. Default: `{}`. */
  config?: Json;
  /** Passed to the function with every call. */
  metadata?: Json;
  /** Namespace of the function. */
  namespace?: string;
  /** Namespace of the trigger type. */
  trigger_namespace?: string;
}

/**
 * Response of a provider to {@linkcode RegisterTrigger}. The engine forwards it to the originator
 * only if it contains an error.
 */
export interface TriggerRegistrationResult {
  type: "triggerregistrationresult";
  id: string;
  trigger_type: string;
  function_id: string;
  /** Absent: the trigger is live. */
  error?: ErrorBody;
}

/** Removes a trigger. Providers receive the id and the type only. */
export interface UnregisterTrigger {
  type: "unregistertrigger";
  id: string;
  trigger_type?: string;
}

/** Calls a function. A call without `invocation_id` gets no result. */
export interface InvokeFunction {
  type: "invokefunction";
  invocation_id?: string;
  function_id: string;
  namespace?: string;
  action?: Action;
  /** How long the caller waits, in milliseconds from the arrival of the frame at the engine. */
  timeout_ms?: number;
  /** Second argument of the handler. */
  metadata?: Json;
  traceparent?: string;
  baggage?: string;
  /** Sent to built-in workers only: id of the connection that called. */
  caller?: string;
  /** The payload. Default: `null`. Written last, so that the engine need not read it. */
  data?: Json;
}

/** The outcome of an invocation: `error` if it failed, else `result`, absent if empty. */
export interface InvocationResult {
  type: "invocationresult";
  invocation_id: string;
  function_id: string;
  traceparent?: string;
  baggage?: string;
  error?: ErrorBody;
  result?: Json;
}

/** Progress of a running invocation, from the callee to the caller. */
export interface InvocationProgress {
  type: "invocationprogress";
  invocation_id: string;
  data: Json;
}

/** The caller no longer waits for the result. The engine forwards it to the callee. */
export interface CancelInvocation {
  type: "cancelinvocation";
  invocation_id: string;
  reason?: string;
}

/** First frame of a reconnected worker: the engine closes its old connection if still open. */
export interface Reattach {
  type: "reattach";
  previous_worker_id: string;
  reattach_token: string;
}

/** First frame that the engine sends on every connection. */
export interface WorkerRegistered {
  type: "workerregistered";
  worker_id: string;
  reattach_token: string;
  /** Optional features that the engine supports: `cancel`, `timeout`, `progress`, `batch`. */
  capabilities: string[];
}

/** A registration was rejected; the others of the worker are unaffected. */
export interface RegistrationRejected {
  type: "registrationrejected";
  code: string;
  namespace: string;
  function_id?: string;
  worker_name?: string;
  owner_worker_id?: string;
  message?: string;
}

/** The engine could not use a message of the worker. For information only. */
export interface ErrorMessage {
  type: "error";
  error: ErrorBody;
}

/** Requests a {@linkcode Pong}. Liveness is checked by WebSocket pings, not by this. */
export interface Ping {
  type: "ping";
}

/** Answers a {@linkcode Ping}. */
export interface Pong {
  type: "pong";
}

/** A legacy grouping label: accepted and ignored. */
export interface RegisterService {
  type: "registerservice";
  id: string;
}

/** What a worker may send. */
export type WorkerMessage =
  | CancelInvocation
  | InvocationProgress
  | InvocationResult
  | InvokeFunction
  | Ping
  | Pong
  | Reattach
  | RegisterFunction
  | RegisterService
  | RegisterTrigger
  | RegisterTriggerType
  | TriggerRegistrationResult
  | UnregisterFunction
  | UnregisterTrigger
  | UnregisterTriggerType;

/** What the engine may send. */
export type EngineMessage =
  | CancelInvocation
  | ErrorMessage
  | InvocationProgress
  | InvocationResult
  | InvokeFunction
  | Ping
  | Pong
  | RegisterTrigger
  | RegistrationRejected
  | TriggerRegistrationResult
  | UnregisterTrigger
  | WorkerRegistered;

/** WebSocket subprotocol that permits several messages in a text frame, one per line. */
export const BATCH_PROTOCOL = "engine.batch.v1";

/** The namespace where none is given. */
export const DEFAULT_NAMESPACE = "default";

/** Payload of `engine::workers::register`: describes the worker of this connection. */
export interface Announcement {
  runtime: string;
  version: string;
  name: string;
  description?: string;
  os: string;
  pid: number;
  isolation: string | null;
  namespace?: string;
  capabilities?: string[];
  telemetry?: JsonObject;
}

/** The core function that receives an {@linkcode Announcement}. */
export const ANNOUNCE_FUNCTION_ID = "engine::workers::register";

/** Registered by the built-in worker that provides queues; the engine calls it for each enqueue. */
export const ENQUEUE_FUNCTION_ID = "engine::queue::enqueue";

/** Upgrade header with the id of the launch, of a worker that the engine started. */
export const LAUNCH_ID_HEADER = "x-engine-launch-id";
