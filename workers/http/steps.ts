/**
 * What may stop a request before its handler: middleware, and the condition of its trigger.
 *
 * A step answers with a {@linkcode Reply} that ends the request, or with `undefined`: go on.
 *
 * @module
 */
import { EngineError, isTimeout } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { jsonReply, plainMessage, type Remark, type Reply, replyFromValue } from "./reply.ts";

/** Calls a function within what is left of the request's time. */
export type Step = (function_id: string, payload: Json) => Promise<Json | undefined>;

/** A step failed: the request ends with this status, whatever the code. */
export class StepError extends EngineError {
  /** The HTTP status. */
  readonly status: number;

  /** Makes one from what ended the call of the step. */
  constructor(code: string, message: string, status: number, cause: unknown) {
    super(code, message, { cause });
    this.name = "StepError";
    this.status = status;
  }
}

/**
 * Asks one middleware.
 *
 * @throws {StepError} When it failed (500), was too slow (504) or said something else (500).
 */
export async function askMiddleware(
  call: Step,
  function_id: string,
  request: JsonObject,
  remark: Remark,
): Promise<Reply | undefined> {
  const payload = { phase: "preHandler", request, context: {} };
  const said = await call(function_id, payload).catch((error) => {
    if (isTimeout(error)) {
      const message = `Middleware ${function_id} did not answer in time`;
      throw new StepError("MIDDLEWARE_TIMEOUT", message, 504, error);
    }
    throw failed(error);
  });
  if (said === undefined || said === null) return undefined;
  const { action, response } = typeof said === "object" && !Array.isArray(said) ? said : {};
  if (action === "continue") return undefined;
  if (action === "respond") return replyFromValue(response ?? {}, remark);
  // Letting the request pass could open a door that the middleware is there to close.
  const message = `Middleware ${function_id} must return nothing, action continue or respond`;
  throw new StepError("invocation_error", message, 500, undefined);
}

/**
 * Asks the condition of a trigger; only `false` ends the request.
 *
 * @throws {StepError} When it failed. {EngineError} `timeout`.
 */
export async function askCondition(
  call: Step,
  function_id: string,
  payload: JsonObject,
): Promise<Reply | undefined> {
  const said = await call(function_id, payload).catch((error) => {
    throw isTimeout(error) ? error : failed(error);
  });
  if (said !== false) return undefined;
  const error = { code: "CONDITION_NOT_MET", message: "Request condition not met" };
  return jsonReply(422, { error, skipped: true });
}

/** A failed step is 500, but for a call that the engine had no room for. */
function failed(error: unknown): StepError {
  if (!(error instanceof EngineError)) {
    return new StepError("invocation_error", String(error), 500, error);
  }
  const status = error.code === "overloaded" ? 429 : 500;
  return new StepError(error.code, plainMessage(error), status, error);
}
