/**
 * Samples the engine, its functions and its workers once per second.
 *
 * The meters are read once per second however many consumers there are; a consumer with a longer
 * interval merges samples ({@linkcode SampleWindow}). {@linkcode LagMeter} measures the event loop,
 * {@linkcode readProcess} the process.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { StoreStats } from "../../../engine/ports/store.ts";
import type { Meters } from "../../../engine/ports/telemetry.ts";
import { addCounts, CountReader, DeltaSum, type FunctionDelta, quantile, round } from "./meters.ts";
import type { WorkerMonitor, WorkerSample } from "./workers.ts";

/** Interval of measuring the lag of the engine's event loop, in milliseconds. */
export const LAG_PROBE_MS = 50;
/** Interval of samples, in milliseconds. */
export const METRICS_STEP_MS = 1_000;
/** Functions in one sample; the busiest. */
export const METRICS_SAMPLE_FUNCTIONS_MAX = 2_000;
/** Longest time that one sample may cover, in steps. */
export const WINDOW_STEPS_MAX = 10;
/** Interval of reading the usage of processes while metrics are read, in milliseconds. */
const USAGE_QUERY_MS = 2_000;
/** The same while no client reads metrics. */
const USAGE_QUERY_IDLE_MS = 10_000;
/** A client counts as reading metrics for this long after a request, in milliseconds. */
const METRICS_READ_MS = 60_000;

/**
 * The engine during an interval. Excludes calls of `engine::*` and of internal functions, most of
 * which are made to read metrics.
 */
export interface EngineSample {
  readonly calls_per_s: number;
  readonly errors_per_s: number;
  /** `null` if no call ended. */
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  /** This and the next three: at the end of the interval. */
  readonly in_flight: number;
  readonly held: number;
  readonly lines: number;
  readonly queued_bytes: number;
  /** The largest of the interval. */
  readonly event_loop_lag_ms: number;
  readonly event_loop_lag_p99_ms: number;
  readonly memory_bytes: number;
  readonly heap_bytes: number;
  /** 100: one CPU; `null`: unknown. */
  readonly cpu_percent: number | null;
  readonly state_commits_per_s: number;
  /** Unexpected exits of supervised workers since the engine started. */
  readonly restarts: number;
}

/** The engine's values that alerts may refer to. */
export const ENGINE_VALUES = [
  "calls_per_s",
  "errors_per_s",
  "p50_ms",
  "p99_ms",
  "in_flight",
  "held",
  "lines",
  "queued_bytes",
  "event_loop_lag_ms",
  "memory_bytes",
  "heap_bytes",
  "cpu_percent",
  "state_commits_per_s",
  "restarts",
] as const satisfies readonly (keyof EngineSample)[];

/** A function during an interval. */
export interface FunctionSample {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls_per_s: number;
  readonly errors_per_s: number;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly in_flight: number;
}

/** A complete sample. */
export interface MetricsSample {
  /** End of the interval, in milliseconds since 1970. */
  readonly at_ms: number;
  readonly interval_ms: number;
  readonly engine: EngineSample;
  /** Functions that were called or are running, the busiest first. */
  readonly functions: readonly FunctionSample[];
  readonly workers: readonly WorkerSample[];
}

/** Raw counts of an interval: one second, or several merged. */
export interface Interval {
  readonly at_ms: number;
  readonly interval_ms: number;
  readonly functions: readonly FunctionDelta[];
  readonly lag: Lag;
  readonly process: ProcessUsage;
  readonly cpu_percent: number | null;
  readonly commits: number;
}

/** Dependencies of {@linkcode Sampler}. */
export interface SamplerParts {
  readonly clock: Clock;
  readonly meters: Meters;
  readonly directory: Pick<Directory, "function">;
  readonly stats: StoreStats;
  readonly workers: WorkerMonitor;
  /** Current usage of this process. */
  process(): ProcessUsage;
}

/** Samples each second until disposed. */
export class Sampler implements Disposable {
  readonly #parts: SamplerParts;
  readonly #counts: CountReader;
  readonly #lag: LagMeter;
  readonly #cpu: CpuShare;
  readonly #listeners = new Set<(interval: Interval, sample: MetricsSample) => void>();
  #commits: number;
  #atMs: number;
  #readAtMs = -Infinity;
  #latest: MetricsSample;
  /** The last {@linkcode WINDOW_STEPS_MAX} intervals. */
  readonly #recent: Interval[] = [];
  #cancel: () => void;

