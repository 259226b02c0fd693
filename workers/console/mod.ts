/**
 * `engine-console`: a web page that shows the system and lets people act on it.
 *
 * @module
 */
import type { BuiltinWorker, EngineHost } from "../define.ts";
import { type ConsoleConfig, parseConsoleConfig } from "./config.ts";
import { operatorKeyOf } from "./operator_key.ts";
import { consolePage } from "./page_file.ts";
import { runConsole } from "./run_console.ts";
import { keptSecret } from "./secrets.ts";

/** Serves the console from inside the engine. */
export const consoleWorker: BuiltinWorker<ConsoleConfig> = {
  name: "engine-console",
  summary: "A web page that shows the system and acts on it",
  parse: parseConsoleConfig,
  operator: true,
  async start(worker, { host: address, port, token }, host) {
    const running = await runConsole(worker, host, {
      host: address,
      port,
      ...token !== "" && { typed: { text: token, rights: "operator" } },
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

function engineUrl({ supervision }: EngineHost): string {
  const workers = supervision.info().endpoints.find(({ name }) => name === "workers");
  return workers?.url ?? "ws://127.0.0.1"; // While the engine starts there is no listener yet.
}
