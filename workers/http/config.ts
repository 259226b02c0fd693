/**
 * The configuration of `engine-http` and of its triggers; every problem is reported at once.
 *
 * @module
 */
import { fitConfig, problemsOf } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { MESSAGE_BYTES_MAX } from "../../engine/ports/connection.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { RateLimit } from "./guard.ts";

/** Default port. */
const HTTP_PORT = 3111;
/** Default time for a whole request, middleware included. */
const HTTP_TIMEOUT_MS = 30_000;
/** Default largest request body. */
const HTTP_BODY_BYTES_MAX = 16 * 1024 * 1024;
/** Default largest request body that is neither JSON nor wanted as bytes. */
const HTTP_BUFFERED_BODY_BYTES_MAX = 1024 * 1024;
/** Default largest request body that a function reads as a stream. */
const HTTP_STREAMED_BODY_BYTES_MAX = 1024 * 1024 * 1024;
/** Largest value of that: 1 TiB. */
const HTTP_STREAMED_BODY_BYTES_LARGEST = 2 ** 40;
/** Default number of requests that may run at once. */
const HTTP_CONCURRENCY_MAX = 1_024;

/** Where the listener serves the OpenAPI document, if it does. */
export const OPENAPI_PATH = "/openapi.json";

/** Empty: no token. `hono/bearer-auth` refuses any other. */
const BEARER_TOKEN = /^([A-Za-z0-9._~+/-]+=*)?$/;
/** Default number of WebSockets that may be open at once. */
const WEBSOCKETS_MAX = 10_000;

/** Methods that routes may have. */
export const ROUTE_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Most requests of a rate, and most seconds that it is counted in. */
const RATE_REQUESTS_MAX = 100_000;
const RATE_SECONDS_MAX = 86_400;
/** What tells clients apart. */
const RATE_KEY = /^(ip|header:[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})$/;

const GlobalMiddleware = v.strictObject({
  function_id: v.text(1),
  /** The lower runs first; equal ones in the order of the list. */
  priority: v.optional(v.number(), 0),
});

const Shape = v.pipe(
  v.strictObject({
    host: v.optional(v.text(1), "127.0.0.1"),
    port: v.optional(v.int(0, 65_535), HTTP_PORT),
    timeout_ms: v.optional(v.int(1, TIMEOUT_MS_MAX), HTTP_TIMEOUT_MS),
    body_bytes_max: v.optional(v.int(0, MESSAGE_BYTES_MAX), HTTP_BODY_BYTES_MAX),
    buffered_body_bytes_max: v.optional(
      v.int(0, MESSAGE_BYTES_MAX),
      HTTP_BUFFERED_BODY_BYTES_MAX,
    ),
    streamed_body_bytes_max: v.optional(
      v.int(0, HTTP_STREAMED_BODY_BYTES_LARGEST),
      HTTP_STREAMED_BODY_BYTES_MAX,
    ),
    concurrency_max: v.optional(v.int(1), HTTP_CONCURRENCY_MAX),
    cors: v.optional(
      v.strictObject({
        origins: v.optional(v.array(v.text(1)), []),
        methods: v.optional(v.array(v.pipe(v.text(1), v.toUpperCase())), [
          ...ROUTE_METHODS,
          "OPTIONS",
        ]),
      }),
      {},
    ),
    allowed_hosts: v.optional(v.array(v.text(1)), []),
    middleware: v.optional(v.array(GlobalMiddleware), []),
    websockets_max: v.optional(v.int(0), WEBSOCKETS_MAX),
    auth_token: v.optional(
      v.pipe(
        v.string(),
        v.regex(
          BEARER_TOKEN,
          "only letters, digits, -._~+/ and = at the end, as in a bearer token (RFC 6750)",
        ),
      ),
      "",
    ),
    insecure: v.optional(v.boolean(), false),
    openapi: v.optional(v.boolean(), false),
  }),
  v.forward(
    v.partialCheck(
      [["host"]],
      isProtected,
      "other machines can reach this address; set auth_token, or insecure: true if meant",
    ),
    ["host"],
  ),
);

