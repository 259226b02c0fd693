/**
 * `engine-http`: HTTP requests run functions. Triggers of type `http` are the routes.
 *
 * `server.ts` has the port and the Hono app that every request passes, `handler.ts` what happens to
 * one request, `routes.ts` the table of routes, which changes while it runs. `guard.ts`, `body.ts`,
 * `middleware.ts` and `response.ts` are the steps of a request. Channels do not exist yet: a
 * function responds by what it returns.
 *
 * @module
 */
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import type { ServedRequest, ServedResponse } from "../kit/http/response.ts";
import {
  HTTP_CALL_SCHEMA,
  type HttpConfig,
  type HttpTriggerConfig,
  parseHttpConfig,
  parseTriggerConfig,
  TRIGGER_CONFIG_SCHEMA,
  unknownKeys,
} from "./config.ts";
import { RateLimits, RouteGuard } from "./guard.ts";
import { RequestHandler, ResultWarnings, type Target } from "./handler.ts";
import { RunningRequests } from "./request.ts";
import type { Warn } from "./response.ts";
import { type Route, RouteTable } from "./routes.ts";
import { headersForCaches, HttpListener, makeApp } from "./server.ts";
import { operationOf, RequestSpans } from "./spans.ts";

/** Serves functions as HTTP routes. */
export const http: BuiltinWorker<HttpConfig> = {
  name: "engine-http",
  runsByDefault: true,
  summary: "HTTP routes that run functions",
  offers: { triggerTypes: ["http"] },
  parse: parseHttpConfig,
  start(worker, config, host) {
    const { routes, fetch, handler, running } = assemble(worker, config, host);
    const { clock, log, memory, socketBounds } = host;
    const { host: address, port } = config;
    const where = { host: address, port, clock, log, memory, socketsMax: socketBounds.http };
    const listener = new HttpListener(where, {
      fetch,
      drain: () => handler.drain(),
      stop: () => running.stop(),
    });
    provideRoutes(worker, routes, host);
    host.serves({ name: "http", url: listener.url });
    host.signal.addEventListener("abort", () => void listener.drain(), { once: true });
    // While the engine drains the port stays open: what runs finishes, new requests get 503.
    const drain = (): void => host.delayStop(listener.drain());
    host.draining.addEventListener("abort", drain, { signal: host.signal });
    return Promise.resolve(listener);
  },
};

/** The parts that need no port. */
export interface HttpParts {
  readonly routes: RouteTable<Target>;
  fetch(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
  readonly handler: RequestHandler;
  readonly running: RunningRequests;
}

/** Makes everything but the port. */
export function assemble(
  worker: Pick<Worker, "trigger">,
  config: HttpConfig,
  host: Pick<EngineHost, "clock" | "log" | "traces" | "memory"> & Partial<EngineHost>,
): HttpParts {
  const routes = new RouteTable<Target>();
  const { clock, memory, channels } = host;
  const { timeout_ms: timeoutMs, concurrency_max: max } = config;
  const running = new RunningRequests({
    clock,
    timeoutMs,
    max,
    memory,
    keepsBytes: channels !== undefined,
  });
  const handler = new RequestHandler({
    config,
    routes,
    running,
    log: host.log,
    spans: new RequestSpans(host.traces.spans, host.clock),
    channels,
    memory,
    cacheHeaders: headersForCaches(config.cors),
    call: (request) => worker.trigger(request),
  });
  return { routes, fetch: makeApp(config, handler), handler, running };
}

/** Provides the trigger type `http`. */
export function provideRoutes(
  worker: Pick<Worker, "registerTriggerType">,
  routes: RouteTable<Target>,
  host: Pick<EngineHost, "log">,
): void {
  const warnings = new ResultWarnings(host.log);
  const rates = new RateLimits();
  worker.registerTriggerType({
    id: "http",
    description: "Runs a function for each HTTP request of a method and path",
    trigger_request_format: TRIGGER_CONFIG_SCHEMA,
    call_request_format: HTTP_CALL_SCHEMA,
  }, {
    registerTrigger({ id, function_id, namespace, metadata, config: raw }) {
      const config = parseTriggerConfig(raw);
      const { api_path: path, http_method: method } = config;
      const warn: Warn = (text, about) => warnings.warn(text, function_id, about);
      const operation = operationOf(config);
      const guard = guardOf(config, rates, id);
      const target: Target = { function_id, namespace, metadata, config, guard, operation, warn };
      const before = routes.add({ id, method, path, value: target });
      rates.set(id, guard?.limiter);
      if (before) warnOfTakeover(host, before, target);
      const unknown = unknownKeys(raw);
      if (unknown.length === 0) return;
      host.log.warn("engine-http does not know these keys of a trigger's config", {
        route: `${method} ${path}`,
        function_id,
        keys: unknown.join(", "),
      });
    },
    unregisterTrigger({ id }) {
      routes.remove(id);
      rates.set(id, undefined);
    },
  });
}

function guardOf(
  { rate_limit, auth_token }: HttpTriggerConfig,
  rates: RateLimits,
  id: string,
): RouteGuard | undefined {
  if (rate_limit === undefined && auth_token === undefined) return undefined;
  return new RouteGuard(rate_limit && rates.make(id, rate_limit), auth_token);
}

/** Equal triggers of replicas never arrive here: the core merges them. */
function warnOfTakeover(
  { log }: Pick<EngineHost, "log">,
  { method, path, value }: Route<Target>,
  { function_id }: Target,
): void {
  log.warn("a trigger takes over a route; the one before serves again when it leaves", {
    method,
    path,
    before: value.function_id,
    now: function_id,
  });
}
