/**
 * The errors of this project, and the table of their codes.
 *
 * Every failure that crosses a boundary (socket, HTTP, command line) is an {@linkcode EngineError}
 * with a code for programs, a message for people and details. A failed call rejects with its
 * subclass {@linkcode InvocationError}.
 *
 * @module
 */
import type { ErrorBody, Json, JsonObject } from "./protocol.ts";

/** How a caller treats a code. */
export interface ErrorMeaning {
  /** HTTP status of the response of an HTTP trigger. */
  readonly status: number;
  /** Whether the handler did not start and the same call may succeed later. */
  readonly retryable: boolean;
}

/** Codes of the engine and the SDKs. Never change the meaning of an existing one. */
export const ERRORS = {
  function_not_found: { status: 503, retryable: false },
  invocation_stopped: { status: 503, retryable: false },
  timeout: { status: 504, retryable: false },
  cancelled: { status: 500, retryable: false },
  overloaded: { status: 429, retryable: true },
  bad_message: { status: 500, retryable: false },
  invalid_payload: { status: 500, retryable: false },
  invalid_result: { status: 500, retryable: false },
  invocation_error: { status: 500, retryable: false },
  deserialization_error: { status: 500, retryable: false },
  serialization_error: { status: 500, retryable: false },
  channel_send_failed: { status: 500, retryable: true },
  channel_closed: { status: 500, retryable: false },
  channel_not_found: { status: 500, retryable: false },
  connection_not_found: { status: 500, retryable: false },
  INVALID_NAMESPACE: { status: 500, retryable: false },
  FUNCTION_NAMESPACE_CONFLICT: { status: 500, retryable: false },
  topic_not_set: { status: 500, retryable: false },
  enqueue_error: { status: 500, retryable: false },
  trigger_registration_failed: { status: 500, retryable: false },
  trigger_type_not_found: { status: 500, retryable: false },
  invocation_failed: { status: 500, retryable: false },
  function_not_invokable: { status: 500, retryable: false },
  UNKNOWN: { status: 500, retryable: false },
  TIMEOUT: { status: 500, retryable: false },
  SHUTDOWN: { status: 500, retryable: false },
  http_error: { status: 500, retryable: false },
  http_request_failed: { status: 500, retryable: false },
  invalid_response: { status: 500, retryable: false },
  version_mismatch: { status: 500, retryable: false },
  VALUE_TOO_LARGE: { status: 500, retryable: false },
  GET_ERROR: { status: 500, retryable: false },
  SET_ERROR: { status: 500, retryable: false },
  DELETE_ERROR: { status: 500, retryable: false },
  LIST_ERROR: { status: 500, retryable: false },
  UPDATE_ERROR: { status: 500, retryable: false },
  TRANSACTION_ERROR: { status: 500, retryable: false },
  JSON_ERROR: { status: 500, retryable: false },
  STREAM_SET_ERROR: { status: 500, retryable: false },
  STREAM_GET_ERROR: { status: 500, retryable: false },
  STREAM_DELETE_ERROR: { status: 500, retryable: false },
  STREAM_UPDATE_ERROR: { status: 500, retryable: false },
  STREAM_LIST_ERROR: { status: 500, retryable: false },
  STREAM_LIST_GROUPS_ERROR: { status: 500, retryable: false },
  STREAM_LIST_ALL_ERROR: { status: 500, retryable: false },
  STREAM_SEND_ERROR: { status: 500, retryable: false },
  NOT_REGISTERED: { status: 500, retryable: false },
  INVALID_ID: { status: 500, retryable: false },
  SCHEMA_INVALID: { status: 500, retryable: false },
  SCHEMA_UNAVAILABLE: { status: 500, retryable: false },
  EXPAND_FAILED: { status: 500, retryable: false },
  ADAPTER_ERROR: { status: 500, retryable: false },
  NOT_FOUND: { status: 500, retryable: false },
  FORBIDDEN: { status: 500, retryable: false },
  AUTH_ERROR: { status: 500, retryable: false },
  INVALID_ARGUMENTS: { status: 500, retryable: false },
  store_unavailable: { status: 500, retryable: false },
  invalid_json: { status: 400, retryable: false },
  engine_unreachable: { status: 500, retryable: true },
  body_too_large: { status: 413, retryable: false },
  invalid_body: { status: 400, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  unauthorized: { status: 401, retryable: false },
  rate_limited: { status: 429, retryable: true },
  CONDITION_NOT_MET: { status: 422, retryable: false },
  MIDDLEWARE_TIMEOUT: { status: 504, retryable: false },
  config_invalid: { status: 500, retryable: false },
  config_conflict: { status: 500, retryable: true },
  manifest_invalid: { status: 500, retryable: false },
  isolation_unavailable: { status: 500, retryable: false },
  launch_failed: { status: 500, retryable: false },
  too_few_descriptors: { status: 500, retryable: false },
  invalid_grant: { status: 500, retryable: false },
  expired: { status: 500, retryable: false },
  install_failed: { status: 500, retryable: false },
  address_in_use: { status: 500, retryable: false },
  address_not_available: { status: 500, retryable: false },
  invalid_schema: { status: 500, retryable: false },
} as const satisfies Record<string, ErrorMeaning>;

/** A key of {@linkcode ERRORS}. */
export type ErrorCode = keyof typeof ERRORS;

/** Optional properties of an {@linkcode EngineError}. */
export interface ErrorOptions {
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
export class EngineError extends Error {
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
  constructor(code: string, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "EngineError";
    this.code = code;
    this.details = options.details as JsonObject | undefined;
    this.retryable = options.retryable ?? meaningOf(code)?.retryable ?? false;
  }

  /** The error as it is sent: without cause and stack. */
  toJSON(): ErrorBody {
    return errorBody(this.code, this.message, this.details, this.retryable);
  }
}

/**
 * A failed call: the error of the function, of the engine or of the SDK. Its `message` is
 * `<code>: <message>`.
 */
export class InvocationError extends EngineError {
  /** The function that was called. */
  readonly function_id: string;
  /** Id of the call; `undefined` if it failed before it was sent. */
  readonly invocation_id: string | undefined;
  /** Stack trace of the handler, if it sent one. */
  readonly stacktrace: string | undefined;

  /** Converts an error as it was received. */
  constructor(body: ErrorBody, function_id: string, invocation_id?: string) {
    const options: { details?: JsonObject; retryable: boolean } = {
      retryable: body.retryable ?? false,
    };
    if (body.details) options.details = body.details;
    super(body.code, `${body.code}: ${body.message}`, options);
    this.name = "InvocationError";
    this.function_id = function_id;
    this.invocation_id = invocation_id;
    this.stacktrace = body.stacktrace;
  }
}

/** The entry of a code in {@linkcode ERRORS}; `undefined` for codes of a handler. */
export function meaningOf(code: string): ErrorMeaning | undefined {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : undefined;
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
export function isTimeout(error: unknown): boolean {
  return error instanceof EngineError && (error.code === "timeout" || error.code === "TIMEOUT");
}

/** An error object without empty fields. */
export function errorBody(
  code: string,
  message: string,
  details?: JsonObject,
  retryable: boolean = meaningOf(code)?.retryable ?? false,
): ErrorBody {
  const body: ErrorBody = { code, message };
  if (details) body.details = details;
  if (retryable) body.retryable = true;
  return body;
}

/** A received `error` field as an error object: a plain string gets the code `UNKNOWN`. */
export function normaliseError(error: Json): ErrorBody {
  if (typeof error === "string") return { code: "UNKNOWN", message: error };
  if (error === null || typeof error !== "object" || Array.isArray(error)) {
    return { code: "UNKNOWN", message: JSON.stringify(error) };
  }
  const { code, message, stacktrace, details, retryable } = error;
  const body: ErrorBody = {
    code: typeof code === "string" ? code : "UNKNOWN",
    message: typeof message === "string" ? message : JSON.stringify(message ?? error),
  };
  if (typeof stacktrace === "string") body.stacktrace = stacktrace;
  if (details !== null && typeof details === "object" && !Array.isArray(details)) {
    body.details = details;
  }
  if (typeof retryable === "boolean") body.retryable = retryable;
  return body;
}

/**
 * What a handler threw as an error object: an error with a string `code` keeps it with its details,
 * all others become `invocation_failed` with their text and stack. Never throws.
 */
export function describeThrown(thrown: unknown): ErrorBody {
  const message = thrownText(thrown);
  try {
    return thrown instanceof Error
      ? describeError(thrown, message)
      : { code: "invocation_failed", message };
  } catch {
    return { code: "invocation_failed", message }; // A getter of it throws.
  }
}

/** The message of a thrown value. Never throws. */
export function thrownText(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "a value without a text was thrown";
  }
}

function describeError(thrown: Error, message: string): ErrorBody {
  const { code, details, retryable, stack } = thrown as Error & Record<string, unknown>;
  const body: ErrorBody = {
    code: typeof code === "string" && code !== "" ? code : "invocation_failed",
    message: thrown instanceof InvocationError
      ? message.slice(thrown.code.length + 2) // Otherwise every hop would repeat the code.
      : message,
  };
  if (typeof stack === "string" && stack !== "") body.stacktrace = stack;
  if (details && typeof details === "object" && !Array.isArray(details)) {
    body.details = details as JsonObject;
  }
  if (retryable === true) body.retryable = true;
  return body;
}
