/**
 * Booted machines that wait a moment for the next program of their worker.
 *
 * A boot takes seconds in software emulation, so an installation and the start after it share one,
 * and so do a worker and itself after an edit. A machine is lent to a program that would get an
 * equal one; one that has ended meanwhile is not.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** A machine that runs no program now. */
export interface IdleGuest {
  /** Equal for machines of which one is as good as the other. */
  readonly key: string;
  /** The worker's directory; no other worker gets the machine. */
  readonly directory: string;
  /** Settles when the machine is gone. */
  readonly ended: Promise<unknown>;
  /** Powers it off and tidies up. A second call changes nothing. */
  release(): Promise<void>;
}

/** Those that wait. */
export class KeptGuests<Guest extends IdleGuest> {
  readonly #clock: Clock;
  readonly #keepMs: number;
  /** With what cancels its time. */
  readonly #idle = new Map<Guest, () => void>();
  readonly #leaving = new Set<Promise<void>>();
  #isClosed = false;

  /** A machine waits for `keepMs`. */
  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** Has a machine wait; nothing waits after close(). */
  keep(guest: Guest): void {
    if (this.#isClosed) return this.#release(guest);
    const cancelTimer = this.#clock.after(this.#keepMs, () => this.#release(guest));
    this.#idle.set(guest, cancelTimer);
    void guest.ended.then(() => this.#idle.has(guest) && this.#release(guest));
  }

  /** One that waits and is equal; others of that worker are no longer needed. */
  take(key: string, directory: string): Guest | undefined {
    const own = [...this.#idle.keys()].filter((guest) => guest.directory === directory);
    for (const guest of own) if (guest.key !== key) this.#release(guest);
    const found = own.find((guest) => guest.key === key);
    if (found) this.#forget(found);
    return found;
  }

  /** Powers all off and waits until they are. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const guest of [...this.#idle.keys()]) this.#release(guest);
    await Promise.all(this.#leaving);
  }

  #release(guest: Guest): void {
    this.#forget(guest);
    const leaving = guest.release().finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #forget(guest: Guest): void {
    this.#idle.get(guest)?.();
    this.#idle.delete(guest);
  }
}
