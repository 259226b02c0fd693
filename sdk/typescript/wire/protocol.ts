/**
 * Every message between a worker and the engine.
 *
 * The names are those of the wire and stay so in memory, in both languages. Optional fields are
 * absent, never `undefined` in JSON; where the wire allows `null` for absent, the codec drops it.
 *
 * @module
 */

/** Anything JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  /** Any member. */
  [key: string]: Json;
}

/** A failure as it travels. */
export interface ErrorBody {
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

/** How a call is to be run, if not as a plain call. Never sent to workers. */
export type Action =
  | { type: "void" }
  | { type: "enqueue"; queue: string };

/** Offers a function. Nothing is answered; the same id again replaces the sender's own offer. */
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
  /** Present: the function is served by HTTP. */
  invocation?: JsonObject;
  /** Left out: `default`. */
  namespace?: string;
}

/** Takes the sender's own offer back. */
export interface UnregisterFunction {
  type: "unregisterfunction";
  id: string;
  namespace?: string;
}

/** Offers to watch for something and to call functions when it happens. */
export interface RegisterTriggerType {
  type: "registertriggertype";
  id: string;
  description: string;
  /** JSON Schema of a trigger's `config`. */
  trigger_request_format?: Json;
  /** JSON Schema of the payload that functions get. */
  call_request_format?: Json;
  namespace?: string;
}

/** Takes a trigger type back; its triggers are parked. */
export interface UnregisterTriggerType {
  type: "unregistertriggertype";
  id: string;
  namespace?: string;
}

/** Binds a function to something that happens. Also sent on to the provider of the type. */
export interface RegisterTrigger {
  type: "registertrigger";
  /** Made by the client; names the trigger from now on. */
  id: string;
  trigger_type: string;
  /** The function to call; it need not exist yet. */
  function_id: string;
  /** What the type wants to know; left out means `{}`. */
  config?: Json;
  /** Handed to the function with every firing. */
  metadata?: Json;
  /** Namespace of the function. */
  namespace?: string;
  /** Namespace of the trigger type. */
  trigger_namespace?: string;
}

/** A provider's answer to {@linkcode RegisterTrigger}; to the originator only when it failed. */
export interface TriggerRegistrationResult {
  type: "triggerregistrationresult";
  id: string;
  trigger_type: string;
  function_id: string;
  /** Left out: the trigger is live. */
  error?: ErrorBody;
}

/** Ends a trigger. Providers get the id and the type only. */
export interface UnregisterTrigger {
  type: "unregistertrigger";
  id: string;
  trigger_type?: string;
}

/** Run a function. Without `invocation_id` nobody waits for the result. */
export interface InvokeFunction {
  type: "invokefunction";
  invocation_id?: string;
  function_id: string;
  namespace?: string;
  action?: Action;
  /** Milliseconds the caller will wait, counted from when the engine has the frame. */
  timeout_ms?: number;
  /** Side-band JSON, second argument of the handler. */
  metadata?: Json;
  traceparent?: string;
  baggage?: string;
  /** Only towards the engine's own workers: id of the connection that called. */
  caller?: string;
  /** The payload. Left out means `null`. Written last, so that nobody on the way need read it. */
  data?: Json;
}

/** How an invocation ended: `error` if it failed, else `result`, left out for nothing. */
export interface InvocationResult {
  type: "invocationresult";
  invocation_id: string;
  function_id: string;
  traceparent?: string;
  baggage?: string;
  error?: ErrorBody;
  result?: Json;
}

/** News of a running invocation, from the callee to its caller. */
export interface InvocationProgress {
  type: "invocationprogress";
  invocation_id: string;
  data: Json;
}

/** The caller no longer wants the result; passed on to the callee. */
export interface CancelInvocation {
  type: "cancelinvocation";
  invocation_id: string;
  reason?: string;
}

/** First frame of a connection that comes back: drop the old one, if it still seems alive. */
export interface Reattach {
  type: "reattach";
  previous_worker_id: string;
  reattach_token: string;
}

/** First frame of the engine on every connection. */
export interface WorkerRegistered {
  type: "workerregistered";
  worker_id: string;
  reattach_token: string;
  /** What the engine supports: `cancel`, `timeout`, `progress`, `batch`. */
  capabilities: string[];
}

/** A function was refused; everything else of the worker is unaffected. */
export interface RegistrationRejected {
  type: "registrationrejected";
  code: string;
  namespace: string;
  function_id?: string;
  worker_name?: string;
  owner_worker_id?: string;
  message?: string;
}

/** Something the worker sent could not be used. Nobody need react. */
export interface ErrorMessage {
  type: "error";
  error: ErrorBody;
}

/** Asks for a {@linkcode Pong}; not the liveness mechanism, which is the WebSocket's own. */
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

/** Subprotocol with which a text frame may hold several messages, one to a line. */
export const BATCH_PROTOCOL = "engine.batch.v1";

/** The namespace of whatever names none. */
export const DEFAULT_NAMESPACE = "default";

/** What `engine::workers::register` is told: who speaks on this connection. */
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

/** The built-in function that takes an {@linkcode Announcement}. */
export const ANNOUNCE_FUNCTION_ID = "engine::workers::register";

/** Registered by the built-in worker that provides queues; the engine calls it for each enqueue. */
export const ENQUEUE_FUNCTION_ID = "engine::queue::enqueue";

/** Header by which a worker started by the engine says which start it is. */
export const LAUNCH_ID_HEADER = "x-engine-launch-id";
