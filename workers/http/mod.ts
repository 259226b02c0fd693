/**
 * `engine-http`: HTTP requests run functions. Triggers of type `http` are the routes.
 *
 * This file joins the parts. A request of a web page (it has an `Origin`, or is OPTIONS) goes
 * through a Hono app with CORS and then one catch-all; any other goes straight to the same place,
 * which is {@linkcode Answers}. Routing is neither's: it is a table that changes while it runs.
 * Channels do not exist yet: a handler answers by what it returns.
 *
 * @module
 */
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { Answers, type Target } from "./answer.ts";
import {
  HTTP_CALL_SCHEMA,
  type HttpConfig,
  parseHttpConfig,
  parseTriggerConfig,
  TRIGGER_CONFIG_SCHEMA,
  unknownKeys,
} from "./config.ts";
import { Cors } from "./cors.ts";
import { Entrance } from "./entrance.ts";
import { HttpListener } from "./listen.ts";
import { Remarks } from "./remarks.ts";
import type { Remark } from "./reply.ts";
import { operationOf, RequestSpans } from "./request_span.ts";
import { type Route, RouteTable } from "./routes.ts";
import { RunningRequests } from "./running.ts";

/** Serves functions as HTTP routes. */
export const http: BuiltinWorker<HttpConfig> = {
  name: "engine-http",
  summary: "HTTP routes that run functions",
  parse: parseHttpConfig,
  start(worker, config, host) {
    const { routes, entrance, answers, running } = assemble(worker, config, host);
    const listener = new HttpListener(config, host.clock, {
      fetch: (request) => entrance.fetch(request),
      drain: () => answers.drain(),
      stop: () => running.stop(),
    });
    provideRoutes(worker, routes, host);
    host.serves({ name: "http", url: listener.url });
    host.signal.addEventListener("abort", () => void listener.drain(), { once: true });
    return Promise.resolve(listener);
  },
};

/** The parts that need no port. */
export interface HttpParts {
  readonly routes: RouteTable<Target>;
  readonly entrance: Entrance;
  readonly answers: Answers;
  readonly running: RunningRequests;
}

/** Makes what answers requests, without a port. */
export function assemble(
  worker: Pick<Worker, "trigger">,
  config: HttpConfig,
  host: Pick<EngineHost, "clock" | "log" | "traces">,
): HttpParts {
  const cors = new Cors(config.cors);
  const routes = new RouteTable<Target>();
  const running = new RunningRequests(host.clock, config.timeout_ms, config.concurrency_max);
  const answers = new Answers({
    config,
    cors,
    routes,
    running,
    log: host.log,
    spans: new RequestSpans(host.traces.spans, host.clock),
    call: (request) => worker.trigger(request),
  });
  const entrance = new Entrance(cors, (request, headers) => answers.answer(request, headers));
  return { routes, entrance, answers, running };
}

/** Provides the trigger type `http`. */
export function provideRoutes(
  worker: Pick<Worker, "registerTriggerType">,
  routes: RouteTable<Target>,
  host: Pick<EngineHost, "log">,
): void {
  const remarks = new Remarks(host.log);
  worker.registerTriggerType({
    id: "http",
    description: "Runs a function for each HTTP request of a method and path",
    trigger_request_format: TRIGGER_CONFIG_SCHEMA,
    call_request_format: HTTP_CALL_SCHEMA,
  }, {
    registerTrigger({ id, function_id, namespace, metadata, config: raw }) {
      const config = parseTriggerConfig(raw);
      const { api_path: path, http_method: method } = config;
      const remark: Remark = (text, about) => remarks.make(text, function_id, about);
      const operation = operationOf(config);
      const target: Target = { function_id, namespace, metadata, config, operation, remark };
      const before = routes.add({ id, method, path, value: target });
      if (before) warnOfTakeover(host, before, target);
      const unknown = unknownKeys(raw);
      if (unknown.length === 0) return;
      host.log.warn("keys of a trigger's config mean nothing to engine-http", {
        route: `${method} ${path}`,
        function_id,
        keys: unknown.join(", "),
      });
    },
    unregisterTrigger({ id }) {
      routes.remove(id);
    },
  });
}

/** Equal triggers of replicas never come here: the core merges them. */
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
