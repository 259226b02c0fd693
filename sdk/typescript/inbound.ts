/**
 * Dispatches the messages of the engine.
 *
 * An invalid frame does not close the connection. If its envelope can be read, its call fails with
 * `bad_message`, so that the caller does not wait for the timeout.
 *
 * @module
 */
import { type Channels, mayHoldRefs } from "./channels/channels.ts";
import type { OutboundCalls } from "./calls.ts";
import type { Connection } from "./connection.ts";
import { encodeFailure, type Handlers } from "./handlers.ts";
import { attempt } from "./platform.ts";
import type { ProvidedTriggers } from "./provided_triggers.ts";
import { decodeEngineMessage, encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody } from "./wire/errors.ts";
import { isTooDeep, JSON_DEPTH_MAX } from "./wire/json_depth.ts";
import type {
  EngineMessage,
  RegistrationRejected,
  TriggerRegistrationResult,
  WorkerRegistered,
} from "./wire/protocol.ts";

/** The receivers of messages. */
export interface InboundSetup {
  readonly calls: OutboundCalls;
  readonly handlers: Handlers;
  readonly triggers: ProvidedTriggers;
  /** Ends of channels; absent for a worker that cannot connect to them. */
  readonly channels?: Channels | undefined;
  /** The engine assigned an id to this connection. */
  registered(message: WorkerRegistered): void;
  /** The engine rejected this worker. */
  rejected(error: EngineError): void;
  /** Receives errors that fail no call. */
  report(error: EngineError): void;
}

/** The rejection after which a worker does not reconnect. */
const FATAL_REJECTION = "WORKER_NAMESPACE_CONFLICT";

/** The code of an `error` frame after which the engine closes the connection. */
const REFUSED = "AUTH_ERROR";

/** The start of a frame in canonical order: type and ids. */
const CANONICAL_START = new RegExp(
  String.raw`^\{"type":"(invokefunction|invocationresult)","invocation_id":"([^"\\]+)"` +
    String.raw`(?:,"function_id":"([^"\\]*)")?`,
);

/** Deepest nesting of a frame: a payload or a result of the depth that is allowed. */
const FRAME_DEPTH_MAX = JSON_DEPTH_MAX + 1;

/** Handles a message of `connection`. Never throws. */
export function receive(text: string, connection: Connection, setup: InboundSetup): void {
  if (isTooDeep(text, FRAME_DEPTH_MAX)) {
    const message = `it is nested more deeply than ${JSON_DEPTH_MAX} levels`;
    const error = new EngineError("bad_message", message);
    setup.report(failUnreadable(text, error, connection, setup));
    return;
  }
  const { channels } = setup;
  const hasRefs = channels !== undefined && mayHoldRefs(text);
  if (!hasRefs && setup.calls.settleFrame(text)) return;
  let message: EngineMessage;
  try {
    message = decodeEngineMessage(text);
    if (hasRefs) reviveRefs(message, channels);
  } catch (thrown) {
    setup.report(failUnreadable(text, thrown as EngineError, connection, setup));
    return;
  }
  // References are in the engine's own workers as they came, and so is the frame.
  dispatch(message, connection, setup, channels ? undefined : text);
}

/** Turns the references in what user code gets into ends of channels. */
function reviveRefs(message: EngineMessage, channels: Channels): void {
  if (message.type === "invocationresult") {
    if (message.result !== undefined) message.result = channels.revive(message.result);
    return;
  }
  if (message.type !== "invokefunction" && message.type !== "invocationprogress") return;
  if (message.data !== undefined) message.data = channels.revive(message.data);
}

function dispatch(
  message: EngineMessage,
  connection: Connection,
  setup: InboundSetup,
  frame: string | undefined,
): void {
  switch (message.type) {
    case "invokefunction":
      void setup.handlers.run(message, connection, frame);
      return;
    case "invocationresult":
      return setup.calls.settle(message);
    case "invocationprogress":
      return setup.calls.progress(message);
    case "cancelinvocation":
      return setup.handlers.cancel(message);
    case "registertrigger":
      void setup.triggers.register(message, connection);
      return;
    case "unregistertrigger":
      return setup.triggers.unregister(message);
    case "workerregistered":
      connection.judged?.(true);
      return setup.registered(message);
    case "triggerregistrationresult":
      return reportRejectedTrigger(message, setup);
    case "registrationrejected":
      return rejectRegistration(message, setup);
    case "error":
      if (message.error.code === REFUSED) connection.judged?.(false);
      return setup.report(new EngineError(message.error.code, message.error.message));
    case "ping":
      return connection.send(encodeMessage({ type: "pong" }));
    case "pong":
      return;
  }
}

/** Fails the call of an invalid frame, if its id can be read. */
function failUnreadable(
  text: string,
  error: EngineError,
  connection: Connection,
  { calls }: InboundSetup,
): EngineError {
  const { type, invocation_id, function_id } = readEnvelope(text);
  const body = errorBody("bad_message", error.message);
  if (type === "invocationresult" && invocation_id) calls.fail(invocation_id, body);
  if (type === "invokefunction" && invocation_id) {
    connection.send(encodeFailure({ type, invocation_id, function_id: function_id ?? "" }, body));
  }
  return new EngineError("bad_message", `A frame of the engine cannot be read: ${error.message}`);
}

/** Type and ids of an invalid frame: from its start, or from its fields if it is JSON. */
function readEnvelope(
  text: string,
): {
  type?: string | undefined;
  invocation_id?: string | undefined;
  function_id?: string | undefined;
} {
  const [, type, invocation_id, function_id] = CANONICAL_START.exec(text) ?? [];
  if (type) return { type, invocation_id, function_id };
  // JSON that is too deep takes long to parse.
  const parsed = isTooDeep(text, FRAME_DEPTH_MAX) ? undefined : attempt(() => JSON.parse(text));
  const own = (name: string): string | undefined => {
    return typeof parsed?.[name] === "string" ? parsed[name] : undefined;
  };
  return {
    type: own("type"),
    invocation_id: own("invocation_id"),
    function_id: own("function_id"),
  };
}

function reportRejectedTrigger(message: TriggerRegistrationResult, setup: InboundSetup): void {
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
