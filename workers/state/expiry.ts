/**
 * Removes expired entries when their time has come.
 *
 * Nothing depends on it being on time: whether an entry has expired is decided when it is read.
 * One task of the clock waits for the earliest day; what the days are, entries.ts knows.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { StateEntries } from "./entries.ts";

/** Days that are read at once, and entries that are removed together. */
const DAYS_AT_ONCE = 100;
/** Looks again after so long at the latest: the calendar may be set, the disk may be full. */
const WAIT_MS_MAX = 60_000;

/** What {@linkcode Expiry} works with. */
export interface ExpirySetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly entries: StateEntries;
}

/** The days of all entries that expire. */
export class Expiry implements AsyncDisposable {
  readonly #setup: ExpirySetup;
  #cancel: (() => void) | undefined;
  #dueMs = Infinity;
  #sweeping: Promise<void> | undefined;
  #isClosed = false;

  /** Waits for nothing yet. */
  constructor(setup: ExpirySetup) {
    this.#setup = setup;
  }

  /** An entry may expire then, in milliseconds since 1970. */
  expects(atMs: number): void {
    if (atMs < this.#dueMs) this.#waitFor(atMs);
  }

  /** Removes all that has expired by now, and waits for the next day. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => this.#sweeping = undefined);
    return this.#sweeping;
  }

  /** Waits for nothing any more; resolves when a sweep on its way has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { clock, entries, log } = this.#setup;
    this.#dueMs = Infinity; // From here on the next day counts, also one that comes meanwhile.
    try {
      let due: number;
      do {
        const days = await entries.days(DAYS_AT_ONCE);
        const come = days.filter(({ at_ms }) => at_ms <= clock.wall());
        await Promise.all(come.map((day) => entries.look(day)));
        due = come.length;
        if (due < days.length) this.expects(days[due]!.at_ms);
      } while (due === DAYS_AT_ONCE);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      log.warn("expired state could not be removed; it is tried again", { reason });
      this.expects(clock.wall() + WAIT_MS_MAX);
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
