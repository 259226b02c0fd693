/**
 * What a worker registers: functions, which are a handler or the URL of a service, triggers, and
 * trigger types.
 *
 * Checks what user code passed and makes the messages; nothing is sent here.
 *
 * @module
 */
import {
  checkCallable,
  checkId,
  checkNamespace,
  checkTimeout,
  invalid,
  show,
} from "./arguments.ts";
import type {
  FunctionOptions,
  Handler,
  HttpInvocation,
  Registration,
  SchemaOptions,
  TriggerHandlers,
  TriggerInput,
  TriggerTypeInput,
  WorkerCalls,
} from "./options.ts";
import { newId } from "./platform.ts";
import { checkedHandler, formatsOf } from "./typed/checked_function.ts";
import { EngineError } from "./wire/errors.ts";
import type {
  Json,
  JsonObject,
  RegisterFunction,
  RegisterTrigger,
  RegisterTriggerType,
} from "./wire/protocol.ts";

/** A function to register. */
export interface PlannedFunction {
  readonly message: RegisterFunction;
  /** Runs calls that arrive here. */
  readonly handler: Handler;
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for what is neither a handler nor a URL. */
export function planFunction(
  id: string,
  implementation: Handler<never> | HttpInvocation,
  options: SchemaOptions,
): PlannedFunction {
  checkId("A function's id", id, "math::add");
  const invocation = isInvocation(implementation) ? readInvocation(id, implementation) : undefined;
  if (!invocation) checkCallable(`The handler of ${id}`, implementation);
  const { description, metadata, namespace } = options;
  checkNamespace(namespace);
  const message: RegisterFunction = {
    type: "registerfunction",
    id,
    ...description !== undefined && { description },
    ...formatsOf(id, options),
    ...metadata !== undefined && { metadata: metadata as Json },
    ...invocation !== undefined && { invocation },
    ...namespace !== undefined && { namespace },
  };
  const handler = invocation
    ? notInvokable(id)
    : checkedHandler(id, implementation as unknown as Handler, options);
  return { message, handler };
}

/**
 * The `invocation` of a function with a URL, as it is sent. The engine checks the rest: only it
 * knows what it allows.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for what is no absolute address of the web.
 */
export function readInvocation(id: string, given: HttpInvocation): JsonObject {
  const { url, method, timeout_ms, headers, auth } = given;
  if (!isWebAddress(url)) {
    const example = "https://api.example.com/quote";
    throw invalid(`The url of ${id} must be an address such as ${example}, got ${show(url)}`);
  }
  if (timeout_ms !== undefined) checkTimeout(`timeout_ms of ${id}`, timeout_ms);
  return {
    url,
    ...method !== undefined && { method },
    ...timeout_ms !== undefined && { timeout_ms },
    ...headers !== undefined && { headers: { ...headers } },
    ...auth !== undefined && { auth: { ...auth } },
  };
}

/** Whether a function has a URL instead of a handler. */
export function isInvocation(implementation: unknown): implementation is HttpInvocation {
  return typeof implementation === "object" && implementation !== null && "url" in implementation;
}

function isWebAddress(url: unknown): boolean {
  return typeof url === "string" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** For a function with a URL, whose calls the engine never sends here. */
function notInvokable(id: string): Handler {
  return () => {
    const message = `${id} is served by its URL, not by its worker`;
    throw new EngineError("function_not_invokable", message);
  };
}

/** @throws {EngineError} `INVALID_ARGUMENTS` */
export function planTrigger(trigger: TriggerInput): RegisterTrigger {
  const { type, function_id, config, metadata, namespace, trigger_namespace } = trigger;
  checkId("A trigger's type", type, "http");
  checkId("A trigger's function_id", function_id, "math::add");
  checkNamespace(namespace);
  checkNamespace(trigger_namespace);
  return {
    type: "registertrigger",
    id: newId(),
    trigger_type: type,
    function_id,
    ...namespace !== undefined && { namespace },
    ...trigger_namespace !== undefined && { trigger_namespace },
    ...metadata !== undefined && { metadata: metadata as Json },
    ...config !== undefined && { config: config as Json },
  };
}

/** @throws {EngineError} `INVALID_ARGUMENTS` */
export function planTriggerType<Config>(
  type: TriggerTypeInput,
  handlers: TriggerHandlers<Config>,
): RegisterTriggerType {
  const { id, description, trigger_request_format, call_request_format, namespace } = type;
  checkId("A trigger type's id", id, "file-watch");
  checkNamespace(namespace);
  checkCallable(`registerTrigger of ${id}`, handlers?.registerTrigger);
  checkCallable(`unregisterTrigger of ${id}`, handlers?.unregisterTrigger);
  return {
    type: "registertriggertype",
    id,
    description: description ?? "",
    ...trigger_request_format !== undefined &&
      { trigger_request_format: trigger_request_format as Json },
    ...call_request_format !== undefined && { call_request_format: call_request_format as Json },
    ...namespace !== undefined && { namespace },
  };
}

/** A registered function with the trigger that declares its queue, if it has one. */
export function withQueue(
  worker: Pick<WorkerCalls, "registerTrigger">,
  called: Registration,
  { queue, namespace }: FunctionOptions,
): Registration {
  if (queue === undefined) return called;
  const { id } = called;
  const config = { ...queue } as JsonObject;
  const trigger = worker.registerTrigger({ type: "queue", function_id: id, config, namespace });
  return together(id, [trigger, called]);
}

/** Several registrations as one; they end in the order of the list. */
export function together(id: string, registrations: readonly Registration[]): Registration {
  return {
    id,
    unregister() {
      for (const each of registrations) each.unregister();
    },
  };
}
