/**
 * The time of a test engine: it passes when the test says so.
 *
 * @module
 */
import type { WorkerClock } from "../typescript/platform.ts";

interface Timer {
  readonly dueMs: number;
  readonly task: () => void;
}

/** A clock with timers, for the engine and for the workers that are connected to it. */
export class TestClock implements WorkerClock {
  readonly #startMs: number;
  readonly #timers = new Set<Timer>();
  #nowMs = 0;

  /** A clock that begins at `startMs`, in milliseconds since 1970. */
  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Milliseconds since the beginning. */
  now(): number {
    return this.#nowMs;
  }

  /** Milliseconds since 1970. */
  wall(): number {
    return this.#startMs + this.#nowMs;
  }

  /** Runs `task` once, when so many milliseconds have passed; the result cancels it. */
  after(ms: number, task: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, ms), task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets time pass up to the next timer, and runs it; `false` if none is due by `untilMs`. */
  step(untilMs: number): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && timer.dueMs < (next?.dueMs ?? Infinity)) next = timer;
    }
    this.#nowMs = Math.max(this.#nowMs, next?.dueMs ?? untilMs);
    if (!next) return false;
    this.#timers.delete(next);
    next.task();
    return true;
  }
}
