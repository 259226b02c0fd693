/**
 * Runs asynchronous tasks one after another, in the order in which they were added.
 *
 * @module
 */

/** A queue that runs one task at a time. */
export class TaskQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs a task when all tasks before it have settled. */
  run<Result>(task: () => Promise<Result>): Promise<Result> {
    const running = this.#last.then(task);
    this.#last = running.catch(() => {}); // The caller gets the error; the next task runs anyway.
    return running;
  }

  /** Settles when every task that was added so far has settled. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