/** Configuration of `engine-http`, with all defaults in place. */
export type HttpConfig = v.InferOutput<typeof Shape>;

/** Checks the `config` of the entry in config.yaml. @throws {SchemaError} With every problem. */
export function parseHttpConfig(raw: unknown): HttpConfig {
  return fitConfig(Shape, raw);
}

/** JSON Schema of that `config`. */
export function httpConfigSchema(): JsonObject {
  return v.jsonSchema(Shape);
}

/** What routes of both kinds may ask of a request before their function runs. */
export const ROUTE_ENTRIES = {
  api_path: v.text(1),
  condition_function_id: v.opt(v.text(1)),
  middleware_function_ids: v.opt(v.array(v.text(1))),
  auth_token: v.opt(
    v.pipe(
      v.text(1, 1_024),
      v.regex(BEARER_TOKEN, "only letters, digits, -._~+/ and = at the end, as in a bearer token"),
    ),
  ),
  rate_limit: v.opt(v.strictObject({
    requests: v.int(1, RATE_REQUESTS_MAX),
    per_s: v.int(1, RATE_SECONDS_MAX),
    key: v.optional(
      v.pipe(v.string(), v.regex(RATE_KEY, "expected ip or header:<name>")),
      "ip",
    ),
  })),
  timeout_ms: v.opt(v.int(1, TIMEOUT_MS_MAX)),
} as const;

const { api_path: ApiPath, ...COMMON_ENTRIES } = ROUTE_ENTRIES;

const TriggerShape = v.object({
  api_path: ApiPath,
  http_method: v.opt(
    v.pipe(
      v.string(),
      v.transform((method) => method.trim().toUpperCase()),
      v.picklist(
        ROUTE_METHODS,
        ({ input }) => `expected one of ${ROUTE_METHODS.join(", ")}, received ${input}`,
      ),
    ),
  ),
  ...COMMON_ENTRIES,
  enqueue: v.opt(v.text(1, 1_024)),
  lenient_body: v.opt(v.boolean()),
  raw_body: v.opt(v.boolean()),
});

/** Configuration of a trigger of type `http`. */
export interface HttpTriggerConfig {
  /** As written; with or without a leading slash. */
  readonly api_path: string;
  /** One of {@linkcode ROUTE_METHODS}. */
  readonly http_method: string;
  readonly condition_function_id: string | undefined;
  readonly middleware_function_ids: readonly string[];
  /** A body that cannot be read becomes `null` instead of a response of 400 or 415. */
  readonly lenient_body: boolean;
  /** The payload also has the bytes of the body, as base64. */
  readonly raw_body: boolean;
  /** What requests send as a bearer token; `undefined`: none is asked for. */
  readonly auth_token: string | undefined;
  readonly rate_limit: RateLimit | undefined;
  /** Queue that gets the call in place of the function; `undefined`: none. */
  readonly enqueue: string | undefined;
  /** Time for a request, middleware included; `undefined`: that of the listener. */
  readonly timeout_ms: number | undefined;
}

const NO_MIDDLEWARE: readonly string[] = [];

