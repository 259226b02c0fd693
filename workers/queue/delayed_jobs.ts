/**
 * The jobs of a queue that wait for their time.
 *
 * They are on disk in the order of their times; in memory is only the next time. When it comes, the
 * jobs that are due move to those that may begin, a hundred with one write. Times are those of the
 * wall clock, which may be set: a timer looks again after a minute at most.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { type JobStore, MOVED_MAX, type StoredJob } from "./job_store.ts";
import { TIMER_MS_MAX, type Timers } from "./pace.ts";

/** Before a failed move is tried again. */
const AGAIN_MS = 1_000;

/** Dependencies of {@linkcode DelayedJobs}. */
export interface DelayedJobsSetup {
  readonly jobs: JobStore;
  readonly clock: Clock;
  readonly timers: Timers;
  /** A job was `due` and has moved to those that may begin. */
  promoted(due: StoredJob, moved: StoredJob): void;
  /** The store has failed. */
  failed(thrown: unknown): void;
}

/** The jobs of one queue that wait for their time. */
export class DelayedJobs {
  readonly #setup: DelayedJobsSetup;
  /** Next time, in milliseconds since 1970. */
  #nextMs = Infinity;
  #cancel: (() => void) | undefined;
  #promoting: Promise<void> | undefined;

  constructor(setup: DelayedJobsSetup) {
    this.#setup = setup;
  }

  /** Finds the next time on disk. */
  async start(): Promise<void> {
    this.added((await this.#setup.jobs.later(1)).jobs[0]?.job.due_at_ms ?? Infinity);
  }

  /** A job with this time is on disk. */
  added(dueMs: number): void {
    if (dueMs >= this.#nextMs) return;
    this.#nextMs = dueMs;
    this.#schedule();
  }

  /** Resolves when no move is under way. */
  async idle(): Promise<void> {
    await this.#promoting;
  }

  #schedule(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#nextMs === Infinity || this.#promoting) return;
    const ms = Math.max(0, this.#nextMs - this.#setup.clock.wall());
    this.#cancel = this.#setup.timers.after(Math.min(ms, TIMER_MS_MAX), () => {
      this.#cancel = undefined;
      this.#promoting = this.#promote().finally(() => {
        this.#promoting = undefined;
        this.#schedule();
      });
    });
  }

  async #promote(): Promise<void> {
    const { jobs: store, clock } = this.#setup;
    try {
      for (let hasMore = true; hasMore;) {
        this.#nextMs = Infinity;
        const { jobs, isLast } = await store.later(MOVED_MAX);
        const now = clock.wall();
        const due = jobs.filter(({ job }) => job.due_at_ms! <= now);
        const next = jobs[due.length]?.job.due_at_ms;
        if (due.length > 0) await this.#move(due);
        if (next !== undefined) this.#nextMs = Math.min(this.#nextMs, next);
        hasMore = next === undefined && !isLast;
      }
    } catch (thrown) {
      this.#setup.failed(thrown);
      this.#nextMs = Math.min(this.#nextMs, clock.wall() + AGAIN_MS);
    }
  }

  async #move(due: readonly StoredJob[]): Promise<void> {
    const moved = await this.#setup.jobs.promote(due);
    const byOrder = new Map(due.map((stored) => [stored.order, stored]));
    for (const stored of moved) this.#setup.promoted(byOrder.get(stored.order)!, stored);
  }
}
