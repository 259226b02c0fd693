/**
 * Decodes messages from text, and encodes them.
 *
 * Checks the fields of a message, never the payload. The table {@linkcode FIELDS} lists the fields
 * of each message in writing order: `data` and `result` come last, so that a router need not read
 * them. On the wire, an optional field may also be `null`, which means absent; unknown fields are
 * dropped.
 *
 * @module
 */
import { EngineError, normaliseError } from "./errors.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "./limits.ts";
import type { EngineMessage, EnqueueOptions, Json, JsonObject, WorkerMessage } from "./protocol.ts";

/** The kinds of values of a field. */
type Kind =
  | "action"
  | "error"
  | "id"
  | "json"
  | "namespace"
  | "object"
  | "string"
  | "strings"
  | "timeout";

/** Fields in writing order. A kind with `?` is optional; in `json!`, `null` is a value. */
type FieldKinds = Readonly<Record<string, Kind | `${Kind}?` | "json!">>;

const NAMED = { trigger_type: "id", function_id: "id" } as const;

/** The fields of all messages. */
const FIELDS = {
  registerfunction: {
    id: "id",
    namespace: "namespace?",
    description: "string?",
    request_format: "json?",
    response_format: "json?",
    metadata: "json?",
    invocation: "object?",
  },
  unregisterfunction: { id: "id", namespace: "namespace?" },
  registertriggertype: {
    id: "id",
    description: "string",
    namespace: "namespace?",
    trigger_request_format: "json?",
    call_request_format: "json?",
  },
  unregistertriggertype: { id: "id", namespace: "namespace?" },
  registertrigger: {
    id: "id",
    ...NAMED,
    namespace: "namespace?",
    trigger_namespace: "namespace?",
    metadata: "json?",
    config: "json?",
  },
  triggerregistrationresult: { id: "id", ...NAMED, error: "error?" },
  unregistertrigger: { id: "id", trigger_type: "id?" },
  invokefunction: {
    invocation_id: "id?",
    function_id: "id",
    namespace: "namespace?",
    action: "action?",
    timeout_ms: "timeout?",
    metadata: "json?",
    traceparent: "string?",
    baggage: "string?",
    caller: "string?",
    data: "json?",
  },
  invocationresult: {
    invocation_id: "id",
    function_id: "id",
    traceparent: "string?",
    baggage: "string?",
    error: "error?",
    result: "json?",
  },
  invocationprogress: { invocation_id: "id", data: "json!" },
  cancelinvocation: { invocation_id: "id", reason: "string?" },
  reattach: { previous_worker_id: "string", reattach_token: "string" },
  workerregistered: { worker_id: "string", reattach_token: "string", capabilities: "strings" },
  registrationrejected: {
    code: "string",
    namespace: "string",
    function_id: "string?",
    worker_name: "string?",
    owner_worker_id: "string?",
    message: "string?",
  },
  error: { error: "error" },
  ping: {},
  pong: {},
  registerservice: { id: "id" },
} as const satisfies Record<(WorkerMessage | EngineMessage)["type"], FieldKinds>;

const FROM_ENGINE: ReadonlySet<string> = new Set<EngineMessage["type"]>([
  "cancelinvocation",
  "error",
  "invocationprogress",
  "invocationresult",
  "invokefunction",
  "ping",
  "pong",
  "registertrigger",
  "registrationrejected",
  "triggerregistrationresult",
  "unregistertrigger",
  "workerregistered",
]);

const FROM_WORKER: ReadonlySet<string> = new Set<WorkerMessage["type"]>([
  "cancelinvocation",
  "invocationprogress",
  "invocationresult",
  "invokefunction",
  "ping",
  "pong",
  "reattach",
  "registerfunction",
  "registerservice",
  "registertrigger",
  "registertriggertype",
  "triggerregistrationresult",
  "unregisterfunction",
  "unregistertrigger",
  "unregistertriggertype",
]);

/**
 * Decodes a message of a worker.
 *
 * @throws {EngineError} `bad_message` with the invalid field, such as
 * `invokefunction.function_id: expected a string, received 5`; `INVALID_NAMESPACE`.
 */
export function decodeWorkerMessage(text: string): WorkerMessage {
  return readWorkerMessage(parseMessage(text));
}

/**
 * Decodes a message of the engine.
 *
 * @throws {EngineError} As {@linkcode decodeWorkerMessage}.
 */
export function decodeEngineMessage(text: string): EngineMessage {
  return read(parseMessage(text), FROM_ENGINE) as EngineMessage;
}

/**
 * The first step of decoding: any JSON object, for callers that need fields of an invalid message.
 *
 * @throws {EngineError} `bad_message` when the text is not a JSON object.
 */
export function parseMessage(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw bad(`message: expected JSON: ${(thrown as Error).message}`);
  }
  if (!isObject(value)) throw unexpected("message", "an object", value);
  return value;
}

/**
 * The second step of decoding: checks the fields of a worker's message.
 *
 * @throws {EngineError} As {@linkcode decodeWorkerMessage}.
 */
export function readWorkerMessage(message: JsonObject): WorkerMessage {
  return read(message, FROM_WORKER) as WorkerMessage;
}

/**
 * Encodes a message: `type`, the ids, and `data` or `result` last. Omits `undefined` fields.
 *
 * @throws {EngineError} `serialization_error` when a value cannot be written as JSON.
 */
export function encodeMessage(message: WorkerMessage | EngineMessage): string {
  const fields = message as unknown as Record<string, unknown>;
  const ordered: Record<string, unknown> = { type: message.type };
  for (const name in FIELDS[message.type]) {
    if (fields[name] !== undefined) ordered[name] = fields[name];
  }
  try {
    return JSON.stringify(ordered);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    throw new EngineError("serialization_error", `${message.type}: not JSON: ${reason}`, { cause });
  }
}

