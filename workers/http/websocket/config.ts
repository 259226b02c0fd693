/**
 * The configuration of triggers of type `websocket`, and the payloads of their functions.
 *
 * @module
 */
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import {
  fitRoute,
  type HttpTriggerConfig,
  ROUTE_ENTRIES,
  TRIGGER_CONFIG_SCHEMA as HTTP_SCHEMA,
} from "../config.ts";

/** Default and largest value of `max_message_bytes`. */
export const MESSAGE_BYTES_DEFAULT: number = 1024 * 1024;
/** See {@linkcode MESSAGE_BYTES_DEFAULT}. */
export const MESSAGE_BYTES_LARGEST: number = 16 * 1024 * 1024;
/** Parsing a larger message would keep all others waiting. */
export const JSON_MESSAGE_BYTES_MAX: number = 1024 * 1024;
/** Most subprotocols and origins of a route. */
const NAMES_MAX = 100;
const IDLE_MS_MIN = 1_000;
const IDLE_MS_MAX = 7 * 86_400_000;
/** A token of RFC 9110, so that none can end the header that it stands in. */
const SUBPROTOCOL = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;

const Shape = v.object({
  ...ROUTE_ENTRIES,
  connect_function_id: v.opt(v.text(1)),
  close_function_id: v.opt(v.text(1)),
  format: v.opt(v.picklist(["text", "json"])),
  subprotocols: v.opt(
    v.list(v.pipe(v.string(), v.regex(SUBPROTOCOL, "expected a token such as chat.v1")), NAMES_MAX),
  ),
  allowed_origins: v.opt(v.list(v.text(1, 300), NAMES_MAX)),
  max_message_bytes: v.opt(v.int(1, MESSAGE_BYTES_LARGEST)),
  idle_timeout_ms: v.opt(v.int(IDLE_MS_MIN, IDLE_MS_MAX)),
});

const Checked = v.pipe(
  Shape,
  v.forward(
    v.partialCheck(
      [["format"], ["max_message_bytes"]],
      ({ format, max_message_bytes = 0 }) =>
        format !== "json" || max_message_bytes <= JSON_MESSAGE_BYTES_MAX,
      `messages of format json have at most ${JSON_MESSAGE_BYTES_MAX} bytes`,
    ),
    ["max_message_bytes"],
  ),
);

/** Configuration of a trigger of type `websocket`. */
export interface SocketTriggerConfig {
  /** What it has in common with routes of HTTP requests; a method GET without a body. */
  readonly route: HttpTriggerConfig;
  /** Called before an upgrade is accepted. */
  readonly connect_function_id: string | undefined;
  /** Called after a connection has ended. */
  readonly close_function_id: string | undefined;
  /** Whether a text message is parsed. */
  readonly format: "text" | "json";
  /** The first that a client offers is selected. */
  readonly subprotocols: readonly string[];
  /** Beside those of CORS. */
  readonly allowed_origins: readonly string[];
  readonly max_message_bytes: number;
  /** Without a message in either direction for so long, a connection ends; `undefined`: never. */
  readonly idle_timeout_ms: number | undefined;
}

/** Keys that are known. */
export const SOCKET_TRIGGER_KEYS: object = Shape.entries;

/**
 * Checks the `config` of a trigger; keys it does not know are ignored.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function parseSocketTrigger(raw: Json): SocketTriggerConfig {
  const config = fitRoute(Checked, raw);
  const { api_path, condition_function_id, middleware_function_ids } = config;
  const { auth_token, rate_limit, timeout_ms } = config;
  return {
    route: {
      api_path,
      http_method: "GET",
      condition_function_id,
      middleware_function_ids: middleware_function_ids ?? [],
      enqueue: undefined,
      lenient_body: false,
      raw_body: false,
      auth_token,
      rate_limit,
      timeout_ms,
    },
    connect_function_id: config.connect_function_id,
    close_function_id: config.close_function_id,
    format: config.format ?? "text",
    subprotocols: config.subprotocols ?? [],
    allowed_origins: config.allowed_origins ?? [],
    max_message_bytes: config.max_message_bytes ?? MESSAGE_BYTES_DEFAULT,
    idle_timeout_ms: config.idle_timeout_ms,
  };
}

const { api_path, condition_function_id, middleware_function_ids, auth_token, rate_limit } =
  (HTTP_SCHEMA as { properties: Record<string, Json> }).properties as Record<string, Json>;

/** JSON Schema of a trigger's config, for listings. */
export const SOCKET_TRIGGER_SCHEMA: Json = {
  type: "object",
  required: ["api_path"],
  properties: {
    api_path: api_path!,
    connect_function_id: {
      type: "string",
      description: "Called before the upgrade: may refuse it, or return groups and context",
    },
    close_function_id: { type: "string", description: "Called once when a connection has ended" },
    format: {
      type: "string",
      enum: ["text", "json"],
      default: "text",
      description: "json: text messages are parsed, and one that is not JSON ends the connection",
    },
    subprotocols: { type: "array", items: { type: "string" } },
    allowed_origins: {
      type: "array",
      items: { type: "string" },
      description: "Origins of pages that may connect, besides those of CORS; * for all",
    },
    max_message_bytes: { type: "integer", minimum: 1, default: MESSAGE_BYTES_DEFAULT },
    idle_timeout_ms: { type: "integer", minimum: IDLE_MS_MIN },
    timeout_ms: { type: "integer", minimum: 1, description: "Timeout of each call of a function" },
    condition_function_id: condition_function_id!,
    middleware_function_ids: middleware_function_ids!,
    auth_token: auth_token!,
    rate_limit: rate_limit!,
  },
};

/** JSON Schema of the payload of the functions of a route, for listings. */
export const SOCKET_CALL_SCHEMA: Json = {
  type: "object",
  required: ["event", "connection_id", "path", "path_params"],
  properties: {
    event: { type: "string", enum: ["connect", "message", "close"] },
    connection_id: { type: "string" },
    path: { type: "string", description: "The api_path of the trigger, as written" },
    path_params: { type: "object", additionalProperties: { type: "string" } },
    groups: { type: "array", items: { type: "string" }, description: "Not for the event connect" },
    context: {
      type: "object",
      description: "The context that middleware and the connect function returned, if any",
    },
    subprotocol: { type: "string", description: "The subprotocol, if one was selected" },
    data: { description: "For message: the text, or its value with format json" },
    data_base64: { type: "string", description: "For message: the bytes of a binary message" },
    code: { type: "integer", description: "For close: the close code; 1006 for a lost connection" },
    reason: { type: "string", description: "For close: the close reason" },
    query_params: { type: "object", description: "For connect, as are the next two" },
    query_string: { type: "string" },
    headers: { type: "object", additionalProperties: { type: "string" } },
    trigger: {
      type: "object",
      properties: { type: { const: "websocket" }, path: { type: "string" } },
    },
  },
};
