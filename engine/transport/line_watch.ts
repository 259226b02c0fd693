/**
 * Whether the peer of a line still lives: when it was heard, and when it last took something.
 *
 * Asks nobody for the time: whoever looks says it. What happens between two looks counts as
 * happening at the later one.
 *
 * @module
 */

/** What there is to do about a line. */
export type Finding = "silent" | "stuck" | "ping" | undefined;

/** Watches one line. */
export class LineWatch {
  /** Something came since the last look. */
  wasHeard = true;
  /** Something that was due has left since the last look. */
  hasMoved = true;
  readonly #silenceMs: number;
  readonly #pingMs: number;
  #heardAt: number;
  #movedAt: number;
  #pingedAt: number;

  /**
   * Begins at `now`. A peer of which nothing comes for `silenceMs` is silent, one that takes
   * nothing for so long is stuck, and `pingMs` after a ping the next one is due. The first is due
   * after `firstPingMs`, so that lines that open together are not pinged together ever after.
   */
  constructor(now: number, silenceMs: number, pingMs: number, firstPingMs: number = pingMs) {
    this.#silenceMs = silenceMs;
    this.#pingMs = pingMs;
    this.#heardAt = this.#movedAt = now;
    this.#pingedAt = now + firstPingMs - pingMs;
  }

  /** Looks. `isPaused`: nobody reads from it; `isIdle`: nothing is due to it. */
  look(now: number, isPaused: boolean, isIdle: boolean): Finding {
    if (this.wasHeard || isPaused) this.#heardAt = now;
    if (this.hasMoved || isIdle) this.#movedAt = now;
    this.wasHeard = this.hasMoved = false;
    if (now - this.#heardAt >= this.#silenceMs) return "silent";
    if (now - this.#movedAt >= this.#silenceMs) return "stuck";
    if (now - this.#pingedAt < this.#pingMs) return undefined;
    this.#pingedAt = now;
    return "ping";
  }
}
