/**
 * The one error family of this project, and the table of its codes.
 *
 * Every failure that crosses a border (socket, HTTP, command line) is an {@linkcode EngineError}:
 * the code says what happened to programs, the message to people, the details carry the values to
 * act on. {@linkcode InvocationError} is the one that a failed call raises.
 *
 * @module
 */
import type { ErrorBody, Json, JsonObject } from "./protocol.ts";

/** What a code means to a caller. */
export interface ErrorMeaning {
  /** The HTTP status an HTTP trigger answers with. */
  readonly status: number;
  /** Whether the handler did not start and the same call may succeed later. */
  readonly retryable: boolean;
}

/** The codes the engine and the SDKs make. Add one here first; never change what one means. */
export const ERRORS = {
  function_not_found: { status: 503, retryable: false },
  invocation_stopped: { status: 503, retryable: false },
  timeout: { status: 504, retryable: false },
  cancelled: { status: 500, retryable: false },
  overloaded: { status: 429, retryable: true },
  bad_message: { status: 500, retryable: false },
  invalid_payload: { status: 500, retryable: false },
  invocation_error: { status: 500, retryable: false },
  deserialization_error: { status: 500, retryable: false },
  serialization_error: { status: 500, retryable: false },
  channel_send_failed: { status: 500, retryable: true },
  INVALID_NAMESPACE: { status: 500, retryable: false },
  FUNCTION_NAMESPACE_CONFLICT: { status: 500, retryable: false },
  enqueue_error: { status: 500, retryable: false },
  trigger_registration_failed: { status: 500, retryable: false },
  trigger_type_not_found: { status: 500, retryable: false },
  invocation_failed: { status: 500, retryable: false },
  function_not_invokable: { status: 500, retryable: false },
  UNKNOWN: { status: 500, retryable: false },
  TIMEOUT: { status: 500, retryable: false },
  SHUTDOWN: { status: 500, retryable: false },
  version_mismatch: { status: 500, retryable: false },
  VALUE_TOO_LARGE: { status: 500, retryable: false },
  GET_ERROR: { status: 500, retryable: false },
  SET_ERROR: { status: 500, retryable: false },
  DELETE_ERROR: { status: 500, retryable: false },
  LIST_ERROR: { status: 500, retryable: false },
  UPDATE_ERROR: { status: 500, retryable: false },
  NOT_FOUND: { status: 500, retryable: false },
  FORBIDDEN: { status: 500, retryable: false },
  INVALID_ARGUMENTS: { status: 500, retryable: false },
  store_unavailable: { status: 500, retryable: false },
  invalid_json: { status: 400, retryable: false },
  engine_unreachable: { status: 500, retryable: true },
  body_too_large: { status: 413, retryable: false },
  unauthorized: { status: 401, retryable: false },
  CONDITION_NOT_MET: { status: 422, retryable: false },
  MIDDLEWARE_TIMEOUT: { status: 504, retryable: false },
  config_invalid: { status: 500, retryable: false },
  config_conflict: { status: 500, retryable: true },
  manifest_invalid: { status: 500, retryable: false },
  isolation_unavailable: { status: 500, retryable: false },
  launch_failed: { status: 500, retryable: false },
  install_failed: { status: 500, retryable: false },
  address_in_use: { status: 500, retryable: false },
  address_not_available: { status: 500, retryable: false },
  invalid_schema: { status: 500, retryable: false },
} as const satisfies Record<string, ErrorMeaning>;

/** A key of {@linkcode ERRORS}. */
export type ErrorCode = keyof typeof ERRORS;

/** What may be told about a failure besides its code and message. */
export interface ErrorOptions {
  /** The values to act on. */
  readonly details?: JsonObject;
  /** Default: what {@linkcode ERRORS} says of the code, else `false`. */
  readonly retryable?: boolean;
  /** Stays in this process. */
  readonly cause?: unknown;
}

/**
 * A failure with a code. A handler that throws one sends its code, details and `retryable`.
 *
 * @example
 * ```ts
 * throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
 * ```
 */
export class EngineError extends Error {
  /** What happened, for programs: a key of {@linkcode ERRORS} or a handler's own. */
  readonly code: string;
  /** The values to act on. */
  readonly details: JsonObject | undefined;
  /** Whether the handler did not start and the same call may succeed later. */
  readonly retryable: boolean;

  /** Makes an error. */
  constructor(code: string, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "EngineError";
    this.code = code;
    this.details = options.details;
    this.retryable = options.retryable ?? meaningOf(code)?.retryable ?? false;
  }

  /** The error as it travels: no cause, no local stack. */
  toJSON(): ErrorBody {
    return errorBody(this.code, this.message, this.details, this.retryable);
  }
}

/** A call that failed: the callee's error, or the engine's. */
export class InvocationError extends EngineError {
  /** The function that was called. */
  readonly function_id: string;
  /** The call, as its caller named it. */
  readonly invocation_id: string | undefined;
  /** Where the handler failed, in the callee's process. */
  readonly stacktrace: string | undefined;

  /** Makes one from the body that came back; `message` becomes `"<code>: <message>"`. */
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

/** What the table says of a code; `undefined` for a handler's own. */
export function meaningOf(code: string): ErrorMeaning | undefined {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : undefined;
}

/** Whether a failure is a deadline that passed: the engine's `timeout` or the SDK's `TIMEOUT`. */
export function isTimeout(error: unknown): boolean {
  return error instanceof EngineError && (error.code === "timeout" || error.code === "TIMEOUT");
}

/** An error object with only the fields that say something. */
export function errorBody(
  code: string,
  message: string,
  details?: JsonObject,
  retryable = meaningOf(code)?.retryable ?? false,
): ErrorBody {
  const body: ErrorBody = { code, message };
  if (details) body.details = details;
  if (retryable) body.retryable = true;
  return body;
}

/** Any `error` field that arrived as an error object: a bare string gets the code `UNKNOWN`. */
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
 * Whatever a handler threw, as it travels: an error with a string `code` keeps it with its details,
 * everything else is `invocation_failed` with the text and the stack. Never throws itself.
 */
export function describeThrown(thrown: unknown): ErrorBody {
  const message = thrownText(thrown);
  try {
    return thrown instanceof Error
      ? describeError(thrown, message)
      : { code: "invocation_failed", message };
  } catch {
    return { code: "invocation_failed", message }; // A field of it throws when it is read.
  }
}

/** The words of whatever was thrown, for people. Never throws itself. */
export function thrownText(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "something was thrown that has no text";
  }
}

function describeError(thrown: Error, message: string): ErrorBody {
  const { code, details, retryable, stack } = thrown as Error & Record<string, unknown>;
  const body: ErrorBody = {
    code: typeof code === "string" && code !== "" ? code : "invocation_failed",
    message: thrown instanceof InvocationError
      ? message.slice(thrown.code.length + 2) // Else the code is repeated with every hop.
      : message,
  };
  if (typeof stack === "string" && stack !== "") body.stacktrace = stack;
  if (details && typeof details === "object" && !Array.isArray(details)) {
    body.details = details as JsonObject;
  }
  if (retryable === true) body.retryable = true;
  return body;
}
