/**
 * The budget of memory of one process: {@linkcode MemoryBudget}, and its default size.
 *
 * The budget counts what parts report. The default leaves the other half of the machine to V8, the
 * kernel's socket buffers and other programs.
 *
 * @module
 */
import { getHeapStatistics } from "node:v8";
import type { MemoryBudget, MemoryUse } from "../ports/memory.ts";

const MIB = 1024 * 1024;
/** Upper bound of the default. */
const DEFAULT_BYTES_MAX = 2048 * MIB;
/** Share of the budget from which on it is tight. */
const TIGHT_SHARE = 0.75;
/** Share of V8's heap that the default may fill: strings and parsed JSON live there. */
const HEAP_SHARE = 0.75;
/** So much less than before is worth giving back to the system. */
const FREED_BYTES = 32 * MIB;
/** Files with the memory limit of the process's control group, version 2 and 1. */
const CGROUP_FILES = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/** A part that waits for room. */
interface Waiting {
  readonly bytes: number;
  readonly then: () => void;
}

/** Makes a budget. `defer` runs a task later, `freed` is called when much was released. */
export function createMemoryBudget(
  limitBytes: number,
  defer: (task: () => void) => void = (task) => void setTimeout(task, 0),
  freed: () => void = () => {},
): MemoryBudget {
  return new Budget(limitBytes, defer, freed);
}

class Budget implements MemoryBudget {
  readonly limitBytes: number;
  readonly #defer: (task: () => void) => void;
  readonly #uses = new Map<MemoryUse, number>();
  /** In the order of their calls. */
  readonly #waiting = new Set<Waiting>();
  #usedBytes = 0;
  #isServing = false;
  readonly #freed: () => void;
  /** Most bytes that were taken at once since `#freed` was called. */
  #peakBytes = 0;

  constructor(limitBytes: number, defer: (task: () => void) => void, freed: () => void) {
    this.limitBytes = limitBytes;
    this.#defer = defer;
    this.#freed = freed;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isTight(): boolean {
    return this.#usedBytes > this.limitBytes * TIGHT_SHARE;
  }

  used(use: MemoryUse): number {
    return this.#uses.get(use) ?? 0;
  }

  take(use: MemoryUse, bytes: number): boolean {
    if (this.#usedBytes + bytes > this.limitBytes) return false;
    this.#usedBytes += bytes;
    this.#uses.set(use, this.used(use) + bytes);
    if (this.#usedBytes > this.#peakBytes) this.#peakBytes = this.#usedBytes;
    return true;
  }

  release(use: MemoryUse, bytes: number): void {
    this.#usedBytes -= bytes;
    this.#uses.set(use, this.used(use) - bytes);
    if (this.#peakBytes - this.#usedBytes >= FREED_BYTES) {
      this.#peakBytes = this.#usedBytes;
      this.#freed();
    }
    this.#serveLater();
  }

  whenRoom(bytes: number, then: () => void): () => void {
    const waiting: Waiting = { bytes: Math.min(bytes, this.limitBytes), then };
    this.#waiting.add(waiting);
    this.#serveLater();
    return () => {
      this.#waiting.delete(waiting);
      this.#serveLater(); // It may have stood before one that fits.
    };
  }

  #serveLater(): void {
    if (this.#isServing || this.#waiting.size === 0) return;
    this.#isServing = true;
    this.#defer(() => this.#serve());
  }

  /** One part per task, so that it can take its bytes before the next one is asked. */
  #serve(): void {
    this.#isServing = false;
    const [first] = this.#waiting;
    if (!first || this.#usedBytes + first.bytes > this.limitBytes) return;
    this.#waiting.delete(first);
    first.then();
    this.#serveLater();
  }
}

/** The default of `engine.memory_mb`: half of what this process may use, 2 GiB at most. */
export function defaultMemoryMb(): number {
  const bytes = Math.min(
    memoryOfMachine() / 2,
    getHeapStatistics().heap_size_limit * HEAP_SHARE,
    DEFAULT_BYTES_MAX,
  );
  return Math.max(1, Math.floor(bytes / MIB));
}

function memoryOfMachine(): number {
  const limits = CGROUP_FILES.map(readLimit);
  return Math.min(Deno.systemMemoryInfo().total, ...limits);
}

/** The number in a file; `Infinity` for `max`, and without the file. */
function readLimit(path: string): number {
  try {
    const bytes = Number(Deno.readTextFileSync(path));
    return bytes > 0 ? bytes : Infinity;
  } catch {
    return Infinity; // Another platform, or a container without the file.
  }
}
