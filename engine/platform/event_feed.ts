/**
 * Events of one kind, and the listeners that receive them.
 *
 * A listener that throws is reported and does not keep the others from being called.
 *
 * @module
 */

/** One source of events with any number of listeners. */
export class EventFeed<Event> {
  readonly #failed: (reason: string) => void;
  readonly #listeners = new Set<(event: Event) => void>();
  #isFailing = false;

  /** `failed` is called with the reason when a listener throws. */
  constructor(failed: (reason: string) => void) {
    this.#failed = failed;
  }

  /** Calls a listener with every event from now on; call the result to stop. */
  listen(listener: (event: Event) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls all listeners. Never throws. */
  publish(event: Event): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (thrown) {
        this.#report(String(thrown));
      }
    }
  }

  /** Reporting a failure may publish here again, and fail again: that failure is not reported. */
  #report(reason: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#failed(reason);
    this.#isFailing = false;
  }
}
