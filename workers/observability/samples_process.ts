/**
 * What this process uses: memory and processor time.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";

/** What a process has used. */
export interface ProcessUsage {
  /** Resident, in bytes. */
  readonly memory_bytes: number;
  readonly heap_bytes: number;
  /** Processor time since it started, in seconds. */
  readonly cpu_seconds: number;
}

/** Asks the runtime. */
export function readProcess(): ProcessUsage {
  const { rss, heapUsed } = Deno.memoryUsage();
  return { memory_bytes: rss, heap_bytes: heapUsed, cpu_seconds: cpuSeconds() };
}

/** How busy it was between two readings, in percent of one processor. */
export class CpuShare {
  readonly #clock: Pick<Clock, "now">;
  #atMs: number;
  #seconds: number;

  /** Counts from now. */
  constructor(clock: Pick<Clock, "now">, seconds: number) {
    this.#clock = clock;
    this.#atMs = clock.now();
    this.#seconds = seconds;
  }

  /** Since the last reading; `null` when no time has passed. */
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

function cpuSeconds(): number {
  const used = (globalThis as WithProcess).process?.cpuUsage();
  return used ? (used.user + used.system) / 1_000_000 : 0;
}
