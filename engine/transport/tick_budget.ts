/**
 * Shares each tick of the event loop fairly between connections.
 *
 * One connection whose peer sends without end could keep the thread: its next read is complete
 * before the loop looks at any other socket. So a connection counts its messages down in
 * {@linkcode TickBudget.credit}, and asks the clock when the credit is used up. A connection that
 * has used its share of the tick waits in a queue, behind all others that have something to handle.
 * What used less than a share of late goes first, as sparse flows do in FQ-CoDel (RFC 8290): a
 * message of a peer that sends little waits for the rest of a tick, and not for a round of all that
 * flood.
 *
 * A tick that has used up its time ends, and the platform polls its sockets before the next one.
 * Without that, queued work would go on for {@linkcode POLL_TICKS} ticks while the messages of
 * all other peers wait in the kernel.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Turns, Work } from "../ports/turns.ts";

/** Time for messages until the platform polls its sockets again. */
export const TICK_MS = 5;
/**
 * Least share of a tick that one connection has while others wait. Without others it has all of
 * it: a peer that is not in the queue is not heard before the end of the tick anyway, and splitting
 * the messages of a read makes more and smaller writes.
 */
const SHARE_MS_MIN = 0.25;
/** Of a tick, for those that use little while others wait. */
const SPARSE_MS = TICK_MS / 2;
/** Messages are counted so that the clock is asked about this often. */
const LOOK_MS = 0.1;
/** Messages between two looks at the clock, whatever the last ones cost. */
const CREDIT_MAX = 32;
/** Messages for workers in this process in one share; the worker handles them behind it. */
const DEFERRED_MAX = 32;
/** What handling these messages may take. */
const DEFERRED_MS_MAX = 2;
/**
 * Ticks after which the platform polls its sockets though its own queue is never empty, as it is
 * with an immediate: 61 in Deno 2.9.6, the share of a tokio `LocalSet`. Empty ticks take 2 µs
 * each. A timer of 0 ms has the same effect and leaves the thread idle for 1 to 2 ms.
 */
const POLL_TICKS = 62;
/**
 * Work that used so much of the thread at once, with a message that cannot be divided, is followed
 * by a rest. A call takes two or three steps on the thread, with another process between them:
 * without a rest it would wait for the next such message at each step.
 */
export const LONG_MS = 20;
/**
 * How long only other work has turns then: a share of what was used, since what other processes
 * have to do by then grows with it.
 */
export const REST_MS = 4;
/** See {@linkcode REST_MS}. */
export const REST_MS_MAX = 20;
const REST_SHARE = 1 / 5;
/** Bytes that count as one message, for reads and writes without one. */
export const CREDIT_BYTES = 16 * 1024;

/** Who counts messages; part of {@linkcode TickBudget}. */
export interface Pace {
  /** Messages until {@linkcode isSpent} is to be asked; every message subtracts one. */
  credit: number;
  /** Asks the clock; whether the caller has to stop and continue later. */
  isSpent(): boolean;
}

/** A pace without an end, where nothing else waits. */
export const UNPACED: Pace = { credit: Infinity, isSpent: () => false };

/** What a budget needs of the platform. */
export interface TickPlatform {
  now(): number;
  /** Runs a task at the end of the current tick. */
  atTickEnd(task: () => void): void;
  /** Runs a task once after some time; without it, no work rests. */
  after?(ms: number, task: () => void): void;
}

const PLATFORM: TickPlatform = {
  now: () => performance.now(),
  atTickEnd: (task) => void setImmediate(task),
  after: (ms, task) => void setTimeout(task, ms),
};

