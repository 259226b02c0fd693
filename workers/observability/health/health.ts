/**
 * Whether the engine is alive and ready: `/healthz`, `/readyz` and `engine::health::check`.
 *
 * Alive means that the process answers. Ready means that calls can be expected to do well: the
 * store answers, the built-in workers are up, and no supervised worker has been given up. Both
 * pages are open to everybody, so answers are kept for a moment and name workers but no details.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Store } from "../../../engine/ports/store.ts";
import type { Supervision } from "../../../engine/ports/supervision.ts";
import { READY_CHECK_MS, READY_STORE_MS } from "../../limits.ts";

/** What readiness looks at. */
export interface ReadyParts {
  readonly clock: Clock;
  readonly store: Pick<Store, "get">;
  readonly supervision: Pick<Supervision, "list">;
}

/** What `/readyz` says. */
export interface Readiness {
  readonly ready: boolean;
  /** Why not, for people; empty when it is ready. */
  readonly reasons: readonly string[];
}

/** An entry that need not be there: asking for it is what matters. */
const PROBE_KEY = ["health", "probe"];

/** Looks at most once in a while. */
export class ReadyCheck {
  readonly #parts: ReadyParts;
  #answer: Promise<Readiness> | undefined;
  #atMs = -Infinity;

  /** Looks at nothing yet. */
  constructor(parts: ReadyParts) {
    this.#parts = parts;
  }

  /** How it is now, or was a moment ago; never rejects. */
  read(): Promise<Readiness> {
    const now = this.#parts.clock.now();
    if (this.#answer && now - this.#atMs < READY_CHECK_MS) return this.#answer;
    this.#atMs = now;
    this.#answer = this.#look();
    return this.#answer;
  }

  async #look(): Promise<Readiness> {
    const [store, workers] = await Promise.all([this.#storeReason(), this.#workerReasons()]);
    const reasons = [...store, ...workers];
    return { ready: reasons.length === 0, reasons };
  }

  async #storeReason(): Promise<string[]> {
    const { store, clock } = this.#parts;
    const late = Promise.withResolvers<string[]>();
    const cancel = clock.after(READY_STORE_MS, () => late.resolve(["the store does not answer"]));
    const read = store.get(PROBE_KEY).then(() => [], () => ["the store cannot be read"]);
    return await Promise.race([read, late.promise]).finally(cancel);
  }

  async #workerReasons(): Promise<string[]> {
    try {
      const list = await this.#parts.supervision.list();
      return list.flatMap(({ name, kind, state }) => {
        if (state === "failed") return [`worker ${name} has failed`];
        if (kind === "builtin" && state !== "ready" && state !== "stopped") {
          return [`built-in worker ${name} is ${state}`];
        }
        return [];
      });
    } catch {
      return ["the engine is starting or stopping"]; // Nobody can tell which workers there are.
    }
  }
}

/** One part of `engine::health::check`. */
export interface Component {
  readonly status: "healthy" | "disabled";
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}
