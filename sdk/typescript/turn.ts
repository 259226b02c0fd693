/**
 * The end of a turn: when nothing more is about to be said, so that all of it can leave at once.
 *
 * What a frame sets off happens in microtasks, at different depths for different handlers. So the
 * end is not the next microtask but the first one in which nothing was added any more.
 *
 * @module
 */

/** Runs something once, at the end of every turn in which there was a reason. */
export class Turn {
  readonly #atEnd: () => void;
  readonly #look = (): void => this.#end();
  #isOn = false;
  #hasNews = false;

  /** `atEnd` must not throw. */
  constructor(atEnd: () => void) {
    this.#atEnd = atEnd;
  }

  /** There is something for the end of this turn. */
  touch(): void {
    this.#hasNews = true;
    if (this.#isOn) return;
    this.#isOn = true;
    queueMicrotask(this.#look);
  }

  #end(): void {
    if (this.#hasNews) {
      this.#hasNews = false;
      queueMicrotask(this.#look);
      return;
    }
    this.#isOn = false;
    this.#atEnd();
  }
}