/** The time of the thread, shared by all connections of a process. */
export class TickBudget implements Pace, Turns {
  credit = 1;
  readonly #platform: TickPlatform;
  /** Used a share of late and waits for another; the first is next. */
  #queue: Work[] = [];
  /** Waits, and used little. */
  #sparse: Work[] = [];
  /** What waiting work used since the sockets were polled, and between the two polls before. */
  #usedMs = new Map<Work, number>();
  #usedMsBefore = new Map<Work, number>();
  /** Started without waiting in this tick. */
  #started: Work | undefined;
  /** What the time since {@linkcode #runningSince} is used for. */
  #running: Work | undefined;
  #runningSince = 0;
  /** Used {@linkcode LONG_MS} at once, and until when it rests. */
  readonly #resting = new Map<Work, number>();
  #endTasks: (() => void)[] = [];
  #isScheduled = false;
  /** Messages were handled in this tick, since `#startedAt`. */
  #isBusy = false;
  #startedAt = 0;
  /** Time for messages since the sockets were polled. */
  #busyMs = 0;
  #isOver = false;
  #pollTicks = 0;
  /** The last look at the clock, and what it allowed. */
  #lookedAt = 0;
  #granted = 1;
  #shareEndAt = 0;
  /** Messages for workers in this process since the last tick, and how many may be. */
  #deferred = 0;
  #deferredMax = DEFERRED_MAX;
  readonly #tick = (): void => this.#endTick();

  constructor(platform: TickPlatform = PLATFORM) {
    this.#platform = platform;
  }

