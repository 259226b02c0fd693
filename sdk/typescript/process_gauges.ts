/**
 * What this process uses, and how late its event loop is.
 *
 * Memory and processor come from the platform; lateness is measured by a short timer, since that is
 * what a call that arrives feels. A browser tells neither, and slows timers of hidden pages down:
 * there nothing is measured.
 *
 * @module
 */
import { attempt, processGlobal, type WorkerClock } from "./platform.ts";
import { LOOP_LAG_SAMPLE_MS } from "./wire/limits.ts";
import type { Gauge } from "./otlp.ts";

/** The parts of `process` that are read. */
export interface MeasuredProcess {
  memoryUsage?(): { readonly rss: number };
  /** Microseconds of processor time since the process started. */
  cpuUsage?(): { readonly user: number; readonly system: number };
}

/** Measures this process from {@linkcode ProcessGauges.start} to {@linkcode ProcessGauges.stop}. */
export class ProcessGauges {
  readonly #clock: WorkerClock;
  readonly #process: MeasuredProcess | undefined;
  readonly #lags: number[] = [];
  #cancel: (() => void) | undefined;
  #readAt = 0;
  #cpuMicros: number | undefined;

  /** Measures nothing yet; `process` is another one in tests only. */
  constructor(
    clock: WorkerClock,
    process: MeasuredProcess | undefined = processGlobal() as MeasuredProcess | undefined,
  ) {
    this.#clock = clock;
    this.#process = process;
  }

  /** Starts to measure. */
  start(): void {
    if (!this.#process || this.#cancel) return;
    this.#readAt = this.#clock.now();
    this.#cpuMicros = this.#readCpu();
    this.#sample();
  }

  /** Measures no more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#lags.length = 0;
  }

  /** What was measured since the last time; empty where nothing can be. */
  read(): Gauge[] {
    if (!this.#cancel) return [];
    const gauges: Gauge[] = [];
    const memory = attempt(() => this.#process?.memoryUsage?.().rss);
    if (memory !== undefined) {
      gauges.push({ name: "process.memory.usage", unit: "By", value: memory });
    }
    const cpu = this.#cpuShare();
    if (cpu !== undefined) gauges.push({ name: "process.cpu.utilization", unit: "1", value: cpu });
    const lags = this.#lags.splice(0).sort((one, other) => one - other);
    if (lags.length > 0) {
      const p99 = lags[Math.ceil(lags.length * 0.99) - 1]!;
      gauges.push({ name: "engine.event_loop.lag.p99", unit: "s", value: p99 / 1_000 });
      gauges.push({ name: "engine.event_loop.lag.max", unit: "s", value: lags.at(-1)! / 1_000 });
    }
    return gauges;
  }

  /** Part of one processor since the last time; 1: all of it. */
  #cpuShare(): number | undefined {
    const [now, micros] = [this.#clock.now(), this.#readCpu()];
    const before = this.#cpuMicros;
    const elapsedMs = now - this.#readAt;
    this.#readAt = now;
    this.#cpuMicros = micros;
    if (micros === undefined || before === undefined || elapsedMs <= 0) return undefined;
    return Math.max(0, micros - before) / 1_000 / elapsedMs;
  }

  #readCpu(): number | undefined {
    const usage = attempt(() => this.#process?.cpuUsage?.());
    return usage && usage.user + usage.system;
  }

  #sample(): void {
    const due = this.#clock.now() + LOOP_LAG_SAMPLE_MS;
    this.#cancel = this.#clock.after(LOOP_LAG_SAMPLE_MS, () => {
      // Nobody reads while there is no line: the newest of a bounded number are kept.
      if (this.#lags.length >= LAGS_MAX) this.#lags.shift();
      this.#lags.push(Math.max(0, this.#clock.now() - due));
      this.#sample();
    });
  }
}

/** Kept between two readings: those of a minute. */
const LAGS_MAX = 60_000 / LOOP_LAG_SAMPLE_MS;
