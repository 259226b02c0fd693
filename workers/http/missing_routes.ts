/**
 * Replies to requests without a route, of HTTP or WebSockets: 404, 405, 426, and 503 while the
 * supervisor starts the worker of a route again after a crash.
 *
 * The triggers of a worker end with its connection, so its routes are remembered here. Whether its
 * worker is to come back is asked for each request: one that was stopped or given up gets 404.
 *
 * @module
 */
import type { Absence } from "../../engine/ports/absences.ts";
import type { FunctionView } from "../../engine/ports/directory.ts";
import { DEFAULT_NAMESPACE } from "../../sdk/typescript/wire/protocol.ts";
import type { ServedRequest } from "../kit/http/response.ts";
import { RATE_KEYS_MAX } from "./guard.ts";
import type { Target } from "./handler.ts";
import { emptyReply, errorReply, jsonReply, type Reply, retryLater } from "./response.ts";
import { type Route, RouteTable } from "./routes.ts";
import { upgradeRequired, wantsUpgrade } from "./websocket/upgrades.ts";

/** Routes that are remembered; beyond, all are forgotten, as those of long ago are of no use. */
export const MISSING_ROUTES_MAX = 1_000;
/** Clients that the rate of one of them remembers: the shares of routes grow as routes end. */
const KEYS_MAX = RATE_KEYS_MAX / MISSING_ROUTES_MAX;

/** Routes of stopped workers that are looked behind for one that comes back, each request. */
export const STOPPED_ROUTES_MAX = 16;

/** What {@linkcode MissingRoutes} works with. */
export interface MissingRoutesOptions {
  readonly routes: Pick<RouteTable<Target>, "methods">;
  /** Routes of WebSockets. */
  readonly upgradeRoutes: Pick<RouteTable<Target>, "find"> | undefined;
  readonly directory: { function(namespace: string, id: string): FunctionView | undefined };
  /** Why no worker offers a function; `undefined`: none is known that would. */
  absenceOf(function_id: string, namespace: string): Absence | undefined;
}

/** The routes that are not there, as far as something is known of them. */
export class MissingRoutes {
  readonly #options: MissingRoutesOptions;
  #lost: LostRoutes = new RouteTable();
  #lostSockets: LostRoutes = new RouteTable();

  constructor(options: MissingRoutesOptions) {
    this.#options = options;
  }

  /** A trigger has ended; its route is remembered if its function has gone with it. */
  ended(route: Route<Target>): void {
    if (this.#lost.size >= MISSING_ROUTES_MAX) this.#lost = new RouteTable();
    this.#remember(this.#lost, route);
  }

  /** The same for a route of WebSockets. */
  socketEnded(route: Route<Target>): void {
    if (this.#lostSockets.size >= MISSING_ROUTES_MAX) this.#lostSockets = new RouteTable();
    this.#remember(this.#lostSockets, route);
  }

  #remember(lost: LostRoutes, { method, path, value }: Route<Target>): void {
    const { function_id, namespace = DEFAULT_NAMESPACE, guard } = value;
    if (this.#options.directory.function(namespace, function_id)) return;
    // Routes that differ in the names of their parameters alone are one.
    const shape = path.replaceAll(/(?<=^|\/):[^/]+/g, ":_");
    const id = `${method} ${shape} ${namespace} ${function_id}`;
    const copy = guard?.copy(KEYS_MAX);
    lost.add({ id, method, path: shape, value: { function_id, namespace, guard: copy } });
  }

  /**
   * The reply to a request without a route.
   *
   * @throws {EngineError} What the guard of a route says whose worker comes back.
   */
  replyTo(request: ServedRequest, path: string, nowMs: number): Reply {
    const { routes, upgradeRoutes } = this.#options;
    const lost = this.#lostReply(request, path, nowMs);
    if (lost) return lost;
    const methods = routes.methods(path);
    if (methods.length === 0) return upgradeRoutes?.find("GET", path) ? upgradeRequired() : NONE;
    const allowed = new Set(methods);
    if (allowed.has("GET")) allowed.add("HEAD");
    return emptyReply(405, [["allow", [...allowed].sort().join(", ")]]);
  }

  #lostReply(request: ServedRequest, path: string, nowMs: number): Reply | undefined {
    const { method, headers } = request;
    const socket = wantsUpgrade(method, headers)
      ? this.#expected(this.#lostSockets, "GET", path)
      : undefined;
    const found = socket ?? this.#expected(this.#lost, method, path) ??
      (method === "HEAD" ? this.#expected(this.#lost, "GET", path) : undefined);
    if (!found) return undefined;
    const { function_id, guard, reason } = found;
    guard?.check(request, nowMs);
    const message = `Function ${function_id} not found: ${reason}`;
    return retryLater(errorReply(503, "function_not_found", message, crypto.randomUUID()));
  }

  /**
   * The most specific route whose worker comes back. One that does not hides no other, up to
   * {@linkcode STOPPED_ROUTES_MAX} of them.
   */
  #expected(lost: LostRoutes, method: string, path: string): Expected | undefined {
    const stopped: Route<Lost>[] = [];
    try {
      while (stopped.length < STOPPED_ROUTES_MAX) {
        const route = lost.find(method, path)?.route;
        if (!route) break;
        const { function_id, namespace = DEFAULT_NAMESPACE } = route.value;
        const absence = this.#options.absenceOf(function_id, namespace);
        if (absence && absence.command === undefined) {
          return { ...route.value, reason: absence.reason };
        }
        lost.remove(route.id); // Its worker is back without it, or is not supervised.
        if (absence) stopped.push(route); // Where a command is needed, waiting does not help.
      }
      return undefined;
    } finally {
      for (const route of stopped.reverse()) lost.add(route);
    }
  }
}

type Lost = Pick<Target, "function_id" | "namespace" | "guard">;
type LostRoutes = RouteTable<Lost>;
/** A route whose worker comes back. */
type Expected = Lost & Pick<Absence, "reason">;

const NONE = jsonReply(404, { error: { code: "NOT_FOUND", message: "Not Found" } });
