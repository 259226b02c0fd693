/**
 * Turns of the queries that the console repeats by itself.
 *
 * The functions of the engine answer on its own thread, and any page may watch many of them. So few
 * are asked at once, and each place rests after its query for as long as that took, several times:
 * what pages watch slows itself down before it slows calls down. Pages of the operator go first.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";

/** Queries that are asked at once. */
export const TURNS_MAX = 4;
/** A place rests so many times as long as its query took, at most {@linkcode REST_MS_MAX}. */
export const REST_FACTOR = 3;
/** See {@linkcode REST_FACTOR}. */
export const REST_MS_MAX = 1_000;
/** Functions that answer on the engine's thread. */
const IN_ENGINE = /^(engine|state)::/;

/** A query that waits for its turn. */
interface Waiting {
  readonly start: (done: () => void) => void;
}

/** See the module. */
export class QueryTurns {
  readonly #clock: Clock;
  readonly #urgent: Waiting[] = [];
  readonly #others: Waiting[] = [];
  /** Ends the rests of places. */
  readonly #rests = new Set<() => void>();
  #free = TURNS_MAX;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many queries wait. */
  get waiting(): number {
    return this.#urgent.length + this.#others.length;
  }

  /**
   * Calls `start` when it is the query's turn, at once for functions of workers; `start` calls
   * `done` when it has its result. Call the result to stop waiting.
   */
  enter(functionId: string, isUrgent: boolean, start: (done: () => void) => void): () => void {
    if (!IN_ENGINE.test(functionId)) {
      start(() => {});
      return () => {};
    }
    const queue = isUrgent ? this.#urgent : this.#others;
    const waiting: Waiting = { start };
    queue.push(waiting);
    this.#next();
    return () => {
      const at = queue.indexOf(waiting);
      if (at >= 0) queue.splice(at, 1);
    };
  }

  /** Starts nothing any more. */
  stop(): void {
    this.#urgent.length = this.#others.length = 0;
    for (const cancel of this.#rests) cancel();
    this.#rests.clear();
  }

  #next(): void {
    while (this.#free > 0) {
      const waiting = this.#urgent.shift() ?? this.#others.shift();
      if (!waiting) return;
      this.#free--;
      const began = this.#clock.now();
      let isDone = false;
      waiting.start(() => {
        if (isDone) return;
        isDone = true;
        this.#rest(Math.min((this.#clock.now() - began) * REST_FACTOR, REST_MS_MAX));
      });
    }
  }

  #rest(ms: number): void {
    const over = (): void => {
      this.#free++;
      this.#next();
    };
    if (ms < 1) return over();
    const cancel = this.#clock.after(ms, () => {
      this.#rests.delete(cancel);
      over();
    });
    this.#rests.add(cancel);
  }
}
