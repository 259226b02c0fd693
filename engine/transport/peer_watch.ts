/**
 * Whether a peer is alive, from when it last sent something and last read something.
 *
 * It has no clock: the owner passes the time, and what happens between two checks counts as
 * happening at the later one.
 *
 * @module
 */

/** A peer that sends nothing for this long after a ping is suspect: frozen, or cut off. */
export const PONG_MS = 2_000;

/** Result of {@linkcode PeerWatch.check}. */
export type Finding = "silent" | "stuck" | "suspect" | "ping" | undefined;

/** Tracks one peer. */
export class PeerWatch {
  /** Set when something arrived since the last check. */
  wasHeard = true;
  /** Set when queued bytes were written since the last check. */
  hasMoved = true;
  /** A peer that reads nothing for this long is stuck. */
  stuckMsMax: number;
  readonly #silenceMs: number;
  readonly #pingMs: number;
  #heardAt: number;
  #movedAt: number;
  #pingedAt: number;
  #checkedAt: number;
  /** When an unanswered ping makes it suspect; `Infinity`: none is unanswered. */
  #suspectAt = Infinity;

  /**
   * Starts at `now`. A peer that sends nothing for `silenceMs` is silent, one that reads nothing
   * for that long is stuck, and the next ping is due `pingMs` after the last. The first is due
   * after `firstPingMs`, so that connections that open together are not pinged together.
   */
  constructor(now: number, silenceMs: number, pingMs: number, firstPingMs: number = pingMs) {
    this.#silenceMs = this.stuckMsMax = silenceMs;
    this.#pingMs = pingMs;
    this.#heardAt = this.#movedAt = this.#checkedAt = now;
    this.#pingedAt = now + firstPingMs - pingMs;
  }

  /** `isPaused`: this side does not read; `isIdle`: nothing is queued. */
  check(now: number, isPaused: boolean, isIdle: boolean): Finding {
    if (this.wasHeard || isPaused) this.#heard(now);
    if (this.hasMoved || isIdle) this.#movedAt = now;
    this.wasHeard = this.hasMoved = false;
    if (now - this.#heardAt >= this.#silenceMs) return "silent";
    if (now - this.#movedAt >= this.stuckMsMax) return "stuck";
    // This side may have stood still, with the answer unread.
    const stoodStill = now - this.#checkedAt >= PONG_MS && this.#suspectAt !== Infinity;
    if (stoodStill) this.#suspectAt = now + PONG_MS;
    this.#checkedAt = now;
    // Before the next ping: with a short heartbeat one is due at every check.
    if (now >= this.#suspectAt) {
      this.#suspectAt = Infinity;
      return "suspect";
    }
    if (now - this.#pingedAt < this.#pingMs) return undefined;
    this.#pinged(now);
    return "ping";
  }

  /** Whether a ping is to be sent now, because an answer is wanted before the next one is due. */
  probe(now: number): boolean {
    if (this.#suspectAt !== Infinity) return false;
    // What came before is no answer.
    if (this.wasHeard) this.#heard(now);
    this.wasHeard = false;
    this.#pinged(now);
    return true;
  }

  /** Whether anything arrived or was written since the last look. */
  takeActivity(): boolean {
    const isActive = this.wasHeard || this.hasMoved;
    this.wasHeard = this.hasMoved = false;
    return isActive;
  }

  /** For how long nothing was written though something was queued, as of the last check. */
  stuckMs(now: number): number {
    return now - this.#movedAt;
  }

  #heard(now: number): void {
    this.#heardAt = now;
    this.#suspectAt = Infinity;
  }

  #pinged(now: number): void {
    this.#pingedAt = now;
    if (this.#suspectAt === Infinity) this.#suspectAt = now + Math.min(PONG_MS, this.#pingMs);
  }
}
