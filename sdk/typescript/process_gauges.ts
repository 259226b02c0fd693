/**
 * Gauges of this process: memory, CPU, and the lag of its event loop.
 *
 * Memory and CPU come from the platform; the lag is how late a short timer fires. Nothing is
 * measured in a browser, which reports neither and slows down the timers of hidden pages.
 *
 * @module
 */
import type { Gauge } from "./otlp.ts";
import { attempt, processGlobal, type WorkerClock } from "./platform.ts";

/** Interval of samples of the event loop's lag. */
const LOOP_LAG_SAMPLE_MS = 50;
/** Most samples between two reads: those of a minute. */
const LAGS_MAX = 60_000 / LOOP_LAG_SAMPLE_MS;

/** The parts of `process` that are used. */
export interface MeasuredProcess {
  memoryUsage?(): { readonly rss: number };
  /** Microseconds of CPU time since the process started. */
  cpuUsage?(): { readonly user: number; readonly system: number };
}

/** The gauges of this process. */
export class ProcessGauges {
  readonly #clock: WorkerClock;
  readonly #process: MeasuredProcess | undefined;
  readonly #lags: number[] = [];
  #cancel: (() => void) | undefined;
  #readAt = 0;
  #cpuMicros: number | undefined;

  /** Tests pass another `process`. */
  constructor(
    clock: WorkerClock,
    process: MeasuredProcess | undefined = processGlobal() as MeasuredProcess | undefined,
  ) {
    this.#clock = clock;
    this.#process = process;
  }

  /** Starts the measurement. */
  start(): void {
    if (!this.#process || this.#cancel) return;
    this.#readAt = this.#clock.now();
    this.#cpuMicros = this.#readCpu();
    this.#sample();
  }

  /** Ends the measurement. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#lags.length = 0;
  }

  /** The gauges since the last call; empty while nothing is measured. */
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

  /** Share of one processor since the last call; 1 is all of it. */
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
      // Without a connection there are no reads: only the newest samples are kept.
      if (this.#lags.length >= LAGS_MAX) this.#lags.shift();
      this.#lags.push(Math.max(0, this.#clock.now() - due));
      this.#sample();
    });
  }
}
