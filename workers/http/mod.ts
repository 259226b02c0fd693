/**
 * `engine-http`: HTTP requests run functions. Triggers of type `http` are the routes, those of type
 * `websocket` the ones whose requests become WebSockets (`websocket/`).
 *
 * `server.ts` has the port and the Hono app that every request passes, `handler.ts` what happens to
 * one request, `routes.ts` the table of routes, which changes while it runs,
 * `missing_routes.ts` what requests without a route get. `guard.ts`, `body.ts`,
 * `middleware.ts`, `response.ts` and `exchange.ts` are the steps of a request; `openapi/` describes
 * the routes.
 *
 * @module
 */
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import type { ServedRequest, ServedResponse } from "../kit/http/response.ts";
import { RefusedOrigins } from "../kit/refused_origins.ts";
import {
  HTTP_CALL_SCHEMA,
  type HttpConfig,
  httpConfigSchema,
  type HttpTriggerConfig,
  parseHttpConfig,
  parseTriggerConfig,
  TRIGGER_CONFIG_SCHEMA,
  unknownKeys,
} from "./config.ts";
import { RateLimits, RouteGuard } from "./guard.ts";
import { MissingRoutes } from "./missing_routes.ts";
import { OpenApi, OPENAPI_FUNCTION, registerOpenApi } from "./openapi/mod.ts";
import { RequestHandler, type RequestHandlerOptions, type Target } from "./handler.ts";
import { RunningRequests } from "./request.ts";
import { ResultWarnings } from "./response.ts";
import { type Route, RouteTable } from "./routes.ts";
import { headersForCaches, HttpListener, makeApp } from "./server.ts";
import { operationOf, RequestSpans } from "./spans.ts";
import { SocketRoutes } from "./websocket/mod.ts";

/** Serves functions as HTTP routes. */
export const http: BuiltinWorker<HttpConfig> = {
  name: "engine-http",
  runsByDefault: true,
  summary: "HTTP routes that run functions",
  offers: { functions: ["websocket::*", OPENAPI_FUNCTION], triggerTypes: ["http", "websocket"] },
  parse: parseHttpConfig,
  configSchema: httpConfigSchema,
  start(worker, config, host) {
    const parts = assemble(worker, config, host);
    const { fetch, handler, running, sockets } = parts;
    const { clock, log, memory, socketBounds } = host;
    const { host: address, port } = config;
    const where = { host: address, port, clock, log, memory, socketsMax: socketBounds.http };
    const listener = new HttpListener(where, {
      fetch,
      drain: async () => {
        const closed = sockets?.drain();
        await handler.drain();
        await closed;
      },
      stop() {
        running.stop();
        sockets?.stop();
      },
    });
    provideRoutes(worker, parts, host);
    describeRoutes(worker, parts.openapi, host, listener.url);
    host.serves({ name: "http", url: listener.url });
    host.signal.addEventListener("abort", () => void listener.drain(), { once: true });
    // While the engine drains the port stays open: what runs finishes, new requests get 503.
    const drain = (): void => host.delayStop(listener.drain());
    host.draining.addEventListener("abort", drain, { signal: host.signal });
    return Promise.resolve(listener);
  },
};

/** Provides the OpenAPI document as a function; what changes in the engine makes it new. */
function describeRoutes(
  worker: Pick<Worker, "registerFunction">,
  openapi: OpenApi,
  { onEvent, signal }: Pick<EngineHost, "onEvent" | "signal">,
  url: string,
): void {
  registerOpenApi(worker, openapi, url);
  const stopHearing = onEvent((event) => openapi.hear(event));
  signal.addEventListener("abort", () => {
    stopHearing();
    openapi.stop();
  }, { once: true });
}

/** The parts that need no port. */
export interface HttpParts {
  readonly routes: RouteTable<Target>;
  readonly missing: MissingRoutes;
  fetch(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
  readonly handler: RequestHandler;
  readonly running: RunningRequests;
  /** `undefined` without a host that makes WebSockets. */
  readonly sockets: SocketRoutes | undefined;
  readonly openapi: OpenApi;
}

/** What the engine provides to the parts; without channels there are no streams. */
export type PartsHost =
  & Pick<EngineHost, "clock" | "log" | "traces" | "memory">
  & { readonly directory: Pick<EngineHost["directory"], "function" | "worker"> }
  & Partial<Omit<EngineHost, "directory">>;

/** Makes everything but the port. */
export function assemble(
  worker: Pick<Worker, "trigger">,
  config: HttpConfig,
  host: PartsHost,
): HttpParts {
  const routes = new RouteTable<Target>();
  const { clock, memory, channels, directory } = host;
  const hasToken = config.auth_token !== "";
  const openapi = new OpenApi({ clock, memory, directory, routes, hasToken });
  const call: RequestHandlerOptions["call"] = (request) => worker.trigger(request);
  const { webSockets, socketBounds, turns } = host;
  const sockets = webSockets && socketBounds && turns
    ? new SocketRoutes(config, { ...host, webSockets, socketBounds, turns }, call)
    : undefined;
  const upgradeRoutes = sockets?.table;
  const { absenceOf = () => undefined } = host;
  const missing = new MissingRoutes({ routes, upgradeRoutes, directory, absenceOf });
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
    noRoute: (...about) => missing.replyTo(...about),
    running,
    log: host.log,
    spans: new RequestSpans(host.traces.spans, host.clock),
    channels,
    memory,
    respondOpenApi: config.openapi ? () => openapi.respond() : undefined,
    cacheHeaders: headersForCaches(config.cors),
    call,
    ...upgradeRoutes && { upgradeRoutes },
  });
  const refused = new RefusedOrigins(host.log, "cors.origins of engine-http");
  const fetch = makeApp(config, handler, (origin) => refused.report(origin));
  return { routes, missing, fetch, handler, running, sockets, openapi };
}

/** Provides the trigger types, and the functions of WebSockets. */
export function provideRoutes(
  worker: Pick<Worker, "registerTriggerType" | "registerFunction" | "trigger">,
  { routes, missing, sockets, openapi }: Omit<HttpParts, "fetch" | "handler" | "running">,
  host: Pick<EngineHost, "log" | "engines">,
): void {
  const warnings = new ResultWarnings(host.log);
  const rates = new RateLimits();
  sockets?.provide(worker, rates, warnings, (route) => missing.socketEnded(route));
  worker.registerTriggerType({
    id: "http",
    description: "Runs a function for each HTTP request of a method and path",
    trigger_request_format: TRIGGER_CONFIG_SCHEMA,
    call_request_format: HTTP_CALL_SCHEMA,
  }, {
    registerTrigger({ id, function_id, namespace, metadata, config: raw }) {
      const config = parseTriggerConfig(raw);
      const { api_path: path, http_method: method } = config;
      const warn = warnings.of(function_id);
      const operation = operationOf(config);
      const guard = guardOf(config, rates, id);
      const target: Target = { function_id, namespace, metadata, config, guard, operation, warn };
      const order = host.engines?.orderOf(id);
      const before = routes.add({ id, method, path, value: target, order });
      rates.set(id, guard?.limiter);
      openapi.change();
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
      const route = routes.remove(id);
      if (route) missing.ended(route);
      rates.set(id, undefined);
      openapi.change();
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
  log.warn(
    "a trigger takes over a route; the previous trigger serves it again when this one is gone",
    {
      method,
      path,
      before: value.function_id,
      now: function_id,
    },
  );
}
