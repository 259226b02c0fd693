/**
 * Time, as a worker sees it: everything that waits in the SDK waits on one of these.
 *
 * Only the WebSocket transports have timers of their own; they are adapters.
 *
 * @module
 */

/** A clock that tests can move by hand. */
export interface WorkerClock {
  /** Milliseconds since an unspecified start; never goes back. */
  now(): number;
  /** Runs `task` once, `ms` milliseconds from now; call the result to cancel. */
  after(ms: number, task: () => void): () => void;
}

/** The clock of the platform: Deno's, Node's or the browser's timers. */
export const platformClock: WorkerClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
};
