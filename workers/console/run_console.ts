/**
 * A whole console over one worker: its line, its feeds and its port.
 *
 * The same in the engine and in the command line's process; who starts it says where the engine is
 * and what proves that a page is its own user's.
 *
 * @module
 */
import type { Host } from "../kit/define.ts";
import type { Endpoint } from "../../engine/ports/supervision.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { beginTrace, type ConsoleWorker, EngineLink, memberOf } from "./engine_client.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Token } from "./access.ts";
import { HttpDoor } from "./http_proxy.ts";
import { QueryFeeds } from "./query_feeds.ts";
import { ConsoleServer } from "./server.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";

/** What a console is told. */
export interface ConsoleSetting {
  /** Address to listen on. Others than this machine's need `typed`. */
  readonly host: string;
  /** 0 is any free one. */
  readonly port: number;
  /** What a person has to type in; left out: nothing. */
  readonly typed?: Token;
  /** The built page. */
  readonly page: string;
  readonly version: string;
  /** What the tokens in pages are made of. */
  readonly secret: string;
  /** Where the engine is, without secrets, such as `ws://127.0.0.1:49134`; asked when needed. */
  engineUrl(): string;
  /** The `key` that makes a page the operator's; `undefined`: there is none now. */
  operatorKey(): Promise<string | undefined>;
}

/** A console that runs. */
export interface RunningConsole extends AsyncDisposable {
  /** Such as `http://127.0.0.1:3113`. */
  readonly url: string;
}

/**
 * Starts a console; disposing of it leaves the worker as it is.
 *
 * @throws {EngineError} `address_in_use`, `address_not_available`, `INVALID_ARGUMENTS`.
 */
export async function runConsole(
  worker: ConsoleWorker,
  { clock }: Pick<Host, "clock">,
  setting: ConsoleSetting,
): Promise<RunningConsole> {
  await using stack = new AsyncDisposableStack();
  const link = new EngineLink(worker, clock);
  stack.defer(() => link.stop());
  const triggers = new TriggerFeeds(link, worker);
  stack.defer(() => triggers.stop());
  const queries = new QueryFeeds(link, triggers, clock);
  stack.defer(() => queries.stop());
  const http = stack.use(new HttpDoor(clock, () => findHttp(link, setting.engineUrl())));
  const { version } = setting;
  const server = stack.use(
    await ConsoleServer.open({
      ...setting,
      browsers: { clock, link, triggers, queries, http, version, engineUrl: setting.engineUrl },
    }),
  );
  const whole = stack.move();
  return { url: server.url, [Symbol.asyncDispose]: () => whole.disposeAsync() };
}

/** Where `engine-http` can be reached from here; `undefined`: nowhere. */
async function findHttp(link: EngineLink, engineUrl: string): Promise<string | undefined> {
  const { traceparent } = beginTrace(false);
  const info = await link.call({ function_id: "engine::supervisor::info", traceparent });
  const endpoints = (memberOf(info, "endpoints") ?? []) as Json as unknown as Endpoint[];
  const served = endpoints.find(({ name }) => name === "http")?.url;
  return served === undefined ? undefined : reachable(served, engineUrl);
}

/**
 * An address that the engine serves, as it is reached from here: one that stands for all of its
 * addresses becomes the one we know, and one of its own machine only is none on another.
 */
export function reachable(served: string, engineUrl: string): string | undefined {
  const url = new URL(served);
  const { hostname } = new URL(engineUrl);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = hostname;
  return isLoopback(url.hostname) && !isLoopback(hostname) ? undefined : url.origin;
}
