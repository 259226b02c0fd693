/**
 * Booted machines without a program, kept for the next program of their worker.
 *
 * A boot takes seconds in software emulation, so an installation and the start that follows it use
 * one machine, as does a worker before and after an edit with `reload: stop-first`.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** A booted machine without a program. */
export interface IdleGuest {
  /** Equal for machines with the same configuration. */
  readonly key: string;
  /** Directory of the worker that owns the machine. */
  readonly directory: string;
  /** Resolves when the machine is gone. */
  readonly ended: Promise<unknown>;
  /** Powers the machine off and cleans up. A second call changes nothing. */
  release(): Promise<void>;
}

/** Keeps idle machines for a limited time. */
export class KeptGuests<Guest extends IdleGuest> {
  readonly #clock: Clock;
  readonly #keepMs: number;
  /** The machines, each with a function that cancels its timer. */
  readonly #idle = new Map<Guest, () => void>();
  readonly #releasing = new Set<Promise<void>>();
  #isClosed = false;

  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** Keeps a machine for `keepMs`; releases it immediately after `close()`. */
  keep(guest: Guest): void {
    if (this.#isClosed) return this.#release(guest);
    const cancelTimer = this.#clock.after(this.#keepMs, () => this.#release(guest));
    this.#idle.set(guest, cancelTimer);
    void guest.ended.then(() => this.#idle.has(guest) && this.#release(guest));
  }

  /** Returns an idle machine with this key; releases the worker's machines with other keys. */
  take(key: string, directory: string): Guest | undefined {
    const own = [...this.#idle.keys()].filter((guest) => guest.directory === directory);
    for (const guest of own) if (guest.key !== key) this.#release(guest);
    const found = own.find((guest) => guest.key === key);
    if (found) this.#forget(found);
    return found;
  }

  /** Releases all machines and waits until they are off. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const guest of [...this.#idle.keys()]) this.#release(guest);
    await Promise.all(this.#releasing);
  }

  #release(guest: Guest): void {
    this.#forget(guest);
    const releasing = guest.release().finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
  }

  #forget(guest: Guest): void {
    this.#idle.get(guest)?.();
    this.#idle.delete(guest);
  }
}