  /** Whether a connection may handle messages now: no other one waits, and there is time. */
  mayStart(work: Work): boolean {
    if (this.#isOver || this.#waiting > 0) return false;
    this.#isBusy ? this.#ran(this.#platform.now(), work) : this.#begin();
    if (this.#mustRest(work)) return false;
    this.#started = this.#running = work;
    this.#shareEndAt = this.#lookedAt + TICK_MS;
    return true;
  }

  isSpent(): boolean {
    const now = this.#platform.now();
    const perMessage = (now - this.#lookedAt) / Math.max(1, this.#granted - this.credit);
    this.#lookedAt = now;
    this.#grant(Math.min(this.#granted * 2, CREDIT_MAX, Math.floor(LOOK_MS / perMessage)));
    if (this.#busyMs + now - this.#startedAt >= TICK_MS) this.#isOver = true;
    return this.#isOver || now >= this.#shareEndAt || this.#deferred >= this.#deferredMax;
  }

  /** Lets work continue when it is its turn. The caller knows whether it waits already. */
  queue(work: Work): void {
    if (this.#isBusy && work === this.#running) this.#ran(this.#platform.now());
    if (this.#mustRest(work)) return this.#rest(work);
    this.#usesLittle(work) ? this.#sparse.push(work) : this.#queue.push(work);
    this.#schedule();
  }

  /** The same behind all that waits, for work of which no peer waits. */
  queueLast(work: Work): void {
    this.#queue.push(work);
    this.#schedule();
  }

  /** Runs a task at the end of this tick. */
  atTickEnd(task: () => void): void {
    this.#endTasks.push(task);
    this.#schedule();
  }

  /** Counts a message that a worker in this process will handle behind the current work. */
  defer(): void {
    if (++this.#deferred >= this.#deferredMax) this.look();
  }

  /** Has the clock asked behind the current message, which took much longer than others. */
  look(): void {
    if (this.credit <= 0) return;
    this.#granted -= this.credit; // So many of them were not used.
    this.credit = 0;
  }

  /** Accounts for what ran until now, unless it goes on. */
  #ran(now: number, next?: Work): void {
    const work = this.#running;
    const ms = now - this.#runningSince;
    if (work && ms >= LONG_MS) this.#makeRest(work, ms, now);
    else if (work && work === next) return;
    this.#running = undefined;
    this.#runningSince = now;
  }

  #makeRest(work: Work, usedMs: number, now: number): void {
    if (!this.#platform.after) return;
    const ms = Math.max(REST_MS, Math.min(REST_SHARE * usedMs, REST_MS_MAX));
    this.#resting.set(work, now + ms);
  }

  /** Whether work used so much at once, a short time ago, that it has to rest. */
  #mustRest(work: Work): boolean {
    return this.#resting.size > 0 && this.#restMs(work) > 0;
  }

  #restMs(work: Work): number {
    return (this.#resting.get(work) ?? 0) - this.#platform.now();
  }

  #rest(work: Work): void {
    this.#platform.after!(Math.max(0, this.#restMs(work)), () => this.queueLast(work));
  }

  get #waiting(): number {
    return this.#queue.length + this.#sparse.length;
  }

  #usesLittle(work: Work): boolean {
    const used = (this.#usedMs.get(work) ?? 0) + (this.#usedMsBefore.get(work) ?? 0);
    return used < SHARE_MS_MIN && work !== this.#started;
  }

  #begin(): void {
    this.#isBusy = true;
    this.#startedAt = this.#lookedAt = this.#runningSince = this.#platform.now();
    this.#deferred = 0;
    this.#schedule();
  }

  #grant(messages: number): void {
    this.credit = this.#granted = Math.max(1, messages || 1);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#platform.atTickEnd(this.#tick);
  }

  /** Accounts for a tick and starts the next, which belongs to the queue. */
  #endTick(): void {
    this.#isScheduled = false;
    if (this.#isBusy) this.#account();
    this.#runEndTasks();
    if (this.#waiting === 0) return this.#forget();
    if (this.#isOver && this.#pollTicks++ < POLL_TICKS) return this.#schedule();
    if (this.#isOver) this.#polled();
    this.#runQueue();
  }

  #polled(): void {
    this.#isOver = false;
    this.#pollTicks = this.#busyMs = 0;
    this.#started = undefined;
    [this.#usedMs, this.#usedMsBefore] = [this.#usedMsBefore, this.#usedMs];
    this.#usedMs.clear();
  }

  /** Where nothing waits, none is before the others. */
  #forget(): void {
    this.#started = undefined;
    if (this.#usedMs.size > 0) this.#usedMs.clear();
    if (this.#usedMsBefore.size > 0) this.#usedMsBefore.clear();
  }

  /** What workers in this process did behind the messages of the tick counts, too. */
  #account(): void {
    const now = this.#platform.now();
    this.#isBusy = false;
    const ms = now - this.#startedAt;
    this.#busyMs += ms;
    this.#ran(now);
    for (const [work, until] of this.#resting) if (until <= now) this.#resting.delete(work);
    if (this.#busyMs >= TICK_MS) this.#isOver = true;
    if (this.#deferred === 0) return;
    const perMessage = (now - this.#lookedAt) / this.#deferred;
    const fair = Math.floor(Math.min(this.#shareMs(), DEFERRED_MS_MAX) / perMessage) || 1;
    this.#deferredMax = Math.max(1, Math.min(this.#deferredMax * 2, DEFERRED_MAX, fair));
  }

  #shareMs(): number {
    return Math.max(SHARE_MS_MIN, TICK_MS / (this.#waiting + 1));
  }

  #runEndTasks(): void {
    const tasks = this.#endTasks;
    if (tasks.length === 0) return;
    this.#endTasks = [];
    for (const task of tasks) task();
  }

  #runQueue(): void {
    this.#begin();
    const shareMs = this.#shareMs();
    let last: Work | undefined;
    // Each once at most, so that what ends with the tick is not delayed by a single one.
    for (let left = this.#waiting; left > 0 && !this.#isOver; left--) {
      const deferred = this.#deferred;
      if (deferred >= this.#deferredMax) break;
      const work = this.#next();
      if (this.#mustRest(work)) {
        this.#rest(work);
        continue;
      }
      const start = this.#lookedAt;
      this.#shareEndAt = start + shareMs;
      const hasMore = work.work();
      this.isSpent();
      const ms = this.#lookedAt - start;
      this.#usedMs.set(work, (this.#usedMs.get(work) ?? 0) + ms);
      if (ms >= LONG_MS) this.#makeRest(work, ms, this.#lookedAt);
      if (this.#deferred > deferred) last = work;
      if (hasMore) this.#mustRest(work) ? this.#rest(work) : this.#queue.push(work);
    }
    this.#running = last; // Workers in this process handle what it sent them now.
    this.#runningSince = this.#lookedAt;
  }

  /** Those that use little first, but not for more than half of a tick while others wait. */
  #next(): Work {
    const isSparseNext = this.#queue.length === 0 || this.#lookedAt - this.#startedAt < SPARSE_MS;
    return (isSparseNext ? this.#sparse.shift() : undefined) ?? this.#queue.shift() ??
      this.#sparse.shift()!;
  }
}
