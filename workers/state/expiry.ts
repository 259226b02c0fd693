/**
 * Removes expired entries in the background.
 *
 * It need not be punctual, since reads ignore expired entries. One timer waits for the earliest
 * expiry record (see `entries.ts`).
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { StateEntries } from "./entries.ts";

/** Expiry records that are read and handled together. */
const BATCH_RECORDS = 100;
/** Longest wait: the system clock may be changed, or the disk may have been full. */
const WAIT_MS_MAX = 60_000;

/** Dependencies of {@linkcode Expiry}. */
export interface ExpirySetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly entries: StateEntries;
}

/** Schedules and runs the removal of expired entries. */
export class Expiry implements AsyncDisposable {
  readonly #setup: ExpirySetup;
  #cancel: (() => void) | undefined;
  #dueMs = Infinity;
  #sweeping: Promise<void> | undefined;
  #isClosed = false;

  constructor(setup: ExpirySetup) {
    this.#setup = setup;
  }

  /**
   * Schedules a sweep for a time in milliseconds since 1970, unless an earlier one is scheduled.
   */
  schedule(atMs: number): void {
    if (atMs < this.#dueMs) this.#waitFor(atMs);
  }

  /** Removes expired entries and schedules the next sweep. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => this.#sweeping = undefined);
    return this.#sweeping;
  }

  /** Stops; resolves when a running sweep has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { clock, entries, log } = this.#setup;
    this.#dueMs = Infinity; // Records added during the sweep are scheduled anew.
    try {
      let due: number;
      do {
        const records = await entries.expiries(BATCH_RECORDS);
        const dueRecords = records.filter(({ at_ms }) => at_ms <= clock.wall());
        await Promise.all(dueRecords.map((record) => entries.expire(record)));
        due = dueRecords.length;
        if (due < records.length) this.schedule(records[due]!.at_ms);
      } while (due === BATCH_RECORDS);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      log.warn("expired state could not be removed; retrying later", { reason });
      this.schedule(clock.wall() + WAIT_MS_MAX);
    }
  }

  #waitFor(atMs: number): void {
    if (this.#isClosed) return;
    const { clock } = this.#setup;
    this.#cancel?.();
    this.#dueMs = atMs;
    const waitMs = Math.min(WAIT_MS_MAX, Math.max(0, atMs - clock.wall()));
    this.#cancel = clock.after(waitMs, () => {
      if (clock.wall() < atMs) this.#waitFor(atMs);
      else void this.sweep();
    });
  }
}
