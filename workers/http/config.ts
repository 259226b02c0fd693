/**
 * What `engine-http` and its triggers may be told, checked; every problem is named at once.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { MESSAGE_BYTES_MAX, TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import {
  HTTP_BODY_BYTES_MAX,
  HTTP_CONCURRENCY_MAX,
  HTTP_PORT,
  HTTP_TIMEOUT_MS,
} from "../limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { problemsOf } from "../kit/payload.ts";

/** Methods that routes may have. */
export const ROUTE_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

const GlobalMiddleware = shape.strictObject({
  function_id: shape.string().min(1),
  /** The lower runs first; equal ones in the order of the list. */
  priority: shape.number().default(0),
});

const Shape = shape.strictObject({
  host: shape.string().min(1).default("127.0.0.1"),
  port: shape.int().min(0).max(65_535).default(HTTP_PORT),
  timeout_ms: shape.int().min(1).max(TIMEOUT_MS_MAX).default(HTTP_TIMEOUT_MS),
  body_bytes_max: shape.int().min(0).max(MESSAGE_BYTES_MAX).default(HTTP_BODY_BYTES_MAX),
  concurrency_max: shape.int().min(1).default(HTTP_CONCURRENCY_MAX),
  cors: shape.strictObject({
    origins: shape.array(shape.string().min(1)).default(["*"]),
    methods: shape.array(shape.string().min(1).toUpperCase()).default([
      ...ROUTE_METHODS,
      "OPTIONS",
    ]),
  }).prefault({}),
  middleware: shape.array(GlobalMiddleware).default([]),
  auth_token: shape.string().default(""),
  insecure: shape.boolean().default(false),
}).refine(isProtected, {
  path: ["host"],
  error: "other machines can reach this address; set auth_token, or insecure: true if meant",
  always: true, // Also beside other problems, so that all are told at once.
});

/** Configuration of `engine-http`, with all defaults in place. */
export type HttpConfig = shape.Output<typeof Shape>;

/** Checks the `config` of the entry in config.yaml. @throws {ShapeError} With every problem. */
export function parseHttpConfig(raw: unknown): HttpConfig {
  return Shape.parse(raw ?? {});
}

/** `null` means left out, as everywhere on the wire. */
const absent = <Of>(of: shape.Shape<Of>) => of.nullish().transform((x) => x ?? undefined);

const TriggerShape = shape.object({
  api_path: shape.string().min(1),
  http_method: absent(
    shape.string().transform((method) => method.trim().toUpperCase()).pipe(
      shape.oneOf(ROUTE_METHODS, {
        error: ({ input }) => `expected one of ${ROUTE_METHODS.join(", ")}, received ${input}`,
      }),
    ),
  ),
  condition_function_id: absent(shape.string().min(1)),
  middleware_function_ids: absent(shape.array(shape.string().min(1))),
  lenient_body: absent(shape.boolean()),
});

/** What a trigger of type `http` is told. */
export interface HttpTriggerConfig {
  /** As written; with or without a leading slash. */
  readonly api_path: string;
  /** One of {@linkcode ROUTE_METHODS}. */
  readonly http_method: string;
  readonly condition_function_id: string | undefined;
  readonly middleware_function_ids: readonly string[];
  /** A body that is not JSON becomes `null` instead of an answer 400. */
  readonly lenient_body: boolean;
}

/**
 * Checks the `config` of a trigger; keys it does not know are ignored.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function parseTriggerConfig(raw: Json): HttpTriggerConfig {
  const whole = { config: raw };
  const read = shape.object({ config: TriggerShape }).safeParse(whole);
  if (!read.success) {
    const problems = problemsOf(read.error, whole);
    throw new EngineError("trigger_registration_failed", problems.join("; "), {
      details: { problems },
    });
  }
  const { api_path, http_method, condition_function_id } = read.data.config;
  const { middleware_function_ids, lenient_body } = read.data.config;
  return {
    api_path,
    http_method: http_method ?? "GET",
    condition_function_id,
    middleware_function_ids: middleware_function_ids ?? [],
    lenient_body: lenient_body ?? false,
  };
}

/** Keys of a trigger's config that mean nothing here, such as a misspelt one. */
export function unknownKeys(raw: Json): string[] {
  if (raw === null || typeof raw !== "object") return [];
  return Object.keys(raw).filter((key) => !Object.hasOwn(TriggerShape.members, key));
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
      description: "Called first with the same payload; false answers 422",
    },
    middleware_function_ids: { type: "array", items: { type: "string" } },
    lenient_body: {
      type: "boolean",
      default: false,
      description: "A body that is not JSON is null instead of answer 400",
    },
  },
};

/** JSON Schema of what handlers get, for listings. */
export const HTTP_CALL_SCHEMA: Json = {
  type: "object",
  properties: {
    path: { type: "string", description: "The api_path of the trigger, as written" },
    method: { type: "string" },
    path_params: { type: "object", additionalProperties: { type: "string" } },
    query_params: { type: "object", additionalProperties: { type: "string" } },
    headers: { type: "object", additionalProperties: { type: "string" } },
    body: { description: "The parsed JSON body, else null" },
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

/** Whether a listener is out of reach, or has been given a token, or a blessing. */
function isProtected(
  config: { host?: unknown; auth_token?: unknown; insecure?: unknown },
): boolean {
  const { host, auth_token, insecure } = config;
  if (typeof host !== "string" || isLoopback(host)) return true;
  return (typeof auth_token === "string" && auth_token !== "") || insecure === true;
}