/**
 * Checks the `config` of a trigger; keys it does not know are ignored.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function parseTriggerConfig(raw: Json): HttpTriggerConfig {
  const config = fitRoute(TriggerShape, raw);
  const { api_path, http_method, condition_function_id } = config;
  const { middleware_function_ids, lenient_body, raw_body } = config;
  const { auth_token, rate_limit, timeout_ms, enqueue } = config;
  return {
    api_path,
    http_method: http_method ?? "GET",
    condition_function_id,
    middleware_function_ids: middleware_function_ids ?? NO_MIDDLEWARE,
    lenient_body: lenient_body ?? false,
    raw_body: raw_body ?? false,
    auth_token,
    rate_limit,
    timeout_ms,
    enqueue,
  };
}

/**
 * The config of a route as its schema says it is.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function fitRoute<Output>(schema: v.Schema<Output>, raw: Json): Output {
  const read = v.safeParse(schema, raw);
  if (read.success) return read.output;
  // Again, for problems that begin with "config".
  const whole = { config: raw };
  const { issues } = v.safeParse(v.object({ config: schema }), whole);
  const problems = problemsOf(issues!, whole);
  throw new EngineError("trigger_registration_failed", problems.join("; "), {
    details: { problems },
  });
}

/** Keys of a trigger's config that `engine-http` does not know, such as misspelt ones. */
export function unknownKeys(raw: Json, entries: object = TriggerShape.entries): string[] {
  if (raw === null || typeof raw !== "object") return [];
  return Object.keys(raw).filter((key) => !Object.hasOwn(entries, key));
}

/** JSON Schema of a trigger's config, for listings. */
export const TRIGGER_CONFIG_SCHEMA: Json = {
  type: "object",
  required: ["api_path"],
  properties: {
    api_path: {
      type: "string",
      description: "Path such as /orders/:id; a last segment * takes the rest",
    },
    http_method: { type: "string", enum: [...ROUTE_METHODS], default: "GET" },
    condition_function_id: {
      type: "string",
      description: "Called first with the same payload; if it returns false, the response is 422",
    },
    middleware_function_ids: { type: "array", items: { type: "string" } },
    enqueue: {
      type: "string",
      description: "Queue that gets the call; the response is 202 with the receipt",
    },
    lenient_body: {
      type: "boolean",
      default: false,
      description: "body is null if it cannot be read, instead of a response with 400 or 415",
    },
    raw_body: {
      type: "boolean",
      default: false,
      description:
        "Adds raw_body_base64 to the payload: the bytes of the body as the client sent them",
    },
    auth_token: {
      type: "string",
      description: "Requests must send it as Authorization: Bearer <token>, or get 401",
    },
    rate_limit: {
      type: "object",
      required: ["requests", "per_s"],
      additionalProperties: false,
      properties: {
        requests: { type: "integer", minimum: 1, maximum: RATE_REQUESTS_MAX },
        per_s: { type: "integer", minimum: 1, maximum: RATE_SECONDS_MAX },
        key: { type: "string", default: "ip", description: "ip or header:<name>" },
      },
      description: "Limits the requests of each client; beyond it the response is 429",
    },
    timeout_ms: { type: "integer", minimum: 1, description: "Default: that of engine-http" },
  },
};

/** JSON Schema of the payload of handlers, for listings. */
export const HTTP_CALL_SCHEMA: Json = {
  type: "object",
  properties: {
    path: { type: "string", description: "The api_path of the trigger, as written" },
    method: { type: "string" },
    path_params: { type: "object", additionalProperties: { type: "string" } },
    query_params: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "The last value of each key",
    },
    query_params_all: {
      type: "object",
      additionalProperties: { type: "array", items: { type: "string" } },
      description: "Every value of each key; only if a key repeats",
    },
    query_string: { type: "string", description: "The query as the client sent it, without ?" },
    headers: { type: "object", additionalProperties: { type: "string" } },
    context: { type: "object", description: "The context that middleware returned, if any" },
    body: {
      description: "By content type: the JSON value, the text, or an object of the form's fields",
    },
    raw_body_base64: {
      type: "string",
      description: "The body as the client sent it; only with raw_body",
    },
    trigger: {
      type: "object",
      properties: {
        type: { const: "http" },
        path: { type: "string" },
        method: { type: "string" },
      },
    },
  },
};

/** Whether only this machine reaches the listener, or a token protects it, or `insecure` is set. */
function isProtected(
  config: { host?: unknown; auth_token?: unknown; insecure?: unknown },
): boolean {
  const { host, auth_token, insecure } = config;
  if (typeof host !== "string" || isLoopback(host)) return true;
  return (typeof auth_token === "string" && auth_token !== "") || insecure === true;
}
