/**
 * Lets a bounded number of workers install or start at the same time, in the order they asked.
 *
 * @module
 */

/** A bounded number of places. */
export class StartSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `places` can be held at once. */
  constructor(places: number) {
    this.#free = places;
  }

  /**
   * Waits for a place; call the result to give it back, once or more often. `undefined` when the
   * signal came first.
   */
  async take(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free--;
    else if (!await this.#turn(signal)) return undefined;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    };
  }

  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        resolve(false);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(go);
    });
  }
}
