/**
 * What becomes of each message from the engine.
 *
 * A frame that cannot be read never ends the line: if its envelope can be, the call that it belongs
 * to ends with `bad_message`, so that nobody waits for nothing.
 *
 * @module
 */
import { decodeEngineMessage, encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody } from "./wire/errors.ts";
import { encodeFailure, type Handlers } from "./handlers.ts";
import type { OutboundCalls } from "./calls.ts";
import { attempt } from "./platform.ts";
import type {
  EngineMessage,
  RegistrationRejected,
  TriggerRegistrationResult,
  WorkerRegistered,
} from "./wire/protocol.ts";
import type { Line } from "./connection.ts";
import type { TriggerTypes } from "./trigger_types.ts";

/** Who takes which messages. */
export interface InboundSetup {
  readonly calls: OutboundCalls;
  readonly handlers: Handlers;
  readonly triggerTypes: TriggerTypes;
  /** The engine said who this worker is on this line. */
  registered(message: WorkerRegistered): void;
  /** The engine does not want this worker at all. */
  rejected(error: EngineError): void;
  /** Hears of what no call hears of. */
  report(error: EngineError): void;
}

/** The one refusal after which a worker does not come back. */
const FATAL_REJECTION = "WORKER_NAMESPACE_CONFLICT";

/** The start that the engine writes: kind and ids, then the rest. */
const CANONICAL_START = new RegExp(
  String.raw`^\{"type":"(invokefunction|invocationresult)","invocation_id":"([^"\\]+)"` +
    String.raw`(?:,"function_id":"([^"\\]*)")?`,
);

/** Handles one message that came on `line`; never throws. */
export function receive(text: string, line: Line, setup: InboundSetup): void {
  if (setup.calls.settleFrame(text)) return;
  let message: EngineMessage;
  try {
    message = decodeEngineMessage(text);
  } catch (thrown) {
    setup.report(endUnreadable(text, thrown as EngineError, line, setup));
    return;
  }
  dispatch(message, line, setup);
}

function dispatch(message: EngineMessage, line: Line, setup: InboundSetup): void {
  switch (message.type) {
    case "invokefunction":
      void setup.handlers.run(message, line);
      return;
    case "invocationresult":
      return setup.calls.settle(message);
    case "invocationprogress":
      return setup.calls.progress(message);
    case "cancelinvocation":
      return setup.handlers.cancel(message);
    case "registertrigger":
      void setup.triggerTypes.register(message, line);
      return;
    case "unregistertrigger":
      return setup.triggerTypes.unregister(message);
    case "workerregistered":
      return setup.registered(message);
    case "triggerregistrationresult":
      return reportRefusedTrigger(message, setup);
    case "registrationrejected":
      return rejectRegistration(message, setup);
    case "error":
      return setup.report(new EngineError(message.error.code, message.error.message));
    case "ping":
      return line.send(encodeMessage({ type: "pong" }));
    case "pong":
      return;
  }
}

/** Ends the call that an unreadable frame belongs to, if that much can be read. */
function endUnreadable(
  text: string,
  error: EngineError,
  line: Line,
  { calls }: InboundSetup,
): EngineError {
  const { type, invocation_id, function_id } = readEnvelope(text);
  const body = errorBody("bad_message", error.message);
  if (type === "invocationresult" && invocation_id) calls.fail(invocation_id, body);
  if (type === "invokefunction" && invocation_id) {
    line.send(encodeFailure({ type, invocation_id, function_id: function_id ?? "" }, body));
  }
  return new EngineError("bad_message", `A frame of the engine cannot be read: ${error.message}`);
}

/** Kind and ids of a frame that does not fit: by its start, or if it is JSON by its fields. */
function readEnvelope(
  text: string,
): {
  type?: string | undefined;
  invocation_id?: string | undefined;
  function_id?: string | undefined;
} {
  const [, type, invocation_id, function_id] = CANONICAL_START.exec(text) ?? [];
  if (type) return { type, invocation_id, function_id };
  const parsed = attempt(() => JSON.parse(text));
  const own = (name: string): string | undefined => {
    return typeof parsed?.[name] === "string" ? parsed[name] : undefined;
  };
  return {
    type: own("type"),
    invocation_id: own("invocation_id"),
    function_id: own("function_id"),
  };
}

function reportRefusedTrigger(message: TriggerRegistrationResult, setup: InboundSetup): void {
  const { id, trigger_type, error } = message;
  if (!error) return;
  const text = `Trigger registration failed for "${id}" (${trigger_type}): ${error.message}`;
  setup.report(new EngineError(error.code, text));
}

function rejectRegistration(message: RegistrationRejected, setup: InboundSetup): void {
  const { code, namespace, function_id, worker_name } = message;
  const what = function_id ?? worker_name ?? "a registration";
  const reason = message.message ? `: ${message.message}` : "";
  const error = new EngineError(
    code,
    `The engine refused ${what} in namespace ${namespace} (${code})${reason}`,
  );
  if (code === FATAL_REJECTION) setup.rejected(error);
  else setup.report(error);
}
