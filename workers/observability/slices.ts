/**
 * Runs short tasks within a share of the event loop: what fits into a slice runs at once, the rest
 * in order after a timer, so that sockets are read in between.
 *
 * For fan-out, where one event causes thousands of tasks: each task has to be short.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";

/** Time for tasks in a window, in milliseconds. */
export const SLICE_MS = 2;
/** Length of a window. */
const WINDOW_MS = 8;
/** Tasks that wait; further ones are dropped. */
export const WAITING_TASKS_MAX = 20_000;

/** A queue of tasks with a time budget. */
export class Slices {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];
  /** Tasks before it have run. */
  #head = 0;
  #windowStart = -Infinity;
  #spentMs = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Tasks that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  /** Runs a task, at once or later; `false` when too many wait: the task is dropped. */
  run(task: () => void): boolean {
    if (!this.#cancel) {
      this.#runNow(task);
      return true;
    }
    if (this.waiting >= WAITING_TASKS_MAX) return false;
    this.#waiting.push(task);
    return true;
  }

  /** Drops the tasks that wait. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting = [];
    this.#head = 0;
  }

  #runNow(task: () => void): void {
    const now = this.#clock.now();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#spentMs = 0;
    }
    try {
      task();
    } finally {
      this.#spentMs += this.#clock.now() - now;
      if (this.#spentMs >= SLICE_MS) this.#cancel = this.#clock.after(1, () => this.#drain());
    }
  }

  #drain(): void {
    const end = this.#clock.now() + SLICE_MS;
    while (this.waiting > 0) {
      this.#waiting[this.#head++]!();
      if (this.#clock.now() >= end) break;
    }
    this.#waiting = this.#waiting.slice(this.#head);
    this.#head = 0;
    this.#spentMs = 0;
    // While tasks wait, or this slice was used up, a timer stands before the next task.
    const isDone = this.waiting === 0 && this.#clock.now() < end;
    this.#cancel = isDone ? undefined : this.#clock.after(1, () => this.#drain());
  }
}
