/**
 * Assembles a console over one worker: engine client, feeds, HTTP proxy and port.
 *
 * It is the same in the engine's process (`engine-console`) and in that of `engine console`; the
 * caller says where the engine is and which key makes a page the operator's.
 *
 * @module
 */
import type { Endpoint } from "../../engine/ports/supervision.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import { beginTrace, type ConsoleWorker, EngineClient, memberOf } from "./engine_client.ts";
import { HttpProxy } from "./http_proxy.ts";
import { QueryFeeds } from "./query_feeds.ts";
import { consolePage, ConsoleServer, type ConsoleServerOptions } from "./server.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";

/** How a console is set up. */
export interface ConsoleOptions
  extends Omit<ConsoleServerOptions, "page" | "services" | "log" | "memory"> {
  readonly version: string;
  /** Of functions that only this engine offers; absent: it is alone. */
  readonly namespace?: string;
  /** Where the engine is now, without secrets, such as `ws://127.0.0.1:49134`. */
  engineUrl(): string;
}

/** A running console. */
export interface RunningConsole extends AsyncDisposable {
  /** Such as `http://127.0.0.1:3113`. */
  readonly url: string;
}

/**
 * Starts a console. Disposing of it does not shut the worker down.
 *
 * @throws {EngineError} `address_in_use`, `address_not_available`, `INVALID_ARGUMENTS`.
 */
export async function runConsole(
  worker: ConsoleWorker,
  { clock, log, memory }: Pick<EngineHost, "clock" | "log" | "memory">,
  options: ConsoleOptions,
): Promise<RunningConsole> {
  const { version, engineUrl, namespace } = options;
  await using stack = new AsyncDisposableStack();
  const engine = new EngineClient(worker, clock);
  stack.defer(() => engine.stop());
  const triggers = new TriggerFeeds(engine, worker, namespace);
  stack.defer(() => triggers.stop());
  const queries = new QueryFeeds(engine, triggers, clock, memory);
  stack.defer(() => queries.stop());
  const http = stack.use(new HttpProxy(clock, () => findHttp(engine, engineUrl())));
  const services = { clock, engine, triggers, queries, http, version, engineUrl };
  const server = stack.use(
    await ConsoleServer.open({
      ...options,
      log,
      memory,
      page: consolePage,
      services,
    }),
  );
  const running = stack.move();
  return { url: server.url, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** The address of `engine-http` as seen from the console; `undefined`: not reachable. */
async function findHttp(engine: EngineClient, engineUrl: string): Promise<string | undefined> {
  const { traceparent } = beginTrace(false);
  const info = await engine.call({ function_id: "engine::supervisor::info", traceparent });
  const endpoints = (memberOf(info, "endpoints") ?? []) as Json as unknown as Endpoint[];
  const served = endpoints.find(({ name }) => name === "http")?.url;
  return served === undefined ? undefined : reachableUrl(served, engineUrl);
}

/**
 * The URL at which the console reaches an address that the engine serves. A wildcard address
 * (`0.0.0.0`, `::`) becomes the engine's host; a loopback address of another machine is
 * unreachable (`undefined`).
 */
export function reachableUrl(served: string, engineUrl: string): string | undefined {
  const url = new URL(served);
  const { hostname } = new URL(engineUrl);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = hostname;
  return isLoopback(url.hostname) && !isLoopback(hostname) ? undefined : url.origin;
}