function read(message: JsonObject, known: ReadonlySet<string>): { type: string } {
  const { type } = message;
  if (typeof type !== "string") throw unexpected("type", "a string", type);
  if (!known.has(type)) throw unexpected("type", "a known type of message", type);
  if (isPlain(message, type)) return message as { type: string };
  const kinds: FieldKinds = FIELDS[type as keyof typeof FIELDS];
  const result: Record<string, unknown> & { type: string } = { type };
  for (const name in kinds) {
    const kind = kinds[name]!;
    const value = Object.hasOwn(message, name) ? message[name] : undefined;
    if (kind === "json!") {
      if (value === undefined) throw unexpected(`${type}.${name}`, "any JSON", value);
      result[name] = value;
    } else if (value !== undefined && value !== null) {
      const plain = (kind.endsWith("?") ? kind.slice(0, -1) : kind) as Kind;
      result[name] = readField(plain, value, type, name);
    } else if (!kind.endsWith("?")) {
      throw unexpected(`${type}.${name}`, EXPECTED[kind as Kind], value);
    }
  }
  return result;
}

/**
 * Whether the parsed object can be used as it is: it has no unknown fields, no `null` that means
 * absent, and no field that has to be converted. This holds for nearly all calls, results and
 * registrations, and copying their fields took as long as parsing them.
 */
function isPlain(message: JsonObject, type: string): boolean {
  const fields = PLAIN.get(type);
  if (!fields) return false;
  let missing = fields.required;
  for (const name in message) {
    const kind = fields.kinds.get(name);
    const value = message[name]!;
    switch (kind) {
      case "id":
        missing--;
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "id?":
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "string?":
        if (typeof value !== "string") return false;
        break;
      case "timeout?":
        if (!isTimeout(value)) return false;
        break;
      case "json?":
        if (value === null) return false;
        break;
      default:
        if (name !== "type") return false;
    }
  }
  return missing === 0;
}

/**
 * The messages that {@linkcode isPlain} checks, with the kinds of their fields. Those of
 * registrations are kept as they are, and a parsed object is the smallest one.
 */
const PLAIN = new Map(
  (
    ["invokefunction", "invocationresult", "registerfunction", "registertrigger"] as const
  ).map((type) => {
    const fields = Object.entries<string>(FIELDS[type]);
    const required = fields.filter(([, kind]) => !kind.endsWith("?")).length;
    return [type as string, { kinds: new Map(fields), required }] as const;
  }),
);

/** The name of each kind in the message of an error. */
const EXPECTED: Readonly<Record<Kind, string>> = {
  action: "an object",
  error: "an error object",
  id: "a string",
  json: "any JSON",
  namespace: "a namespace",
  object: "an object",
  string: "a string",
  strings: "an array of strings",
  timeout: `an integer from 1 to ${TIMEOUT_MS_MAX}`,
};

/** @returns The checked value of a field. */
function readField(kind: Kind, value: Json, type: string, name: string): unknown {
  switch (kind) {
    case "json":
      return value;
    case "error":
      return normaliseError(value);
    case "action":
      return readAction(value, `${type}.${name}`);
    case "namespace":
      if (typeof value === "string" && value !== "" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value === "string" && value !== "") {
        const most = `expected at most ${ID_CHARS_MAX} characters, received ${value.length}`;
        throw new EngineError("INVALID_NAMESPACE", `${type}.${name}: ${most}`);
      }
      throw new EngineError(
        "INVALID_NAMESPACE",
        `${type}.${name}: expected a string that is not empty, received ${quoted(value)}`,
      );
    case "id":
      if (typeof value === "string" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value !== "string") break;
      throw unexpected(`${type}.${name}`, `at most ${ID_CHARS_MAX} characters`, value.length);
    case "string":
      if (typeof value === "string") return value;
      break;
    case "object":
      if (isObject(value)) return value;
      break;
    case "strings":
      if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
      break;
    case "timeout":
      if (isTimeout(value)) return value;
  }
  throw unexpected(`${type}.${name}`, EXPECTED[kind], value);
}

function isTimeout(value: Json): boolean {
  return Number.isInteger(value) && value as number >= 1 && value as number <= TIMEOUT_MS_MAX;
}

function readAction(value: Json, path: string): unknown {
  if (!isObject(value)) throw unexpected(path, EXPECTED.action, value);
  const { type, queue } = value;
  if (type === "void") return { type };
  if (type !== "enqueue") throw unexpected(`${path}.type`, `"void" or "enqueue"`, type);
  if (typeof queue !== "string") throw unexpected(`${path}.queue`, "a string", queue);
  const action: JsonObject = { type, queue };
  for (const name of ENQUEUE_OPTIONS) {
    const option = value[name];
    if (option !== undefined && option !== null) action[name] = option;
  }
  return action;
}

/** Members of an enqueue action that the provider of queues checks. */
export const ENQUEUE_OPTIONS: readonly (keyof EnqueueOptions)[] = [
  "id",
  "delay_ms",
  "run_at_ms",
  "priority",
  "expires_ms",
  "timeout_ms",
  "keep_result_ms",
];

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function unexpected(path: string, expected: string, received: Json | undefined): EngineError {
  return bad(`${path}: expected ${expected}, received ${quoted(received)}`);
}

function bad(message: string): EngineError {
  return new EngineError("bad_message", message);
}

/** A value in the message of an error: long strings are cut, objects only named. */
function quoted(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isObject(value)) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, 60) : value);
  return typeof value === "string" && value.length > 60 ? `${text}…` : text;
}
