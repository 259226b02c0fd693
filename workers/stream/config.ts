/**
 * The configuration of `engine-stream`.
 *
 * @module
 */
import { TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";

/** Default port of subscribers. */
export const STREAM_PORT = 3112;
/** Default number of subscribers that may be connected at once. */
const CONNECTIONS_MAX = 10_000;
/** Default time of a function that decides about a subscriber. */
const CALL_TIMEOUT_MS = 10_000;

const Shape = v.pipe(
  v.strictObject({
    host: v.optional(v.text(1), "127.0.0.1"),
    port: v.optional(v.int(0, 65_535), STREAM_PORT),
    auth_function: v.opt(v.text(1)),
    call_timeout_ms: v.optional(v.int(1, TIMEOUT_MS_MAX), CALL_TIMEOUT_MS),
    connections_max: v.optional(v.int(0), CONNECTIONS_MAX),
    allowed_origins: v.optional(v.array(v.text(1)), []),
    allowed_hosts: v.optional(v.array(v.text(1)), []),
    insecure: v.optional(v.boolean(), false),
  }),
  v.forward(
    v.partialCheck(
      [["host"], ["auth_function"], ["insecure"]],
      ({ host, auth_function, insecure }) =>
        insecure || auth_function !== undefined || isLoopback(host),
      "other machines can reach this address; set auth_function, or insecure: true if meant",
    ),
    ["host"],
  ),
);

/** Configuration of `engine-stream`, with all defaults in place. */
export type StreamConfig = v.InferOutput<typeof Shape>;

/** Checks the `config` of the entry in config.yaml. @throws {SchemaError} With every problem. */
export function parseStreamConfig(raw: unknown): StreamConfig {
  return fitConfig(Shape, raw);
}

/** JSON Schema of that `config`. */
export function streamConfigSchema(): JsonObject {
  return v.jsonSchema(Shape);
}
