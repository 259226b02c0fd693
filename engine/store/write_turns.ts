/**
 * Many writes at once are applied and answered in turns on the engine's thread, strictly in order:
 * applied once their entries are known, answered once they are settled.
 *
 * Thousands of writes may wait behind one whose entry is read from disk, and a commit settles
 * hundreds. To apply them, and what their callers do with the answers, such as to send a result or
 * to add a trigger, takes ten milliseconds and more, in which no socket is read. A call of another
 * peer waits for several such pauses: two for each way.
 *
 * @module
 */
import type { Turns, Work } from "../ports/turns.ts";

/** Writes that are applied at once; each takes some 10 µs. */
export const APPLIED_AT_ONCE = 64;

/**
 * Answers of one turn: what their callers do is not over when the turn ends. As many as a flood has
 * messages read between two turns: with 32, calls came faster than they were answered, until most
 * were refused.
 */
export const ANSWERS_PER_TURN = 256;

/** First in, first out. V8 moves the rest of an array of 16,000 items for each `shift()`. */
class Fifo<Item> {
  #items: Item[] = [];
  #at = 0;

  /** The oldest item; `undefined` when there is none. */
  get first(): Item | undefined {
    return this.#items[this.#at];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** Removes the oldest; removed ones are released once they are half of the array. */
  removeFirst(): void {
    if (++this.#at * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#at);
    this.#at = 0;
  }
}

/** Writes that are not applied; the first is tried when {@linkcode advance} is called. */
export class RequestedWrites<Write> implements Work {
  readonly #turns: Turns | undefined;
  readonly #apply: (write: Write) => boolean;
  readonly #writes = new Fifo<Write>();
  /** They are being applied, or have a turn for that. */
  #isBusy = false;

  /**
   * `apply` returns `false` when a write has to wait, and never throws. Without turns, all are
   * applied at once.
   */
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
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#isBusy = this.#applySome(this.#turns ? APPLIED_AT_ONCE : Infinity);
    if (this.#isBusy) this.#turns!.queue(this);
  }

  work(): boolean {
    let hasMore: boolean;
    do hasMore = this.#applySome(APPLIED_AT_ONCE); while (hasMore && !this.#turns!.isSpent());
    return this.#isBusy = hasMore;
  }

  /** Whether more can be applied at once. */
  #applySome(max: number): boolean {
    for (let left = max; left > 0; left--) {
      const { first } = this.#writes;
      if (first === undefined || !this.#apply(first)) return false;
      this.#writes.removeFirst();
    }
    return this.#writes.first !== undefined;
  }
}

/** Gives answers in the order in which they are added. */
export class SettledAnswers implements Work {
  readonly #turns: Turns | undefined;
  readonly #waiting = new Fifo<() => void>();
  #hasTurn = false;

  /** Without turns, each answer is given when it is added. */
  constructor(turns: Turns | undefined) {
    this.#turns = turns;
  }

  /** Gives an answer, at once or in its turn. It must not throw. */
  add(answer: () => void): void {
    if (!this.#turns) return answer();
    this.#waiting.push(answer);
    if (!this.#hasTurn) this.#turns.queue(this);
    this.#hasTurn = true;
  }

  work(): boolean {
    for (let left = ANSWERS_PER_TURN; left > 0; left--) {
      const answer = this.#waiting.first;
      if (!answer) break;
      this.#waiting.removeFirst();
      answer();
    }
    return this.#hasTurn = this.#waiting.first !== undefined;
  }
}
