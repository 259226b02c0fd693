/**
 * Replies to requests without a route: 404, 405 or 426, and 503 while the supervisor starts the
 * worker of a route again after a crash.
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
import { upgradeRequired } from "./websocket/upgrades.ts";

/** Routes that are remembered; beyond, all are forgotten, as those of long ago are of no use. */
export const MISSING_ROUTES_MAX = 1_000;
/** Clients that the rate of one of them remembers: the shares of routes grow as routes end. */
const KEYS_MAX = RATE_KEYS_MAX / MISSING_ROUTES_MAX;

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
  #lost = new RouteTable<Pick<Target, "function_id" | "namespace" | "guard">>();

  constructor(options: MissingRoutesOptions) {
    this.#options = options;
  }

  /** A trigger has ended; its route is remembered if its function has gone with it. */
  ended({ method, path, value: { function_id, namespace, guard } }: Route<Target>): void {
    const { directory } = this.#options;
    if (directory.function(namespace ?? DEFAULT_NAMESPACE, function_id)) return;
    if (this.#lost.size >= MISSING_ROUTES_MAX) this.#lost = new RouteTable();
    // Routes that differ in the names of their parameters alone are one.
    const shape = path.replaceAll(/(?<=^|\/):[^/]+/g, ":_");
    const value = { function_id, namespace, guard: guard?.copy(KEYS_MAX) };
    this.#lost.add({ id: `${method} ${shape}`, method, path: shape, value });
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
    const { method } = request;
    const match = this.#lost.find(method, path) ??
      (method === "HEAD" ? this.#lost.find("GET", path) : undefined);
    if (!match) return undefined;
    const { id, value: { function_id, namespace, guard } } = match.route;
    const absence = this.#options.absenceOf(function_id, namespace ?? DEFAULT_NAMESPACE);
    if (!absence) this.#lost.remove(id); // Its worker is back without it, or is not supervised.
    // Where a command is needed, waiting does not help.
    if (!absence || absence.command !== undefined) return undefined;
    guard?.check(request, nowMs);
    const message = `Function ${function_id} not found: ${absence.reason}`;
    return retryLater(errorReply(503, "function_not_found", message, crypto.randomUUID()));
  }
}

const NONE = jsonReply(404, { error: { code: "NOT_FOUND", message: "Not Found" } });
