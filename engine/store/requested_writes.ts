/**
 * Writes from their request until they are applied, strictly in the order of the requests.
 *
 * The first may wait for an entry that is read from disk, with thousands behind it that are then
 * applied one after another. So some are applied at once, and the others in turns on the engine's
 * thread. Nothing is shifted: V8 moves the rest of an array of 16,000 entries for each shift.
 *
 * @module
 */
import type { Turns, Work } from "../ports/turns.ts";

/** Writes that are applied at once; each takes some 10 µs. */
export const APPLIED_AT_ONCE = 64;

/** A queue whose first entry is tried when {@linkcode RequestedWrites.advance} is called. */
export class RequestedWrites<Write> implements Work {
  readonly #turns: Turns | undefined;
  readonly #apply: (write: Write) => boolean;
  #writes: Write[] = [];
  /** The first that waits; what is before it was applied. */
  #at = 0;
  #hasTurn = false;

  /** `apply` returns `false` when a write has to wait. Without turns, all are applied at once. */
  constructor(turns: Turns | undefined, apply: (write: Write) => boolean) {
    this.#turns = turns;
    this.#apply = apply;
  }

  /** Adds a write behind all others. */
  add(write: Write): void {
    this.#writes.push(write);
    this.advance();
  }

  /** Applies what can be applied, up to the first write that has to wait. */
  advance(): void {
    if (this.#hasTurn) return;
    this.#hasTurn = this.#applySome(this.#turns ? APPLIED_AT_ONCE : Infinity);
    if (this.#hasTurn) this.#turns!.queue(this);
  }

  work(): boolean {
    do this.#hasTurn = this.#applySome(APPLIED_AT_ONCE); while (
      this.#hasTurn && !this.#turns!.isSpent()
    );
    return this.#hasTurn;
  }

  /** Whether more can be applied at once. */
  #applySome(max: number): boolean {
    for (let left = max; left > 0; left--) {
      if (this.#at === this.#writes.length) {
        this.#writes = [];
        this.#at = 0;
        return false;
      }
      if (!this.#apply(this.#writes[this.#at]!)) return this.#trim();
      this.#at++;
    }
    return true;
  }

  /** Releases what was applied, once it is half of the array. */
  #trim(): false {
    if (this.#at * 2 > this.#writes.length) {
      this.#writes = this.#writes.slice(this.#at);
      this.#at = 0;
    }
    return false;
  }
}
