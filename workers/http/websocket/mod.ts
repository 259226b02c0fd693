/**
 * WebSocket routes: triggers of type `websocket`, and the functions `websocket::*`.
 *
 * A request for an upgrade passes what any request of `engine-http` passes (`../handler.ts`), then
 * `upgrade.ts`. `client_socket.ts` is one connection, `sockets.ts` all of them with their groups,
 * `live_routes.ts` what triggers they belong to, `functions.ts` what programs do with them, and
 * `joined_sockets.ts` the same over the engines of a cluster. Frames are read and written by the
 * engine (`engine/ports/web_sockets.ts`).
 *
 * @module
 */
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineHost } from "../../kit/define.ts";
import { RefusedOrigins } from "../../kit/refused_origins.ts";
import { type HttpConfig, unknownKeys } from "../config.ts";
import { type RateLimits, RouteGuard } from "../guard.ts";
import type { FunctionCall, Target } from "../handler.ts";
import { type Route, RouteTable } from "../routes.ts";
import type { ResultWarnings, Warn } from "../response.ts";
import { operationOf } from "../spans.ts";
import {
  parseSocketTrigger,
  SOCKET_CALL_SCHEMA,
  SOCKET_TRIGGER_KEYS,
  SOCKET_TRIGGER_SCHEMA,
  type SocketTriggerConfig,
} from "./config.ts";
import { provideFunctions, SocketFunctions } from "./functions.ts";
import { connectionId, JoinedSockets } from "./joined_sockets.ts";
import { LiveRoutes, type SocketTarget } from "./live_routes.ts";
import { Sockets } from "./sockets.ts";
import { EventSpans } from "./spans.ts";
import { SocketUpgrades } from "./upgrade.ts";

/** What of the sockets of a port may be WebSockets; the others are for requests. */
const SOCKETS_SHARE = 3 / 4;

/** What {@linkcode SocketRoutes} uses of the engine. */
export type SocketHost =
  & Pick<
    EngineHost,
    "clock" | "log" | "memory" | "traces" | "webSockets" | "socketBounds" | "turns" | "engines"
  >
  & { readonly directory: Pick<EngineHost["directory"], "worker"> };

/** The WebSockets of a port. */
export class SocketRoutes {
  /** The routes of requests for an upgrade. */
  readonly table: RouteTable<Target> = new RouteTable();
  readonly #sockets: Sockets;
  readonly #live: LiveRoutes;
  readonly #spans: EventSpans;
  readonly #config: HttpConfig;
  readonly #host: SocketHost;
  readonly #refused: RefusedOrigins;

  constructor(
    config: HttpConfig,
    host: SocketHost,
    call: (request: FunctionCall) => Promise<Json | undefined>,
  ) {
    const { clock, log, memory, traces, socketBounds, turns } = host;
    this.#config = config;
    this.#host = host;
    const setting = "allowed_origins of the trigger, or cors.origins of engine-http";
    this.#refused = new RefusedOrigins(host.log, setting);
    this.#spans = new EventSpans(traces.spans, clock);
    this.#live = new LiveRoutes(clock);
    this.#sockets = new Sockets({
      clock,
      log,
      memory,
      turns,
      spans: this.#spans,
      timeoutMs: config.timeout_ms,
      max: Math.min(config.websockets_max, Math.floor(socketBounds.http * SOCKETS_SHARE)),
      call,
    });
  }

  /** Provides the trigger type and the functions; `onEnded` is called with each route that ends. */
  provide(
    worker: Pick<Worker, "registerTriggerType" | "registerFunction" | "trigger">,
    rates: RateLimits,
    warnings: ResultWarnings,
    onEnded: (route: Route<Target>) => void,
  ): void {
    this.#provideFunctions(worker);
    worker.registerTriggerType({
      id: "websocket",
      description: "Runs a function for each message of the WebSockets of a path",
      trigger_request_format: SOCKET_TRIGGER_SCHEMA,
      call_request_format: SOCKET_CALL_SCHEMA,
    }, {
      registerTrigger: ({ id, function_id, namespace, metadata, config: raw }) => {
        const config = parseSocketTrigger(raw);
        const warn = warnings.of(function_id);
        const limiter = config.route.rate_limit && rates.make(id, config.route.rate_limit);
        const order = this.#host.engines?.orderOf(id);
        const route = { id, function_id, namespace, metadata, config, order };
        const before = this.#add(route, new RouteGuard(limiter, config.route.auth_token), warn);
        rates.set(id, limiter);
        this.#report(config, function_id, raw, before);
      },
      unregisterTrigger: ({ id }) => {
        const route = this.table.remove(id);
        if (route) onEnded(route);
        this.#live.remove(id);
        rates.set(id, undefined);
      },
    });
  }

  /** Closes all connections with 1001; resolves when the close of each was delivered. */
  drain(): Promise<void> {
    return this.#sockets.drain();
  }

  /** Ends what still runs. */
  stop(): void {
    this.#sockets.stop();
    this.#live.stop();
  }

  #provideFunctions(worker: Pick<Worker, "registerFunction" | "trigger">): void {
    const { engines, directory } = this.#host;
    const own = new SocketFunctions(this.#sockets, this.#live);
    if (!engines) return provideFunctions(worker, own);
    const joined = new JoinedSockets({ worker, own, engines, directory });
    provideFunctions(worker, joined);
    joined.provide();
  }

  #add(target: SocketTarget, guard: RouteGuard, warn: Warn): Route<Target> | undefined {
    const { id, function_id, namespace, metadata, config, order } = target;
    const { route } = config;
    const services = {
      newId: () => connectionId(this.#host.engines),
      webSockets: this.#host.webSockets,
      sockets: this.#sockets,
      spans: this.#spans,
      origins: this.#config.cors.origins,
      refused: (origin: string) => this.#refused.report(origin),
    };
    const upgrade = new SocketUpgrades(
      services,
      () => this.#live.find(route.api_path)!,
      target,
      warn,
    );
    // The table may refuse the route, so it comes first.
    const before = this.table.add({
      id,
      method: "GET",
      path: route.api_path,
      order,
      value: {
        function_id,
        namespace,
        metadata,
        config: route,
        guard,
        operation: operationOf(route),
        warn,
        upgrade,
      },
    });
    this.#live.add(target);
    return before;
  }

  #report(
    config: SocketTriggerConfig,
    function_id: string,
    raw: Json,
    before: Route<Target> | undefined,
  ): void {
    const { log } = this.#host;
    const path = config.route.api_path;
    if (before) {
      log.warn(
        "a trigger takes over a route; the previous trigger serves it again when this one is gone",
        {
          method: "websocket",
          path,
          before: before.value.function_id,
          now: function_id,
        },
      );
    }
    const unknown = unknownKeys(raw, SOCKET_TRIGGER_KEYS);
    if (unknown.length === 0) return;
    log.warn("engine-http does not know these keys of a trigger's config", {
      route: `websocket ${path}`,
      function_id,
      keys: unknown.join(", "),
    });
  }
}
