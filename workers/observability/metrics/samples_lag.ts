/**
 * How late this process gets to what is due: the lag of its event loop.
 *
 * A task asks to run again and again after a short while and notes how late it runs. A loop that is
 * blocked in between makes one late run, however long it was blocked, and that run is in the next
 * reading.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import { LAG_PROBE_MS } from "../../limits.ts";
import { round } from "./samples_quantile.ts";

/** Lag in a while, in milliseconds. */
export interface Lag {
  readonly max_ms: number;
  readonly p99_ms: number;
}

/** Measures until it is disposed of. */
export class LagMeter implements Disposable {
  readonly #clock: Clock;
  #lags: number[] = [];
  #dueMs: number;
  #cancel: () => void;

  /** Begins at once. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#dueMs = clock.now() + LAG_PROBE_MS;
    this.#cancel = clock.after(LAG_PROBE_MS, () => this.#run());
  }

  /** Since the last reading; a run that is overdue counts with what it is late by now. */
  read(): Lag {
    const overdueMs = this.#clock.now() - this.#dueMs;
    const lags = overdueMs > 0 ? [...this.#lags, overdueMs] : this.#lags;
    this.#lags = [];
    lags.sort((a, b) => a - b);
    const at = Math.max(0, Math.ceil(lags.length * 0.99) - 1);
    return { max_ms: round(lags.at(-1) ?? 0), p99_ms: round(lags[at] ?? 0) };
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #run(): void {
    const now = this.#clock.now();
    this.#lags.push(Math.max(0, now - this.#dueMs));
    this.#dueMs = now + LAG_PROBE_MS;
    this.#cancel = this.#clock.after(LAG_PROBE_MS, () => this.#run());
  }
}
