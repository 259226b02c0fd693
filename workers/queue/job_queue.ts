/**
 * One queue: gives its jobs out, in the order of priority and arrival, and keeps what became of
 * them.
 *
 * Jobs are grouped in lanes, of which the next jobs are in memory (lane.ts). A pass goes over the
 * lanes that may begin one, as far as concurrency and rate allow. What a job waits for rests with
 * its lane alone: a delay, a gate, the job before it in a `fifo` lane. An outcome counts when it is
 * on disk; until then the job counts as running.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type {
  Job,
  JobFailure,
  JobInput,
  QueueCounts,
  QueueRunner,
  QueueSettings,
  Verdict,
} from "../../engine/ports/queue.ts";
import { AreaCounts } from "./area_count.ts";
import { type JobStore, MOVED_MAX, orderOf, type StoredJob } from "./job_store.ts";
import { DelayedJobs } from "./delayed_jobs.ts";
import { Lane, type LaneRoom } from "./lane.ts";
import { backoffMs, Rate, TIMER_MS_MAX, Timers } from "./pace.ts";
import { ReadyLanes } from "./ready_lanes.ts";

/** Lanes that are in memory. */
export const LANES_MAX = 10_000;
/** Jobs of one lane in memory, by whether the queue is `fifo`. */
const LANE_JOBS_MAX = 512;
const FIFO_LANE_JOBS_MAX = 16;
/** Jobs of one queue that wait in memory, beside the first of each lane, and bytes of them. */
const HELD_JOBS_MAX = 20_000;
export const HELD_BYTES_MAX: number = 16 * 1024 * 1024;
/** Jobs that one search for lanes reads. */
const LANES_PAGE = 200;
/** Failures that a job keeps. */
const FAILURES_MAX = 10;
/** Before what failed at the store is tried again. */
const AGAIN_MS = 1_000;
/** Between two pages of a count. */
const COUNT_PAUSE_MS = 20;

/** Dependencies of {@linkcode JobQueue}. */
export interface JobQueueSetup {
  readonly name: string;
  readonly jobs: JobStore;
  readonly settings: QueueSettings;
  readonly runner: QueueRunner;
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  /** 0 to 1. */
  random(): number;
  /** A number that is larger than all before. */
  number(): string;
  /** Asks for a call of {@linkcode JobQueue.pass} soon. */
  wake(): void;
}

interface Totals {
  enqueued: number;
  done: number;
  failed: number;
  dead: number;
}