  /** Starts at once; the first sample is complete after one second. */
  constructor(parts: SamplerParts) {
    this.#parts = parts;
    const { clock, meters, directory, stats } = parts;
    const process = parts.process();
    this.#counts = new CountReader(meters, directory);
    this.#lag = new LagMeter(clock);
    this.#cpu = new CpuShare(clock, process.cpu_seconds);
    this.#commits = stats.commits;
    this.#atMs = clock.now();
    this.#latest = this.sampleOf({
      at_ms: clock.wall(),
      interval_ms: METRICS_STEP_MS,
      functions: [],
      lag: { max_ms: 0, p99_ms: 0 },
      process,
      cpu_percent: null,
      commits: 0,
    });
    this.#cancel = clock.after(METRICS_STEP_MS, () => this.#tick());
  }

  /** The last sample; before the first one, a sample without calls. */
  get latest(): MetricsSample {
    return this.#latest;
  }

  /** The last steps as one sample, at most {@linkcode WINDOW_STEPS_MAX}. */
  window(steps: number): MetricsSample {
    if (steps === 1) return this.#latest;
    const window = new SampleWindow();
    for (const interval of this.#recent.slice(-steps)) window.add(interval);
    const merged = window.take();
    return merged ? this.sampleOf(merged) : this.#latest;
  }

  /** Records that metrics are being read: processes are then queried more often for a while. */
  markRead(): void {
    this.#readAtMs = this.#parts.clock.now();
  }

  /** Calls the listener synchronously every second; it must not throw. Call the result to stop. */
  listen(listener: (interval: Interval, sample: MetricsSample) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Converts raw counts to a sample. */
  sampleOf(interval: Interval): MetricsSample {
    const { meters, workers } = this.#parts;
    const { interval_ms, functions, lag, process, cpu_percent } = interval;
    const seconds = interval_ms / 1_000;
    const durations = new Float64Array(meters.bounds_ms.length + 1);
    let [calls, errors] = [0, 0];
    for (const delta of functions) {
      if (delta.kind !== "user") continue;
      calls += delta.calls;
      errors += delta.errors;
      addCounts(durations, delta.durations);
    }
    const { running, parked, connections, queued_bytes } = meters.load();
    return {
      at_ms: interval.at_ms,
      interval_ms: Math.round(interval_ms),
      engine: {
        calls_per_s: round(calls / seconds),
        errors_per_s: round(errors / seconds),
        p50_ms: quantile(meters.bounds_ms, durations, 0.5),
        p99_ms: quantile(meters.bounds_ms, durations, 0.99),
        in_flight: running,
        held: parked,
        lines: connections,
        queued_bytes,
        event_loop_lag_ms: lag.max_ms,
        event_loop_lag_p99_ms: lag.p99_ms,
        memory_bytes: process.memory_bytes,
        heap_bytes: process.heap_bytes,
        cpu_percent,
        state_commits_per_s: round(interval.commits / seconds),
        restarts: workers.restarts,
      },
      functions: this.#functionSamples(functions, seconds),
      workers: workers.samples(),
    };
  }

  [Symbol.dispose](): void {
    this.#cancel();
    this.#lag[Symbol.dispose]();
    this.#listeners.clear();
  }

  #functionSamples(functions: readonly FunctionDelta[], seconds: number): FunctionSample[] {
    const { bounds_ms } = this.#parts.meters;
    return functions.filter(({ kind }) => kind !== "hidden")
      .sort((a, b) => b.calls - a.calls || b.in_flight - a.in_flight)
      .slice(0, METRICS_SAMPLE_FUNCTIONS_MAX)
      .map(({ function_id, namespace, calls, errors, in_flight, durations }) => ({
        function_id,
        namespace,
        calls_per_s: round(calls / seconds),
        errors_per_s: round(errors / seconds),
        p50_ms: quantile(bounds_ms, durations, 0.5),
        p99_ms: quantile(bounds_ms, durations, 0.99),
        in_flight,
      }));
  }

  #tick(): void {
    const { clock, workers, stats } = this.#parts;
    const now = clock.now();
    this.#cancel = clock.after(METRICS_STEP_MS, () => this.#tick());
    const isRead = now - this.#readAtMs < METRICS_READ_MS;
    void workers.refresh(isRead ? USAGE_QUERY_MS : USAGE_QUERY_IDLE_MS);
    const process = this.#parts.process();
    const interval: Interval = {
      at_ms: clock.wall(),
      interval_ms: Math.max(1, now - this.#atMs),
      functions: this.#counts.read(),
      lag: this.#lag.read(),
      process,
      cpu_percent: this.#cpu.read(process.cpu_seconds),
      commits: stats.commits - this.#commits,
    };
    this.#atMs = now;
    this.#commits = stats.commits;
    this.#latest = this.sampleOf(interval);
    this.#recent.push(interval);
    if (this.#recent.length > WINDOW_STEPS_MAX) this.#recent.shift();
    for (const listener of [...this.#listeners]) listener(interval, this.#latest);
  }
}

/** Merges successive intervals. */
export class SampleWindow {
  readonly #sum = new DeltaSum();
  #last: Interval | undefined;
  #intervalMs = 0;
  #commits = 0;
  #lag: Lag = { max_ms: 0, p99_ms: 0 };

  /** Total length of the added intervals. */
  get interval_ms(): number {
    return this.#intervalMs;
  }

  add(interval: Interval): void {
    this.#last = interval;
    this.#sum.add(interval.functions);
    this.#intervalMs += interval.interval_ms;
    this.#commits += interval.commits;
    this.#lag = {
      max_ms: Math.max(this.#lag.max_ms, interval.lag.max_ms),
      p99_ms: Math.max(this.#lag.p99_ms, interval.lag.p99_ms),
    };
  }

  /** The merged interval, if any; then starts over. */
  take(): Interval | undefined {
    const last = this.#last;
    if (!last) return undefined;
    const taken: Interval = {
      ...last,
      interval_ms: this.#intervalMs,
      functions: this.#sum.functions,
      lag: this.#lag,
      commits: this.#commits,
    };
    this.#sum.clear();
    this.#last = undefined;
    this.#intervalMs = 0;
    this.#commits = 0;
    this.#lag = { max_ms: 0, p99_ms: 0 };
    return taken;
  }
}

/** Lag during an interval, in milliseconds. */
export interface Lag {
  readonly max_ms: number;
  readonly p99_ms: number;
}

/**
 * Measures event-loop lag: how late a repeated short timer runs.
 *
 * A blocked event loop causes one late run, which the next reading contains.
 */
export class LagMeter implements Disposable {
  readonly #clock: Clock;
  #lags: number[] = [];
  #dueMs: number;
  #cancel: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#dueMs = clock.now() + LAG_PROBE_MS;
    this.#cancel = clock.after(LAG_PROBE_MS, () => this.#run());
  }

  /** The lag since the last reading; an overdue run counts with its delay so far. */
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

/** Resource usage of a process. */
export interface ProcessUsage {
  /** Resident memory. */
  readonly memory_bytes: number;
  readonly heap_bytes: number;
  /** CPU time since the process started. */
  readonly cpu_seconds: number;
}

/** Current usage of this process. */
export function readProcess(): ProcessUsage {
  const { rss, heapUsed } = Deno.memoryUsage();
  return { memory_bytes: rss, heap_bytes: heapUsed, cpu_seconds: cpuSeconds() };
}

/** CPU usage between two readings; 100 is one CPU. */
export class CpuShare {
  readonly #clock: Pick<Clock, "now">;
  #atMs: number;
  #seconds: number;

  constructor(clock: Pick<Clock, "now">, seconds: number) {
    this.#clock = clock;
    this.#atMs = clock.now();
    this.#seconds = seconds;
  }

  /** Percent since the last reading; `null` if no time has passed. */
  read(seconds: number): number | null {
    const now = this.#clock.now();
    const elapsedMs = now - this.#atMs;
    if (elapsedMs <= 0) return null;
    const percent = (seconds - this.#seconds) * 1_000 / elapsedMs * 100;
    this.#atMs = now;
    this.#seconds = seconds;
    return Math.max(0, Math.round(percent * 10) / 10);
  }
}

/** The global that Deno and Node share; the library's types do not name it. */
interface WithProcess {
  readonly process?: { cpuUsage(): { readonly user: number; readonly system: number } };
}

/** Unit of times in /proc, in seconds; the same on all Linux machines. */
const TICK = 0.01;

function cpuSeconds(): number {
  // The first access to `process` takes 12 ms of an engine's start, and 3 MB.
  const ticks = Deno.build.os === "linux" ? cpuTicks() : undefined;
  if (ticks !== undefined) return ticks * TICK;
  const used = (globalThis as WithProcess).process?.cpuUsage();
  return used ? (used.user + used.system) / 1_000_000 : 0;
}

/** User and system time; `undefined` if /proc cannot be read. */
function cpuTicks(): number | undefined {
  try {
    const stat = Deno.readTextFileSync("/proc/self/stat");
    // The second field, the program's name, may contain anything but ends with ")".
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isFinite(ticks) ? ticks : undefined;
  } catch {
    return undefined;
  }
}
