/**
 * Shares the engine's thread between what workers print and everything else.
 *
 * A worker can print faster than lines can be handled, and a stream that always has something to
 * read never lets the event loop turn: one `yes` kept all calls waiting for ever. So output has a
 * budget of time and bytes. What is above it is read later, and a program whose pipe is full waits;
 * nothing is dropped. Programs that print at the same time take turns, one piece each.
 *
 * @module
 */
import { systemClock } from "../platform/system_clock.ts";
import type { Clock } from "../ports/clock.ts";

/** The part of the thread's time that output may take over a while. */
const TIME_SHARE = 0.2;
/** Bytes that cost as much as a millisecond: with the share of time, 8 MiB each second. */
const BYTES_PER_MS = 40 * 1024;
/** Milliseconds of work that may be done at once after a quiet time. */
const BURST_MS = 4;
/** Milliseconds of work that have to be saved up before a waiting program has its turn. */
const TURN_MS = 2;
/** Bytes that are handled without looking at the clock; they may be as many lines. */
const PIECE_BYTES = 2 * 1024;

/** The budget of all programs that share it. */
export class OutputTurns {
  readonly #clock: Pick<Clock, "now" | "after">;
  /** Milliseconds of work that are left; below 0 the next piece has to wait. */
  #creditMs = BURST_MS;
  #countedAtMs: number;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "now" | "after"> = systemClock) {
    this.#clock = clock;
    this.#countedAtMs = clock.now();
  }

  /**
   * Passes bytes to `take` in pieces of `pieceBytes` at most, at once while there is budget.
   * Resolves when all are passed on and the next bytes may be read.
   */
  async pass<Bytes extends Uint8Array>(
    bytes: Bytes,
    take: (piece: Bytes) => void,
    pieceBytes: number = PIECE_BYTES,
  ): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes) as Bytes;
      const began = this.#clock.now();
      take(piece);
      const now = this.#clock.now();
      this.#count(now);
      this.#creditMs -= Math.max(now - began, piece.length / BYTES_PER_MS);
      if (this.#creditMs < 0) await this.#turn();
    }
  }

  /** Waits behind all others that wait. */
  #turn(): Promise<void> {
    return this.#last = this.#last.then(() => this.#saveUp());
  }

  /** A timer lets the event loop turn, which promises and immediates do not. */
  async #saveUp(): Promise<void> {
    for (;;) {
      this.#count(this.#clock.now());
      if (this.#creditMs >= TURN_MS) return;
      const ms = Math.ceil((TURN_MS - this.#creditMs) / TIME_SHARE);
      await new Promise<void>((resolve) => this.#clock.after(ms, resolve));
    }
  }

  #count(now: number): void {
    const saved = this.#creditMs + (now - this.#countedAtMs) * TIME_SHARE;
    this.#creditMs = Math.min(BURST_MS, saved);
    this.#countedAtMs = now;
  }
}