/** A queue that is served. */
export class JobQueue {
  readonly #setup: JobQueueSetup;
  readonly #jobs: JobStore;
  readonly #room: LaneRoom;
  readonly #lanes = new Map<string, Lane>();
  readonly #ready = new ReadyLanes();
  readonly #running = new Map<string, StoredJob>();
  /** Lanes by what they wait for. */
  readonly #gated = new Map<string, Set<Lane>>();
  readonly #counts = new AreaCounts();
  readonly #totals: Totals = { enqueued: 0, done: 0, failed: 0, dead: 0 };
  readonly #ending = new AbortController();
  readonly #timers: Timers;
  readonly #delayed: DelayedJobs;
  readonly #rate: Rate;
  readonly #work = new Set<Promise<unknown>>();
  /** Pages that are being read. */
  readonly #reads = new Set<Promise<unknown>>();
  #settings: QueueSettings;
  #held = 0;
  #heldBytes = 0;
  #isPaused = false;
  /** There may be lanes on disk that are not in memory. */
  #hasMoreLanes = true;
  #isSearching = false;
  /** A job of an unknown lane came during the search. */
  #isBehind = false;
  #searched: string | undefined;
  /** Jobs are being deleted: none begins or is read. */
  #isPurging = false;
  #waitsForRate = false;
  /** Resolved when no job runs; set when none is to begin any more. */
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(setup: JobQueueSetup) {
    this.#setup = setup;
    this.#jobs = setup.jobs;
    this.#settings = setup.settings;
    this.#timers = new Timers(setup.clock, this.#ending.signal);
    this.#rate = new Rate(setup.clock, setup.settings.rate);
    this.#delayed = new DelayedJobs({
      jobs: setup.jobs,
      clock: setup.clock,
      timers: this.#timers,
      promoted: (due, moved) => {
        this.#counts.went("queue_later", due);
        this.#arrive(moved);
      },
      failed: (thrown) => this.#warnRead(thrown),
    });
    this.#room = {
      lengthMax: setup.settings.fifo ? FIFO_LANE_JOBS_MAX : LANE_JOBS_MAX,
      take: (bytes, isFirst) => this.#take(bytes, isFirst),
      release: (bytes) => this.#release(bytes),
    };
  }

  /** Reads what is on disk, and begins. */
  async start(): Promise<void> {
    this.#isPaused = await this.#jobs.isPaused();
    await this.#delayed.start();
    this.#track(this.#count());
    this.#setup.wake();
  }

  /** Begins no more jobs; resolves when none runs. */
  async drain(): Promise<void> {
    this.#drained ??= Promise.withResolvers();
    if (this.#running.size === 0) this.#drained.resolve();
    await this.#drained.promise;
  }

  /** Ends; jobs that run are given out again by the next life. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#drained?.resolve();
    await this.#delayed.idle();
    await Promise.allSettled([...this.#work, ...this.#reads]);
    for (const lane of this.#lanes.values()) lane.clear();
    for (const { bytes } of this.#running.values()) this.#release(bytes);
    this.#running.clear();
  }

  /** How it gives its jobs out. */
  set settings(settings: QueueSettings) {
    this.#settings = settings;
    this.#rate.rate = settings.rate;
    this.#setup.wake();
  }

  get settings(): QueueSettings {
    return this.#settings;
  }

  get counts(): QueueCounts {
    const { queue_ready, queue_later, queue_dead } = this.#counts.of;
    const running = this.#running.size;
    const { enqueued, done, failed, dead } = this.#totals;
    return {
      waiting: Math.max(0, queue_ready.value - running),
      running,
      delayed: queue_later.value,
      dead: queue_dead.value,
      is_counting: queue_ready.isCounting || queue_later.isCounting || queue_dead.isCounting,
      enqueued_total: enqueued,
      done_total: done,
      failed_total: failed,
      dead_total: dead,
      oldest_at_ms: this.#oldest(),
      paused: this.#isPaused,
    };
  }

  /** Jobs that run now. */
  get running(): readonly Job[] {
    return [...this.#running.values()].map(({ job }) => job);
  }

  /** Adds a job; resolves when it is on disk. */
  put(input: JobInput): Promise<boolean> {
    const now = this.#setup.clock.wall();
    const priority = this.#settings.fifo ? 0 : input.priority ?? 0;
    const order = orderOf(priority, this.#setup.number());
    const job = priority === (input.priority ?? 0) ? input : { ...input, priority };
    return this.#jobs.add(job, order, now).then((stored) => {
      if (!stored) return false;
      this.#totals.enqueued++;
      this.#keep(stored);
      return true;
    });
  }

  /** A job is on disk that was not there before. */
  #keep(stored: StoredJob): void {
    const { due_at_ms } = stored.job;
    if (due_at_ms === undefined) return this.#arrive(stored);
    this.#counts.came("queue_later", stored);
    this.#delayed.added(due_at_ms);
  }

  /** A job that may begin is on disk. */
  #arrive(stored: StoredJob): void {
    this.#counts.came("queue_ready", stored);
    let lane = this.#lanes.get(stored.job.lane);
    if (!lane) {
      if (this.#hasMoreLanes || this.#lanes.size >= LANES_MAX) {
        this.#hasMoreLanes = true;
        this.#isBehind = true;
        return this.#setup.wake();
      }
      lane = new Lane(stored.job.lane, this.#room, true);
      this.#lanes.set(lane.name, lane);
    }
    lane.arrive(stored);
    if (lane.length === 0) this.#fillIfShort(lane);
    this.#offer(lane);
    this.#setup.wake();
  }

  /** Puts a lane among those that may begin a job, if it may. */
  #offer(lane: Lane): void {
    if (lane.gate !== undefined || lane.cancelRest) return;
    if (this.#settings.fifo && lane.running > 0) return;
    this.#ready.push(lane);
  }

  /** Begins as many jobs as it may. Called outside of any call, whose deadline jobs would get. */
  pass(): void {
    if (this.#ending.signal.aborted || this.#isPurging) return;
    if (this.#hasMoreLanes && !this.#isSearching && this.#lanes.size < LANES_MAX / 2) {
      this.#track(this.#search(), this.#reads);
    }
    if (this.#isPaused || this.#drained) return;
    while (this.#running.size < this.#settings.concurrency && this.#fitsRate()) {
      const lane = this.#ready.pop();
      if (!lane) return;
      if (!this.#begins(lane)) continue;
      this.#begin(lane, lane.shift()!);
    }
  }

  /** Whether the next job of a lane may begin; if not, what it waits for brings the lane back. */
  #begins(lane: Lane): boolean {
    if (lane.gate !== undefined || lane.cancelRest) return false;
    if (this.#settings.fifo && lane.running > 0) return false;
    const { job } = lane.head!;
    const now = this.#setup.clock.wall();
    const restsUntil = Math.max(lane.restsUntil, job.due_at_ms ?? 0);
    if (restsUntil > now) {
      this.#rest(lane, restsUntil - now);
      return false;
    }
    const isExpired = job.expires_at_ms !== undefined && job.expires_at_ms <= now;
    const gate = isExpired ? undefined : this.#setup.runner.gate(job);
    if (gate === undefined) return true;
    lane.gate = gate;
    const gated = this.#gated.get(gate) ?? new Set();
    this.#gated.set(gate, gated.add(lane));
    return false;
  }

  /** Lanes behind a gate, or all, may begin again. */
  open(key?: string): void {
    const opened = key === undefined ? [...this.#gated.keys()] : [key];
    for (const gate of opened) {
      for (const lane of this.#gated.get(gate) ?? []) {
        lane.gate = undefined;
        this.#offer(lane);
      }
      this.#gated.delete(gate);
    }
    this.#setup.wake();
  }

  #begin(lane: Lane, stored: StoredJob): void {
    this.#rate.take();
    this.#running.set(stored.order, stored);
    lane.running++;
    this.#offer(lane);
    this.#fillIfShort(lane);
    void this.#run(lane, stored);
  }

  async #run(lane: Lane, stored: StoredJob): Promise<void> {
    const verdict = await this.#verdict(stored);
    if (this.#ending.signal.aborted) return;
    await this.#track(this.#settle(lane, stored, verdict));
  }

  async #verdict(stored: StoredJob): Promise<Verdict> {
    const at_ms = this.#setup.clock.wall();
    const { job } = stored;
    if (job.expires_at_ms !== undefined && job.expires_at_ms <= at_ms) {
      const message = "The job expired before it began";
      return { retry: { at_ms, code: "expired", message } };
    }
    try {
      return await this.#setup.runner.run(job, this.#ending.signal);
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      return { retry: { at_ms, code: "invocation_error", message } };
    }
  }

  /** Keeps what became of an attempt; goes on trying while the store fails. */
  async #settle(lane: Lane, stored: StoredJob, verdict: Verdict): Promise<void> {
    let next: StoredJob | undefined;
    for (;;) {
      try {
        next = await this.#keepVerdict(lane, stored, verdict);
        break;
      } catch (thrown) {
        const reason = thrown instanceof Error ? thrown.message : String(thrown);
        const { log, name } = this.#setup;
        log.warn("the outcome of a job cannot be stored yet", { queue: name, reason });
        await this.#timers.pause(AGAIN_MS);
        if (this.#ending.signal.aborted) return;
      }
    }
    this.#running.delete(stored.order);
    lane.running--;
    if (next) lane.putBack(next);
    else lane.forget(stored);
    this.#offer(lane);
    this.#fillIfShort(lane);
    if (lane.isEmpty) this.#lanes.delete(lane.name);
    if (this.#running.size === 0) this.#drained?.resolve();
    this.#setup.wake();
  }

  /** Writes an outcome; the result is the job if it goes back to its lane. */
  async #keepVerdict(
    lane: Lane,
    stored: StoredJob,
    verdict: Verdict,
  ): Promise<StoredJob | undefined> {
    if ("done" in verdict) {
      await this.#jobs.done(stored);
      this.#totals.done++;
      this.#left(stored);
      return undefined;
    }
    if ("wait_ms" in verdict) {
      lane.restsUntil = this.#setup.clock.wall() + verdict.wait_ms;
      return stored;
    }
    return await this.#keepFailure(stored, verdict.retry, verdict.isNow === true);
  }

  async #keepFailure(
    stored: StoredJob,
    failure: JobFailure,
    isNow: boolean,
  ): Promise<StoredJob | undefined> {
    const { due_at_ms: _due, ...rest } = stored.job;
    const isExpired = failure.code === "expired";
    const attempts = rest.attempts + (isExpired ? 0 : 1);
    const failures = [...rest.failures, failure].slice(-FAILURES_MAX);
    const job: Job = { ...rest, attempts, failures };
    if (attempts >= this.#settings.max_attempts || isExpired) {
      await this.#jobs.bury(stored, job);
      this.#totals.failed++;
      this.#totals.dead++;
      this.#left(stored);
      this.#counts.came("queue_dead", stored);
      return undefined;
    }
    const due_at_ms = this.#setup.clock.wall() +
      backoffMs(this.#settings, attempts, this.#setup.random());
    if (isNow || this.#settings.fifo) {
      const again = isNow ? job : { ...job, due_at_ms };
      const kept = await this.#jobs.rewrite(stored, again);
      this.#totals.failed++;
      // What was taken for the job is what is returned for it.
      return { ...kept, bytes: stored.bytes };
    }
    const delayed = await this.#jobs.postpone(stored, { ...job, due_at_ms });
    this.#totals.failed++;
    this.#left(stored);
    this.#keep(delayed);
    return undefined;
  }

  /** A job that ran is no longer among those that may begin. */
  #left(stored: StoredJob): void {
    this.#counts.went("queue_ready", stored);
  }

  #rest(lane: Lane, ms: number): void {
    lane.cancelRest = this.#timers.after(Math.min(ms, TIMER_MS_MAX), () => {
      lane.cancelRest = undefined;
      this.#offer(lane);
      this.#setup.wake();
    });
  }

  #fillIfShort(lane: Lane): void {
    if (!lane.isShort || this.#ending.signal.aborted || this.#isPurging || lane.cancelRest) return;
    this.#track(this.#fill(lane), this.#reads);
  }

  async #fill(lane: Lane): Promise<void> {
    try {
      await lane.fill((name, limit, after) => this.#jobs.lane(name, limit, after));
    } catch (thrown) {
      this.#warnRead(thrown);
    }
    if (this.#ending.signal.aborted) return;
    // No memory for its next job, or no store: later.
    if (lane.length === 0 && lane.isShort && lane.running === 0) {
      if (!lane.cancelRest) this.#restToFill(lane);
    } else this.#offer(lane);
    if (lane.isEmpty) this.#lanes.delete(lane.name);
    this.#setup.wake();
  }

  #restToFill(lane: Lane): void {
    lane.cancelRest = this.#timers.after(AGAIN_MS, () => {
      lane.cancelRest = undefined;
      this.#fillIfShort(lane);
    });
  }

  /** Looks for lanes on disk that are not in memory. */
  async #search(): Promise<void> {
    this.#isSearching = true;
    try {
      if (this.#searched === undefined) this.#isBehind = false;
      const { jobs, isLast } = await this.#jobs.lanes(LANES_PAGE, this.#searched);
      if (this.#ending.signal.aborted) return;
      this.#addLanes(jobs);
      this.#searched = isLast ? undefined : jobs.at(-1)?.job.lane;
      if (isLast && !this.#isBehind) this.#hasMoreLanes = false;
    } catch (thrown) {
      this.#warnRead(thrown);
      await this.#timers.pause(AGAIN_MS);
    } finally {
      this.#isSearching = false;
      this.#setup.wake();
    }
  }

  #addLanes(jobs: readonly StoredJob[]): void {
    for (let at = 0; at < jobs.length;) {
      const { lane: name } = jobs[at]!.job;
      let end = at + 1;
      while (end < jobs.length && jobs[end]!.job.lane === name) end++;
      if (!this.#lanes.has(name)) {
        const lane = new Lane(name, this.#room, false);
        this.#lanes.set(name, lane);
        lane.addRead(jobs.slice(at, Math.min(end, at + this.#room.lengthMax)), false);
        this.#offer(lane);
        this.#fillIfShort(lane);
      }
      at = end;
    }
  }

  /** A job was redriven. */
  revived(dead: StoredJob, stored: StoredJob): void {
    this.#counts.went("queue_dead", dead);
    this.#arrive(stored);
  }

  /** A dead job was deleted. */
  discarded(dead: StoredJob): void {
    this.#counts.went("queue_dead", dead);
  }

  /** Deletes all jobs that wait, and those that are delayed; those that run go on. */
  async purge(): Promise<number> {
    if (this.#isPurging) return 0;
    this.#isPurging = true;
    this.#hasMoreLanes = true;
    this.#searched = undefined;
    try {
      await this.#delayed.idle();
      await Promise.allSettled(this.#reads);
      for (const lane of this.#lanes.values()) lane.clear();
      return await this.#deleteAll("queue_ready") + await this.#deleteAll("queue_later");
    } finally {
      this.#isPurging = false;
      for (const lane of this.#lanes.values()) this.#fillIfShort(lane);
      this.#setup.wake();
    }
  }

  async #deleteAll(area: "queue_ready" | "queue_later"): Promise<number> {
    let count = 0;
    let lane: string | undefined;
    for (;;) {
      // More than run, so that each page has one that waits, or ends its lane.
      const limit = MOVED_MAX + this.#running.size;
      const { jobs, isLast } = area === "queue_later"
        ? await this.#jobs.later(limit)
        : await this.#jobs.lanes(limit, lane);
      const waiting = jobs.filter(({ order }) => !this.#running.has(order));
      const gone = await this.#jobs.delete(waiting.slice(0, MOVED_MAX), area);
      for (const stored of gone) this.#counts.went(area, stored);
      count += gone.length;
      if (isLast && waiting.length <= MOVED_MAX) return count;
      if (waiting.length === 0) lane = jobs.at(-1)?.job.lane;
    }
  }

  /** Keeps whether it is paused. */
  async pause(isPaused: boolean): Promise<void> {
    await this.#jobs.setPaused(isPaused);
    this.#isPaused = isPaused;
    this.#setup.wake();
  }

  async #count(): Promise<void> {
    for (const area of ["queue_dead", "queue_later", "queue_ready"] as const) {
      const count = this.#counts.of[area];
      while (count.isCounting && !this.#ending.signal.aborted) {
        try {
          await count.countPage((limit, after) => this.#jobs.positions(area, limit, after));
        } catch (thrown) {
          this.#warnRead(thrown);
          await this.#timers.pause(AGAIN_MS);
        }
        if (count.isCounting) await this.#timers.pause(COUNT_PAUSE_MS);
      }
    }
  }

  #oldest(): number | null {
    const inLanes = this.#ready.oldestAtMs;
    let oldest = inLanes ?? Infinity;
    for (const lane of this.#lanes.values()) {
      oldest = Math.min(oldest, lane.head?.job.enqueued_at_ms ?? Infinity);
    }
    return oldest === Infinity ? null : oldest;
  }

  /** Whether the rate allows another job now; if not, a pass follows when it does. */
  #fitsRate(): boolean {
    const ms = this.#rate.waitMs;
    if (ms > 0 && !this.#waitsForRate) {
      this.#waitsForRate = true;
      this.#timers.after(ms, () => {
        this.#waitsForRate = false;
        this.#setup.wake();
      });
    }
    return ms === 0;
  }

  #take(bytes: number, isFirst: boolean): boolean {
    const isFull = this.#held >= HELD_JOBS_MAX || this.#heldBytes + bytes > HELD_BYTES_MAX;
    if (isFull && !isFirst) return false;
    if (!this.#setup.memory.take("queues", bytes)) return false;
    this.#held++;
    this.#heldBytes += bytes;
    return true;
  }

  #release(bytes: number): void {
    this.#held--;
    this.#heldBytes -= bytes;
    this.#setup.memory.release("queues", bytes);
  }

  #warnRead(thrown: unknown): void {
    if (this.#ending.signal.aborted) return;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    this.#setup.log.warn("a queue cannot be read", { queue: this.#setup.name, reason });
  }

  /** Remembers work while it is under way. */
  #track<T>(work: Promise<T>, set = this.#work): Promise<T> {
    set.add(work);
    const forget = (): void => void set.delete(work);
    work.then(forget, forget);
    return work;
  }
}
