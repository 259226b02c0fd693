/**
 * Searches of traces and logs share a part of the engine's thread, and take turns.
 *
 * A search begins at once while that part is not used up. What is not done after
 * {@linkcode SEARCH_SLICE_MS} goes on in slices after timers, as does what comes later; in between,
 * calls are handled. A few callers have one such search each; what else is asked waits, and callers
 * that wait are served one after the other, however much each of them asks.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Time of searches before other work is done, in milliseconds. */
export const SEARCH_SLICE_MS = 2;
/** Part of the thread's time for searches and their answers. */
const SEARCH_TIME_SHARE = 0.5;
/** Unused time of that part that searches may use later; the last one may take a slice more. */
const CREDIT_MS_MAX = 1;
/** Estimated time of an answer without its items. */
const ANSWER_MS = 0.1;
/** Estimated memory of items of which an answer is written in a millisecond. */
export const BYTES_PER_MS = 256 * 1024;
/** Searches under way, each of another caller. */
export const SEARCHES_AT_ONCE_MAX = 4;
/** Searches of one caller that wait. */
export const SEARCHES_PER_CALLER_MAX = 64;
/** Searches that wait, of all callers. */
export const SEARCHES_WAITING_MAX = 1_024;
/** Steps of a search after which the time is checked. */
const STEPS = 16;

/** Work in short steps; before each of them, it yields if {@linkcode Turn.isOver}. */
export type Search<Found> = Generator<void, Found, void>;

/** The time that a search has. */
export interface Turn {
  /** Whether to yield now. */
  isOver(): boolean;
  /** Counts an item of the answer, of so many bytes: to write it takes longer than to find it. */
  charge(bytes: number): void;
}

/** A search that waits or is under way. */
interface Asked {
  readonly caller: string;
  /** Goes on until it yields or ends; whether it ended. Never throws. */
  work(): boolean;
}

/** See the module. */
export class SearchTurns {
  readonly #clock: Clock;
  /** By caller; the next one first. */
  readonly #waiting = new Map<string, Asked[]>();
  #waitingCount = 0;
  /** Under way; the next one first. */
  #active: Asked[] = [];
  readonly #turn: Turn = {
    isOver: () => this.#isOver(),
    charge: (bytes) => void (this.#creditMs -= bytes / BYTES_PER_MS),
  };
  /** Time that searches may take, as of `#creditAt`; negative when they took more. */
  #creditMs = CREDIT_MS_MAX;
  #creditAt = 0;
  #sliceEnd = 0;
  #steps = 0;
  #isPausing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs a search when it is its caller's turn; callers without an id count as one. Returns what
   * it found, or a promise if that takes longer.
   *
   * @throws {EngineError} `overloaded` when too many searches wait.
   */
  take<Found>(
    caller: string | undefined,
    search: (turn: Turn) => Search<Found>,
  ): Found | Promise<Found> {
    const id = caller ?? "";
    const work = search(this.#turn);
    const canStart = this.#canStart(id);
    if (!canStart) checkRoom(this.#waiting.get(id)?.length ?? 0, this.#waitingCount);
    if (this.#active.length === 0 && this.#begin()) {
      const first = this.#account(() => work.next());
      if (first.done) return first.value;
    }
    return new Promise((resolve, reject) => {
      const asked = { caller: id, work: () => settled(work, resolve, reject) };
      if (canStart) this.#active.push(asked);
      else this.#wait(asked);
      this.#pause();
    });
  }

  #canStart(caller: string): boolean {
    return this.#active.length < SEARCHES_AT_ONCE_MAX &&
      !this.#active.some((search) => search.caller === caller);
  }

  #wait(search: Asked): void {
    const queue = this.#waiting.get(search.caller) ?? [];
    queue.push(search);
    this.#waiting.set(search.caller, queue);
    this.#waitingCount++;
  }

  /** Begins a slice; `false` when searches have used up their part. */
  #begin(): boolean {
    const now = this.#clock.now();
    const more = (now - this.#creditAt) * SEARCH_TIME_SHARE;
    this.#creditMs = Math.min(CREDIT_MS_MAX, this.#creditMs + more);
    this.#creditAt = now;
    this.#sliceEnd = now + SEARCH_SLICE_MS;
    return this.#creditMs > 0;
  }

  #account<Result>(work: () => Result): Result {
    const start = this.#clock.now();
    try {
      return work();
    } finally {
      this.#creditMs -= this.#clock.now() - start;
    }
  }

  /** Sockets are read before a timer ends. */
  #pause(): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    const ms = Math.max(1, -this.#creditMs / SEARCH_TIME_SHARE);
    this.#clock.after(ms, () => {
      this.#isPausing = false;
      if (this.#begin()) this.#workOn();
      if (this.#active.length > 0) this.#pause();
    });
  }

  #workOn(): void {
    while (this.#active.length > 0 && this.#creditMs > 0) {
      const search = this.#active.shift()!;
      if (this.#account(() => search.work())) {
        this.#creditMs -= ANSWER_MS;
        this.#admit();
      } else {
        this.#active.push(search);
      }
      if (this.#clock.now() >= this.#sliceEnd) return;
    }
  }

  /** Starts the next searches of callers that wait. */
  #admit(): void {
    for (const [caller, queue] of this.#waiting) {
      if (this.#active.length >= SEARCHES_AT_ONCE_MAX) return;
      if (!this.#canStart(caller)) continue;
      this.#waiting.delete(caller);
      this.#active.push(queue.shift()!);
      this.#waitingCount--;
      if (queue.length > 0) this.#waiting.set(caller, queue); // Behind the other callers.
    }
  }

  #isOver(): boolean {
    return ++this.#steps % STEPS === 0 && this.#clock.now() >= this.#sliceEnd;
  }
}

/** Goes on with a search; whether it ended. */
function settled<Found>(
  work: Search<Found>,
  resolve: (found: Found) => void,
  reject: (thrown: unknown) => void,
): boolean {
  try {
    const { done, value } = work.next();
    if (done) resolve(value);
    return done === true;
  } catch (thrown) {
    reject(thrown);
    return true;
  }
}

function checkRoom(ofCaller: number, ofAll: number): void {
  if (ofCaller < SEARCHES_PER_CALLER_MAX && ofAll < SEARCHES_WAITING_MAX) return;
  const message = ofCaller >= SEARCHES_PER_CALLER_MAX
    ? `${ofCaller} searches of this caller wait already, the maximum; send the next one after ` +
      "an answer"
    : `${ofAll} searches wait already, the maximum; try again later`;
  throw new EngineError("overloaded", message);
}
