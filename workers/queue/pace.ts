/**
 * Time in a queue: timers that end with it, its rate, and the delay behind a failed attempt.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { QueueSettings } from "../../engine/ports/queue.ts";

/** Longest timer for a time of the day: the clock may have been set meanwhile. */
export const TIMER_MS_MAX = 60_000;

/** Timers that are called off together. */
export class Timers {
  readonly #clock: Clock;
  readonly #cancels = new Set<() => void>();
  readonly #ending: AbortSignal;

  /** `ending`: no timer runs from then on, and every pause is over. */
  constructor(clock: Clock, ending: AbortSignal) {
    this.#clock = clock;
    this.#ending = ending;
    ending.addEventListener("abort", () => this.#cancels.forEach((cancel) => cancel()));
  }

  /** Runs `then` once; call the result to cancel. */
  after(ms: number, then: () => void): () => void {
    if (this.#ending.aborted) return () => {};
    const cancel = this.#clock.after(ms, () => {
      this.#cancels.delete(cancelled);
      then();
    });
    const cancelled = (): void => {
      this.#cancels.delete(cancelled);
      cancel();
    };
    this.#cancels.add(cancelled);
    return cancelled;
  }

  /** Waits, at most until the end. */
  pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#ending.aborted) resolve();
    const ended = (): void => resolve();
    this.#ending.addEventListener("abort", ended, { once: true });
    this.after(ms, () => {
      this.#ending.removeEventListener("abort", ended);
      resolve();
    });
    return promise;
  }
}

/** Lets so many jobs begin within a time: a bucket that fills evenly. */
export class Rate {
  readonly #clock: Pick<Clock, "now">;
  #rate: QueueSettings["rate"];
  #tokens = 0;
  #countedAt = 0;

  constructor(clock: Pick<Clock, "now">, rate: QueueSettings["rate"]) {
    this.#clock = clock;
    this.#countedAt = clock.now();
    this.#rate = rate;
    this.#tokens = rate?.jobs ?? 0;
  }

  /** Another rate from now on. */
  set rate(rate: QueueSettings["rate"]) {
    this.#count();
    this.#tokens = rate ? Math.min(this.#rate ? this.#tokens : rate.jobs, rate.jobs) : 0;
    this.#rate = rate;
  }

  /** Milliseconds until a job may begin; 0: now. */
  get waitMs(): number {
    if (!this.#rate) return 0;
    this.#count();
    const { jobs, per_ms } = this.#rate;
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) * per_ms / jobs);
  }

  /** A job begins. */
  take(): void {
    this.#count();
    if (this.#rate) this.#tokens--;
  }

  #count(): void {
    const now = this.#clock.now();
    if (this.#rate) {
      const { jobs, per_ms } = this.#rate;
      this.#tokens = Math.min(jobs, this.#tokens + (now - this.#countedAt) * jobs / per_ms);
    }
    this.#countedAt = now;
  }
}

/** The delay behind the n-th failed attempt; `random` is 0 to 1. */
export function backoffMs(settings: QueueSettings, attempts: number, random: number): number {
  const { backoff_ms, backoff_max_ms, jitter } = settings;
  const plain = Math.min(backoff_max_ms, backoff_ms * 2 ** (attempts - 1));
  return Math.round(plain * (1 + jitter * (2 * random - 1)));
}
