/**
 * `engine-console`: a web page that shows the system and lets people act on it.
 *
 * @module
 */
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { type ConsoleConfig, parseConsoleConfig } from "./config.ts";
import type { Token } from "./guard.ts";
import { operatorKeyOf } from "./operator_key.ts";
import { keptSecret } from "./secrets.ts";
import { randomHex } from "./trace_ids.ts";

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
