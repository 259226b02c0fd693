/**
 * What the open connections of a path belong to: the triggers registered for it, the newest of
 * which gets their events, and for a while none.
 *
 * A worker that starts anew unregisters its trigger and registers an equal one. Its clients need
 * not notice: connections stay open for {@linkcode RETURN_MS}, their messages wait, and the next
 * trigger of the same path takes them over. Then they are closed with 1001.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { isNewer, type RouteOrder } from "../routes.ts";
import type { SocketTriggerConfig } from "./config.ts";

/** So long connections without a trigger, and events without a function, wait. */
export const RETURN_MS = 10_000;

/** A trigger of a path. */
export interface SocketTarget {
  /** Of the trigger. */
  readonly id: string;
  readonly function_id: string;
  /** Of its functions; `undefined` for the default one. */
  readonly namespace: string | undefined;
  readonly metadata: Json | undefined;
  readonly config: SocketTriggerConfig;
  /** Its place among triggers of one path. Default: it is the newest. */
  readonly order?: RouteOrder | undefined;
}

/** What a route does with its connections. */
export interface RouteSocket {
  close(code: number, reason: string): void;
}

/** One path. */
export class LiveRoute {
  /** As the first trigger wrote it, with a leading slash. */
  readonly path: string;
  /** The newest is the last. */
  readonly targets: SocketTarget[] = [];
  readonly sockets: Set<RouteSocket> = new Set();
  #last: SocketTarget;
  /** Cancels the end of the connections; `undefined`: it is not due. */
  cancelEnd: (() => void) | undefined;

  constructor(path: string, first: SocketTarget) {
    this.path = path;
    this.#last = first;
    this.targets.push(first);
  }

  /** What gets messages now; `undefined`: no trigger is registered. */
  get target(): SocketTarget | undefined {
    return this.targets[this.targets.length - 1];
  }

  /** The one that gets them, or the last one that did. */
  get last(): SocketTarget {
    return this.#last = this.target ?? this.#last;
  }
}

/** All paths that have a trigger or connections. */
export class LiveRoutes {
  readonly #clock: Clock;
  readonly #byPath = new Map<string, LiveRoute>();
  readonly #byId = new Map<string, LiveRoute>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many there are. */
  get size(): number {
    return this.#byPath.size;
  }

  /** Those with a trigger or connections, in the order in which they came. */
  all(): IterableIterator<LiveRoute> {
    return this.#byPath.values();
  }

  /** The route of an `api_path`, with or without its leading slash. */
  find(path: string): LiveRoute | undefined {
    return this.#byPath.get(rooted(path));
  }

  /** Registers a trigger, in place of one with the same id; its route, with its connections. */
  add(target: SocketTarget): LiveRoute {
    const path = rooted(target.config.route.api_path);
    const before = this.#byId.get(target.id);
    if (before && before.path !== path) this.remove(target.id);
    const route = this.#byPath.get(path);
    if (!route) {
      const added = new LiveRoute(path, target);
      this.#byPath.set(path, added);
      this.#byId.set(target.id, added);
      return added;
    }
    drop(route, target.id);
    const below = route.targets.findLastIndex((other) => isNewer(target, other));
    route.targets.splice(below + 1, 0, target);
    route.cancelEnd?.();
    route.cancelEnd = undefined;
    this.#byId.set(target.id, route);
    return route;
  }

  /** Unregisters a trigger; connections that have none left wait for another one. */
  remove(id: string): void {
    const route = this.#byId.get(id);
    if (!route) return;
    this.#byId.delete(id);
    void route.last; // It is still the one that their close is delivered to.
    drop(route, id);
    if (route.targets.length > 0) return;
    if (route.sockets.size === 0) return this.#forget(route);
    route.cancelEnd = this.#clock.after(RETURN_MS, () => {
      for (const socket of [...route.sockets]) socket.close(1001, "the route is gone");
      this.#forget(route);
    });
  }

  /** Cancels what waits. */
  stop(): void {
    for (const route of this.#byPath.values()) route.cancelEnd?.();
  }

  #forget(route: LiveRoute): void {
    if (this.#byPath.get(route.path) === route) this.#byPath.delete(route.path);
  }
}

function drop(route: LiveRoute, id: string): void {
  const at = route.targets.findIndex((each) => each.id === id);
  if (at >= 0) route.targets.splice(at, 1);
}

function rooted(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}
