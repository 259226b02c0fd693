/**
 * The next jobs of one lane, in memory; the rest of a long lane stays on disk.
 *
 * All jobs up to the cursor are here or run; those behind it are read when few are left. While
 * `isComplete`, there are none behind it, and a new job comes here without being read.
 *
 * @module
 */
import type { StoredJob } from "./job_store.ts";

/** Jobs that arrive while a page of their lane is read. */
const ARRIVED_MAX = 1_000;

/** What a lane asks for memory. */
export interface LaneRoom {
  /** Jobs of one lane in memory. */
  readonly lengthMax: number;
  /** Takes memory for a job; `isFirst`: its lane has no other one, so it has to be there. */
  take(bytes: number, isFirst: boolean): boolean;
  release(bytes: number): void;
}

/** A lane of a queue. */
export class Lane {
  readonly name: string;
  readonly #room: LaneRoom;
  /** In their order. */
  readonly #jobs: StoredJob[] = [];
  /** Orders of jobs that are here or run. */
  readonly #known = new Set<string>();
  #cursor = "";
  #isComplete: boolean;
  /** Jobs that came while a page is read; `undefined`: none is. */
  #arrived: StoredJob[] | undefined;
  /** Jobs that run. */
  running = 0;
  /** The lane begins no job before this time, in milliseconds since 1970. */
  restsUntil = 0;
  /** Calls the timer of the rest off; `undefined`: no timer. */
  cancelRest: (() => void) | undefined;
  /** What its next job waits for. */
  gate: string | undefined;

  /** `isComplete`: nothing of it is on disk. */
  constructor(name: string, room: LaneRoom, isComplete: boolean) {
    this.name = name;
    this.#room = room;
    this.#isComplete = isComplete;
  }

  /** The next job. */
  get head(): StoredJob | undefined {
    return this.#jobs[0];
  }

  /** Nothing of it waits or runs, here or on disk. */
  get isEmpty(): boolean {
    return this.#isComplete && this.#known.size === 0 && !this.#arrived;
  }

  /** A page is to be read. */
  get isShort(): boolean {
    return !this.#isComplete && !this.#arrived && this.#jobs.length <= this.#room.lengthMax >> 2;
  }

  /** Jobs in memory. */
  get length(): number {
    return this.#jobs.length;
  }

  /** Takes the next job out to run it. */
  shift(): StoredJob | undefined {
    return this.#jobs.shift();
  }

  /** A new job is on disk. */
  arrive(stored: StoredJob): void {
    if (!this.#arrived) this.#offer(stored);
    else if (this.#arrived.length < ARRIVED_MAX) this.#arrived.push(stored);
  }

  /** A job that ran waits again. */
  putBack(stored: StoredJob): void {
    this.#jobs.splice(this.#placeOf(stored.order), 0, stored);
  }

  /** A job that ran is no longer in this lane. */
  forget(stored: StoredJob): void {
    this.#known.delete(stored.order);
    this.#room.release(stored.bytes);
  }

  /** Reads the page behind the cursor. */
  async fill(
    read: (lane: string, limit: number, after: string) => Promise<{
      readonly jobs: readonly StoredJob[];
      readonly isLast: boolean;
    }>,
  ): Promise<void> {
    this.#arrived = [];
    try {
      const limit = this.#room.lengthMax;
      const { jobs, isLast } = await read(this.name, limit, this.#cursor);
      this.addRead(jobs, isLast);
    } finally {
      const arrived = this.#arrived;
      this.#arrived = undefined;
      // Those that found no place are on disk.
      if (arrived.length === ARRIVED_MAX) this.#isComplete = false;
      for (const stored of arrived) this.#offer(stored);
    }
  }

  /** Adds jobs that were read, which follow the cursor; `isLast`: there are no more. */
  addRead(jobs: readonly StoredJob[], isLast: boolean): void {
    for (const stored of jobs) {
      if (this.#known.has(stored.order)) {
        this.#cursor = maxOf(this.#cursor, stored.order);
        continue;
      }
      if (!this.#add(stored)) return;
      this.#cursor = stored.order;
    }
    this.#isComplete = isLast;
  }

  /** Drops all jobs that do not run: they are read again. */
  clear(): void {
    for (const stored of this.#jobs) this.forget(stored);
    this.#jobs.length = 0;
    this.#cursor = "";
    this.#isComplete = false;
  }

  #offer(stored: StoredJob): void {
    if (this.#known.has(stored.order)) return;
    if (!this.#isComplete && stored.order > this.#cursor) return; // It is read later.
    if (this.#jobs.length >= this.#room.lengthMax) {
      const last = this.#jobs.at(-1)!;
      if (stored.order > last.order) return this.#leave(last.order);
      this.#jobs.pop();
      this.forget(last);
      this.#leave(this.#jobs.at(-1)?.order ?? "");
    }
    if (this.#add(stored)) {
      if (this.#isComplete) this.#cursor = maxOf(this.#cursor, stored.order);
    } else this.#leave(this.#jobs.findLast(({ order }) => order < stored.order)?.order ?? "");
  }

  /** What is behind an order is read later. */
  #leave(cursor: string): void {
    while (this.#jobs.length > 0 && this.#jobs.at(-1)!.order > cursor) {
      this.forget(this.#jobs.pop()!);
    }
    this.#cursor = cursor;
    this.#isComplete = false;
  }

  #add(stored: StoredJob): boolean {
    if (!this.#room.take(stored.bytes, this.#known.size === 0)) return false;
    this.#known.add(stored.order);
    this.putBack(stored);
    return true;
  }

  #placeOf(order: string): number {
    let low = 0;
    let high = this.#jobs.length;
    if (high === 0 || this.#jobs[high - 1]!.order < order) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#jobs[middle]!.order < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function maxOf(a: string, b: string): string {
  return a > b ? a : b;
}
