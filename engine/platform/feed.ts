/**
 * Something that goes on happening, and whoever wants to hear of it.
 *
 * A listener that throws is reported and harms nobody else.
 *
 * @module
 */

/** One source, many listeners. */
export class Feed<Item> {
  readonly #failed: (reason: string) => void;
  readonly #listeners = new Set<(item: Item) => void>();
  #isFailing = false;

  /** Starts without listeners; `failed` hears why one threw. */
  constructor(failed: (reason: string) => void) {
    this.#failed = failed;
  }

  /** Hears of what happens from now on; call the result to stop. */
  listen(listener: (item: Item) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Tells everybody. Never throws. */
  tell(item: Item): void {
    for (const listener of this.#listeners) {
      try {
        listener(item);
      } catch (thrown) {
        this.#report(String(thrown));
      }
    }
  }

  /** What is said of a failure may be told here again, and fail again. */
  #report(reason: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#failed(reason);
    this.#isFailing = false;
  }
}
