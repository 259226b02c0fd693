/**
 * `engine-console`: a web page that shows the system and lets people act on it.
 *
 * {@linkcode runConsole} assembles the server: `server.ts` is the port, `access.ts` who may do
 * what, `browser_connection.ts` one open page, `trigger_feeds.ts` and `query_feeds.ts` what pages
 * watch, `http_proxy.ts` the requests that pages make. `wire.ts` is what page and server exchange;
 * `page/` is the page and `bundle.ts` builds it.
 *
 * @module
 */
import { ENGINE_NAMESPACE } from "../../engine/ports/directory.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { operatorKeyOf, randomSecret, storedSecret, type Token } from "./access.ts";

/** Default port of the console. */
export const CONSOLE_PORT = 3113;

const Config = v.pipe(
  v.strictObject({
    host: v.optional(v.text(1), "127.0.0.1"),
    port: v.optional(v.int(0, 65_535), CONSOLE_PORT),
    token: v.optional(v.string(), ""),
    allowed_hosts: v.optional(v.array(v.text(1)), []),
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

/** Configuration of `engine-console` with all defaults. An empty `token` is none. */
type ConsoleConfig = v.InferOutput<typeof Config>;

/** Serves the console from inside the engine. */
export const consoleWorker: BuiltinWorker<ConsoleConfig> = {
  name: "engine-console",
  summary: "A web page that shows the system and acts on it",
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  operator: true,
  async start(worker, { host: address, port, token, allowed_hosts: allowedHosts }, host) {
    const accessToken = accessTokenFor(token, host);
    // Loaded with the first console: page and server take 10 ms of start and a megabyte.
    const { runConsole } = await import("./run_console.ts");
    const running = await runConsole(worker, host, {
      host: address,
      port,
      allowedHosts,
      socketsMax: host.socketBounds.console,
      ...accessToken && { accessToken },
      ...host.engines && { namespace: ENGINE_NAMESPACE + host.engines.life },
      version: host.supervision.info().version,
      secret: await storedSecret(host.store),
      engineUrl: () => engineUrl(host),
      operatorKey: () => operatorKeyOf(host.supervision.info().control_key),
    });
    host.serves({ name: "console", url: running.url });
    return running;
  },
};

/** Whether only this machine can reach the address, or a page asks for a token there. */
function isProtected({ host, token }: { host?: unknown; token?: unknown }): boolean {
  return typeof host !== "string" || isLoopback(host) ||
    (typeof token === "string" && token !== "");
}

/**
 * The token that a page without the operator's key asks for. If workers need a token, a page must
 * not do without one what a worker needs it for: a console that has no token of its own then gets
 * a random one, so that only operator pages work.
 */
function accessTokenFor(
  token: string,
  { configuration }: Pick<EngineHost, "configuration">,
): Token | undefined {
  if (token !== "") return { text: token, rights: "operator" };
  const workersNeedToken = configuration().some(({ key, value }) => {
    return key === "engine.auth_token" && value !== null && value !== "";
  });
  return workersNeedToken ? { text: randomSecret(), rights: "guest" } : undefined;
}

function engineUrl({ supervision }: EngineHost): string {
  const workers = supervision.info().endpoints.find(({ name }) => name === "workers");
  return workers?.url ?? "ws://127.0.0.1"; // While the engine starts there is no listener yet.
}
