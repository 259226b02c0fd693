/**
 * Tells the other engines how busy the workers of this one are, a few times a second and only what
 * has changed, and takes what they tell.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { FunctionLoad } from "../core/function_table.ts";
import type { Link } from "./link.ts";

/** Functions in one message; the rest follows with the next. */
const FUNCTIONS_MAX = 1_000;

/** The router, as reports use it. */
export interface LoadedRouter {
  loads(): Iterable<FunctionLoad>;
  reportLoad(
    worker_id: string,
    function_id: string,
    namespace: string,
    load: { replicas: number; running: number },
  ): void;
}

/** Sends and takes reports. */
export class LoadReports {
  readonly #router: LoadedRouter;
  /** What each engine knows: `<replicas> <running>` by function. */
  readonly #known = new Map<Link, Map<string, string>>();

  constructor(router: LoadedRouter) {
    this.#router = router;
  }

  /** Sends to each link what its engine does not know. */
  send(lines: Iterable<{ readonly link: Link }>): void {
    const links = [...lines].map(({ link }) => link);
    if (links.length === 0) return;
    const loads = [...this.#router.loads()];
    for (const link of links) this.#send(link, loads);
  }

  /** A link is over. */
  forget(link: Link): void {
    this.#known.delete(link);
  }

  /** Takes a report of the engine behind a connection; what does not fit is passed over. */
  take(worker_id: string, { functions }: JsonObject): void {
    if (!Array.isArray(functions)) return;
    for (const item of functions) {
      if (!Array.isArray(item)) continue;
      const [function_id, namespace, replicas, running] = item;
      if (typeof function_id !== "string" || typeof namespace !== "string") continue;
      if (!isCount(replicas) || !isCount(running)) continue;
      this.#router.reportLoad(worker_id, function_id, namespace, { replicas, running });
    }
  }

  #send(link: Link, loads: readonly FunctionLoad[]): void {
    const known = this.#known.get(link) ?? new Map<string, string>();
    const functions: Json[] = [];
    const next = new Map<string, string>();
    for (const { id, namespace, replicas, running } of loads) {
      const key = `${namespace} ${id}`;
      const load = `${replicas} ${running}`;
      const before = known.get(key) ?? IDLE;
      if (load === before || functions.length >= FUNCTIONS_MAX) {
        if (before !== IDLE) next.set(key, before);
        continue;
      }
      functions.push([id, namespace, replicas, running]);
      next.set(key, load);
    }
    this.#known.set(link, next);
    if (functions.length > 0) link.tell({ type: "load", functions });
  }
}

/** What an engine assumes of a function that was not reported. */
const IDLE = "1 0";

function isCount(value: Json | undefined): value is number {
  return typeof value === "number" && value >= 0 && Number.isFinite(value);
}
