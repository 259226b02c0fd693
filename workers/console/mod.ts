/**
 * `engine-console`: a web page that shows the system and lets people act on it.
 *
 * @module
 */
import { CONSOLE_PORT } from "../../sdk/typescript/wire/limits.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { keptSecret, operatorKeyOf, type Token } from "./access.ts";
import { randomHex } from "./engine_client.ts";

/** Serves the console from inside the engine. */
export const consoleWorker: BuiltinWorker<ConsoleConfig> = {
  name: "engine-console",
  summary: "A web page that shows the system and acts on it",
  parse: parseConsoleConfig,
  operator: true,
  async start(worker, { host: address, port, token }, host) {
    const typed = typedFor(token, host);
    // With the first console: page and server take 10 ms of start and a megabyte.
    const { consolePage } = await import("./page_file.ts");
    const { runConsole } = await import("./run_console.ts");
    const running = await runConsole(worker, host, {
      host: address,
      port,
      ...typed && { typed },
      page: consolePage,
      version: host.supervision.info().version,
      secret: await keptSecret(host.store),
      engineUrl: () => engineUrl(host),
      operatorKey: () => operatorKeyOf(host.supervision.info().control_key),
    });
    host.serves({ name: "console", url: running.url });
    return running;
  },
};

/**
 * What a page without the key asks for. Where workers need a token a page must not do without one
 * what any worker may: if the console has none of its own, it is one that nobody knows.
 */
function typedFor(
  token: string,
  { configuration }: Pick<EngineHost, "configuration">,
): Token | undefined {
  if (token !== "") return { text: token, rights: "operator" };
  const needsToken = configuration().some(({ key, value }) => {
    return key === "engine.auth_token" && value !== null && value !== "";
  });
  return needsToken ? { text: randomHex(32), rights: "guest" } : undefined;
}

function engineUrl({ supervision }: EngineHost): string {
  const workers = supervision.info().endpoints.find(({ name }) => name === "workers");
  return workers?.url ?? "ws://127.0.0.1"; // While the engine starts there is no listener yet.
}

const Shape = v.pipe(
  v.strictObject({
    host: v.optional(v.text(1), "127.0.0.1"),
    port: v.optional(v.int(0, 65_535), CONSOLE_PORT),
    token: v.optional(v.string(), ""),
  }),
  v.forward(
    v.partialCheck(
      [["host"]],
      isProtected,
      "other machines can reach this address; set token, which a page then asks for",
    ),
    ["host"],
  ),
);

/** Configuration of `engine-console`, with all defaults in place. An empty token is none. */
export type ConsoleConfig = v.InferOutput<typeof Shape>;

/** Checks the `config` of the entry in config.yaml. @throws {SchemaError} With every problem. */
export function parseConsoleConfig(raw: unknown): ConsoleConfig {
  return fitConfig(Shape, raw);
}

/** Whether an address is out of reach, or a page asks for a token there. */
function isProtected({ host, token }: { host?: unknown; token?: unknown }): boolean {
  return typeof host !== "string" || isLoopback(host) ||
    (typeof token === "string" && token !== "");
}
