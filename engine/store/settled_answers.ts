/**
 * Answers of writes that are settled, given a few in each turn on the engine's thread.
 *
 * A commit settles hundreds of writes at once. What their callers do with the answers, such as to
 * send a result or to add a trigger, runs behind them and takes ten milliseconds and more, in which
 * no socket is read. A call of another peer waits for several such pauses: two for each way.
 *
 * @module
 */
import type { Turns, Work } from "../ports/turns.ts";

/**
 * Answers of one turn: what their callers do is not over when the turn ends. As many as a flood has
 * messages read between two turns: with 32, calls came faster than they were answered, until most
 * were refused.
 */
export const ANSWERS_PER_TURN = 256;

/** Gives answers in the order in which they are added. */
export class SettledAnswers implements Work {
  readonly #turns: Turns | undefined;
  #waiting: (() => void)[] = [];
  /** The first that waits; what is before it was given. */
  #at = 0;

  /** Without turns, each answer is given when it is added. */
  constructor(turns: Turns | undefined) {
    this.#turns = turns;
  }

  /** Gives an answer, at once or in its turn. It must not throw. */
  add(answer: () => void): void {
    if (!this.#turns) return answer();
    if (this.#waiting.push(answer) === 1) this.#turns.queue(this);
  }

  work(): boolean {
    const end = Math.min(this.#at + ANSWERS_PER_TURN, this.#waiting.length);
    while (this.#at < end) this.#waiting[this.#at++]!();
    if (this.#at < this.#waiting.length) return true;
    this.#waiting = [];
    this.#at = 0;
    return false;
  }
}
