/**
 * The HTTP requests that run now: how many, until when, and whether their clients are still there.
 *
 * A request costs no timer and no listener. One clock task looks at all of them every
 * `HTTP_WATCH_MS`: from then on it listens for the client's leave, which most requests never
 * live to see, and it ends what waits beyond its deadline.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { HTTP_WATCH_MS } from "../limits.ts";
import { CallSignal } from "./call_signal.ts";

/** Why a request was ended from outside. */
export type End = "client gone" | "timeout" | "stopped";

/** One request that runs. */
export class RunningRequest {
  readonly request: Request;
  /** When it came, on the clock. */
  readonly startedAt: number;
  /** On the clock; nothing of the request may take longer. */
  readonly deadline: number;
  /** Why it was ended from outside; `undefined` while it was not. */
  end: End | undefined;
  /** Whether the client's leave is listened for. */
  isWatched = false;
  /** Whether its body is still arriving. */
  isReading = false;
  /** For calls: aborted when the client is gone or the worker stops. */
  readonly signal: CallSignal = new CallSignal();
  /** Where it is among those that run; -1: it is over. */
  place = -1;
  /** Lets go of what is still arriving. */
  giveUpBody: (() => void) | undefined;
  #giveUp: ((error: Error) => void) | undefined;

  /** Stores. */
  constructor(request: Request, startedAt: number, deadline: number) {
    this.request = request;
    this.startedAt = startedAt;
    this.deadline = deadline;
  }

  /**
   * Waits for something that knows no deadline itself.
   *
   * @throws {Error} When the request is ended first; `end` says why.
   */
  race<T>(task: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#giveUp = reject;
      task.then(resolve, reject);
      if (this.end) reject(new Error(this.end));
    });
  }

  /** Waits for the body; {@linkcode isReading} stays `true` when that fails. */
  read<T>(body: Promise<T>): Promise<T> {
    this.isReading = true;
    return this.race(body.then((value) => {
      if (!this.end) this.isReading = false;
      return value;
    }));
  }

  /** Ends it; only the first end counts. */
  stop(end: End): void {
    if (this.end) return;
    this.end = end;
    this.#giveUp?.(new Error(end));
    if (this.isReading) this.giveUpBody?.();
    // The engine ends calls at their deadline by itself, and says so to the callee.
    if (end !== "timeout") this.signal.abort(new Error(end));
  }
}

/** All requests that run. */
export class RunningRequests {
  readonly #clock: Clock;
  /** In any order. No `Set`: see `TurnoverMap`. */
  readonly #running: RunningRequest[] = [];
  readonly #timeoutMs: number;
  readonly #max: number;
  #cancelSweep: (() => void) | undefined;

  /** `timeoutMs`: of each request; `max`: how many may run at once. */
  constructor(clock: Clock, timeoutMs: number, max: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#max = max;
  }

  /** How many run. */
  get size(): number {
    return this.#running.length;
  }

  /** Takes a request in; `undefined` when too many run. */
  enter(request: Request): RunningRequest | undefined {
    if (this.#running.length >= this.#max) return undefined;
    const now = this.#clock.now();
    const running = new RunningRequest(request, now, now + this.#timeoutMs);
    running.place = this.#running.push(running) - 1;
    this.#cancelSweep ??= this.#clock.after(HTTP_WATCH_MS, () => this.#sweep());
    return running;
  }

  /** The request is answered; a second time does nothing. */
  leave(running: RunningRequest): void {
    const { place } = running;
    if (place < 0) return;
    running.place = -1;
    const last = this.#running.pop()!;
    if (last === running) return;
    this.#running[place] = last;
    last.place = place;
  }

  /** Whole milliseconds that are left for a request; 1 at least. */
  left(running: RunningRequest): number {
    return Math.max(1, Math.ceil(running.deadline - this.#clock.now()));
  }

  /** Ends all requests: the worker stops. */
  stop(): void {
    for (const running of [...this.#running]) running.stop("stopped");
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#clock.now();
    for (const running of [...this.#running]) {
      if (now >= running.deadline) running.stop("timeout");
      else if (!running.isWatched) this.#watch(running, now);
    }
    if (this.#running.length > 0) {
      this.#cancelSweep = this.#clock.after(HTTP_WATCH_MS, () => this.#sweep());
    }
  }

  #watch(running: RunningRequest, now: number): void {
    if (now - running.startedAt < HTTP_WATCH_MS) return; // Most are answered before the next look.
    running.isWatched = true;
    const { signal } = running.request;
    if (signal.aborted) running.stop("client gone");
    // Deno also aborts when the answer was sent; then the request does not run any more.
    else signal.addEventListener("abort", () => this.#gone(running), { once: true });
  }

  #gone(running: RunningRequest): void {
    if (running.place >= 0) running.stop("client gone");
  }
}
