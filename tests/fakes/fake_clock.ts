/**
 * Time, and turns on the thread, that move only when a test says so.
 *
 * Tasks run inside {@linkcode FakeClock.tick}, in the order of their deadlines and, among equal
 * ones, in the order they were asked for. Nothing here uses a real timer.
 *
 * @module
 */
import type { Turns, Work } from "../../engine/ports/turns.ts";
import type { Clock } from "../../engine/ports/clock.ts";

/** A task that waits for its time. */
interface Waiting {
  readonly due: number;
  readonly task: () => void;
}

/** A {@linkcode Clock} that a test moves by hand; it starts at 0. */
export class FakeClock implements Clock {
  /** Sorted by `due`; equal ones in the order they were asked for. */
  readonly #waiting: Waiting[] = [];
  readonly #epoch: number;
  #now = 0;
  #asked = 0;

  /** `epoch`: start of `wall()`, in milliseconds since 1970. */
  constructor(epoch: number = Date.UTC(2025, 10, 21, 12)) {
    this.#epoch = epoch;
  }

  /** How often `after()` was called. */
  get asked(): number {
    return this.#asked;
  }

  /** Tasks that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Milliseconds from now to the next task; `undefined` when none waits. */
  get nextIn(): number | undefined {
    const first = this.#waiting[0];
    return first && Math.max(0, first.due - this.#now);
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#epoch + this.#now;
  }

  after(ms: number, task: () => void): () => void {
    this.#asked++;
    const entry = { due: this.#now + Math.max(0, ms), task };
    let at = this.#waiting.length;
    while (at > 0 && this.#waiting[at - 1]!.due > entry.due) at--;
    this.#waiting.splice(at, 0, entry);
    return () => {
      const found = this.#waiting.indexOf(entry);
      if (found >= 0) this.#waiting.splice(found, 1);
    };
  }

  /**
   * Moves time on and runs what falls due, also what those tasks ask for within that time. Each
   * task sees its own deadline as now().
   */
  tick(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#waiting[0];
      if (!next || next.due > end) break;
      this.#waiting.shift();
      this.#now = Math.max(this.#now, next.due);
      next.task();
    }
    this.#now = end;
  }
}

/** Turns on the thread that a test gives one by one. */
export class FakeTurns implements Turns {
  /** How often the turn may still be asked before it is over. */
  looks = Infinity;
  #waiting: Work[] = [];

  /** Works that wait for a turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  queue(work: Work): void {
    this.#waiting.push(work);
  }

  isSpent(): boolean {
    return --this.looks < 0;
  }

  /** Gives one turn to each work that waits; it is over after so many looks. */
  give(looks: number = Infinity): void {
    for (const work of this.#waiting.splice(0)) {
      this.looks = looks;
      if (work.work()) this.#waiting.push(work);
    }
  }
}
