/**
 * How many requests run at once, per host and in whole, and which waits next.
 *
 * A host that is slow fills its own places and its own part of the queue, so that functions of
 * other hosts go on. Hosts with waiting requests take turns.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Limits of {@linkcode RequestSlots}. */
export interface SlotBounds {
  /** Requests that run at once, of all hosts. */
  readonly running: number;
  /** The same of one host. */
  readonly runningPerHost: number;
  /** Requests that wait, of all hosts. */
  readonly waiting: number;
  /** The same of one host. */
  readonly waitingPerHost: number;
}

/** The limits of an engine. */
export const SLOT_BOUNDS: SlotBounds = {
  running: 256,
  runningPerHost: 64,
  waiting: 1_000,
  waitingPerHost: 250,
};

interface Waiter {
  /** Gives it its place. */
  start(): void;
}

/** The places of running requests. */
export class RequestSlots {
  readonly #bounds: SlotBounds;
  /** Running requests by host; hosts without any are absent. */
  readonly #running = new Map<string, number>();
  /** By host, in the order of their turns; hosts without any are absent. */
  readonly #waiting = new Map<string, Waiter[]>();
  #runningCount = 0;
  #waitingCount = 0;

  constructor(bounds: SlotBounds = SLOT_BOUNDS) {
    this.#bounds = bounds;
  }

  /** Requests that run and wait now. */
  get load(): { running: number; waiting: number } {
    return { running: this.#runningCount, waiting: this.#waitingCount };
  }

  /**
   * Waits for a place; call the result once to return it.
   *
   * @throws {EngineError} `overloaded` when too many wait; the reason of `signal` when that ends.
   */
  acquire(host: string, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#hasRoom(host)) return Promise.resolve(this.#take(host));
    const waiting = this.#waiting.get(host) ?? [];
    const { waiting: most, waitingPerHost } = this.#bounds;
    if (waiting.length >= waitingPerHost || this.#waitingCount >= most) {
      const who = waiting.length >= waitingPerHost ? host : "functions served by HTTP";
      const message = `Too many requests wait for ${who}; it answers too slowly for its calls`;
      return Promise.reject(new EngineError("overloaded", message));
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        start: () => {
          signal.removeEventListener("abort", abort);
          resolve(this.#take(host));
        },
      };
      const abort = (): void => {
        this.#remove(host, waiter);
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      waiting.push(waiter);
      this.#waitingCount++;
      this.#waiting.set(host, waiting);
    });
  }

  #hasRoom(host: string): boolean {
    const { running, runningPerHost } = this.#bounds;
    return this.#runningCount < running && (this.#running.get(host) ?? 0) < runningPerHost;
  }

  #take(host: string): () => void {
    this.#runningCount++;
    this.#running.set(host, (this.#running.get(host) ?? 0) + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#runningCount--;
      const left = this.#running.get(host)! - 1;
      if (left > 0) this.#running.set(host, left);
      else this.#running.delete(host);
      this.#startNext();
    };
  }

  /** Starts the oldest request of the first host in turn that has room. */
  #startNext(): void {
    for (const [host, waiting] of this.#waiting) {
      if (!this.#hasRoom(host)) continue;
      const [next] = waiting;
      this.#remove(host, next!);
      // The host's next turn comes after those of the others.
      if (waiting.length > 0) {
        this.#waiting.delete(host);
        this.#waiting.set(host, waiting);
      }
      next!.start();
      return;
    }
  }

  #remove(host: string, waiter: Waiter): void {
    const waiting = this.#waiting.get(host);
    const at = waiting?.indexOf(waiter) ?? -1;
    if (at < 0) return;
    waiting!.splice(at, 1);
    this.#waitingCount--;
    if (waiting!.length === 0) this.#waiting.delete(host);
  }
}
