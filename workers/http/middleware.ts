/**
 * The functions that are called before a handler: middleware, which may answer or say something
 * about the request, and the condition of a trigger.
 *
 * @module
 */
import type { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError, isTimeout } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { jsonReply, plainMessage, type Reply, replyFromValue, type Warn } from "./response.ts";

/** Calls a function within the time that the request has left. */
export type CallStep = (
  function_id: string,
  payload: Json | JsonText,
) => Promise<Json | undefined>;

/**
 * A middleware or condition failed: the request ends with this status, whatever the code, unless
 * the details name one.
 */
export class StepError extends EngineError {
  /** The HTTP status. */
  readonly status: number;

  constructor(code: string, message: string, status: number, cause: unknown) {
    const details = cause instanceof EngineError ? cause.details : undefined;
    super(code, message, { cause, ...details && { details } });
    this.name = "StepError";
    this.status = status;
  }
}

/** What a middleware said: a reply ends the request, a context replaces the one before. */
export type MiddlewareResult =
  | { readonly reply: Reply; readonly context?: never }
  | { readonly context: JsonObject; readonly reply?: never };

/**
 * Runs one middleware; `undefined` lets the request go on as it is.
 *
 * @throws {StepError} When it failed (500), timed out (504) or returned something else (500).
 */
export async function runMiddleware(
  call: CallStep,
  function_id: string,
  request: JsonObject,
  context: JsonObject | undefined,
  warn: Warn,
): Promise<MiddlewareResult | undefined> {
  const payload = { phase: "preHandler", request, context: context ?? {} };
  const result = await call(function_id, payload).catch((error) => {
    if (isTimeout(error)) {
      const message = `Middleware ${function_id} did not answer in time`;
      throw new StepError("MIDDLEWARE_TIMEOUT", message, 504, error);
    }
    throw stepError(error);
  });
  if (result === undefined || result === null) return undefined;
  const said = typeof result === "object" && !Array.isArray(result) ? result : {};
  if (said.action === "respond") return { reply: replyFromValue(said.response ?? {}, warn) };
  const { context: more = null } = said;
  if (said.action === "continue" && typeof more === "object" && !Array.isArray(more)) {
    // A spread defines members, whatever their names; assigning would not.
    return more === null ? undefined : { context: { ...context, ...more } };
  }
  // Letting the request pass could open access that the middleware is there to deny.
  const message =
    `Middleware ${function_id} must return nothing, action continue (its context is ` +
    "an object) or respond";
  throw new StepError("invocation_error", message, 500, undefined);
}

/**
 * Runs the condition of a trigger; only `false` ends the request.
 *
 * @throws {StepError} When it failed. {EngineError} `timeout`.
 */
export async function runCondition(
  call: CallStep,
  function_id: string,
  payload: JsonObject | JsonText,
): Promise<Reply | undefined> {
  const result = await call(function_id, payload).catch((error) => {
    throw isTimeout(error) ? error : stepError(error);
  });
  if (result !== false) return undefined;
  const error = { code: "CONDITION_NOT_MET", message: "Request condition not met" };
  return jsonReply(422, { error, skipped: true });
}

/** 500, except for a call that the engine refused as overloaded. */
function stepError(error: unknown): StepError {
  if (!(error instanceof EngineError)) {
    return new StepError("invocation_error", String(error), 500, error);
  }
  const status = error.code === "overloaded" ? 429 : 500;
  return new StepError(error.code, plainMessage(error), status, error);
}
