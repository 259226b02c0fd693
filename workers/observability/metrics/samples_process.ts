/**
 * What this process uses: memory and processor time.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";

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

/** Of a second: the unit of times in /proc, the same on all machines with Linux. */
const TICK = 0.01;

function cpuSeconds(): number {
  // The first look at the global takes 12 ms of an engine's start and 3 MB.
  const ticks = Deno.build.os === "linux" ? cpuTicks() : undefined;
  if (ticks !== undefined) return ticks * TICK;
  const used = (globalThis as WithProcess).process?.cpuUsage();
  return used ? (used.user + used.system) / 1_000_000 : 0;
}

/** In the program and in the kernel for it; `undefined` where /proc is not to be read. */
function cpuTicks(): number | undefined {
  try {
    const stat = Deno.readTextFileSync("/proc/self/stat");
    // The second field is the program's name, which may have anything in it but ends with ")".
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isFinite(ticks) ? ticks : undefined;
  } catch {
    return undefined;
  }
}
