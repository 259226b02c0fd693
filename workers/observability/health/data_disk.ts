/**
 * Whether the data directory has room and takes writes: for `/readyz` and the health functions.
 *
 * After a failed commit each look writes a small value, so that the state recovers by itself, also
 * while nothing else writes.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Store, StoreKey } from "../../../engine/ports/store.ts";

/** Free bytes below which the engine is not ready; on a disk of less than 128 MiB an eighth. */
export const DISK_FREE_MIN_BYTES = 16 * 1024 * 1024;
const DISK_FREE_MIN_SHARE = 1 / 8;
/** A look is reused for this long, in milliseconds. */
export const DISK_LOOK_MS = 1_000;
/** Deadline of the write of a look, in milliseconds: a network disk may hang. */
export const DISK_LOOK_DEADLINE_MS = 2_000;

const PROBE_KEY: StoreKey = ["health", "disk"];
const MIB = 1024 * 1024;

/** State of the disk of the data directory. */
export interface DiskState {
  /** Bytes that the engine's user may still write; `null`: unknown. */
  readonly free_bytes: number | null;
  /** What is wrong, for people, without a path; `null`: nothing. */
  readonly problem: string | null;
}

/** Dependencies of {@linkcode DataDisk}. */
export interface DataDiskParts {
  readonly clock: Clock;
  readonly store: Pick<Store, "status" | "write">;
}

/** Looks at the disk when asked. */
export class DataDisk {
  readonly #parts: DataDiskParts;
  #look: Promise<DiskState> | undefined;
  #atMs = -Infinity;

  constructor(parts: DataDiskParts) {
    this.#parts = parts;
  }

  /** The current state, or that of the last second; never rejects. */
  read(): Promise<DiskState> {
    const now = this.#parts.clock.now();
    if (!this.#look || now - this.#atMs >= DISK_LOOK_MS) {
      this.#atMs = now;
      this.#look = this.#read();
    }
    return this.#look;
  }

  async #read(): Promise<DiskState> {
    // As it was before the probe: a small write may succeed where the one that failed would not.
    const { status } = this.#parts.store;
    if (status.failure) await this.#probe();
    const free_bytes = status.freeBytes();
    const share = (status.diskBytes?.() ?? Infinity) * DISK_FREE_MIN_SHARE;
    const least = Math.min(DISK_FREE_MIN_BYTES, share);
    if (free_bytes !== null && free_bytes < least) {
      const free = `${mebibytes(free_bytes)} MiB are free, ${mebibytes(least)} are needed`;
      return {
        free_bytes,
        problem: `the disk of the data directory is full: ${free}; free space on it`,
      };
    }
    return { free_bytes, problem: status.failure ? "the store cannot write to its disk" : null };
  }

  /** Writes a small value, so that {@linkcode Store.status} is that of now. */
  async #probe(): Promise<void> {
    const { store, clock } = this.#parts;
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(DISK_LOOK_DEADLINE_MS, () => late.resolve());
    const write = store.write([[PROBE_KEY, () => clock.wall()]]).then(() => {}, () => {});
    await Promise.race([write, late.promise]).finally(cancel);
  }
}

/** With one digit, rounded down, so that too little never looks like enough. */
function mebibytes(bytes: number): string {
  return String(Math.floor(bytes / MIB * 10) / 10);
}
