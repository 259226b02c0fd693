/**
 * What `engine-console` may be told, checked; every problem is named at once.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import { CONSOLE_PORT } from "../../sdk/typescript/wire/limits.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";

const Shape = shape.strictObject({
  host: shape.string().min(1).default("127.0.0.1"),
  port: shape.int().min(0).max(65_535).default(CONSOLE_PORT),
  token: shape.string().default(""),
}).refine(isProtected, {
  path: ["host"],
  error: "other machines can reach this address; set token, which a page then asks for",
  always: true, // Also beside other problems, so that all are told at once.
});

/** Configuration of `engine-console`, with all defaults in place. An empty token is none. */
export type ConsoleConfig = shape.Output<typeof Shape>;

/** Checks the `config` of the entry in config.yaml. @throws {ShapeError} With every problem. */
export function parseConsoleConfig(raw: unknown): ConsoleConfig {
  return Shape.parse(raw ?? {});
}

/** Whether an address is out of reach, or a page asks for a token there. */
function isProtected({ host, token }: { host?: unknown; token?: unknown }): boolean {
  return typeof host !== "string" || isLoopback(host) ||
    (typeof token === "string" && token !== "");
}
