/**
 * Time, as everything but the adapters sees it.
 *
 * @module
 */

/** A clock that tests can move by hand. */
export interface Clock {
  /** Milliseconds since an unspecified start; never goes back. For durations. */
  now(): number;
  /** Milliseconds since 1970, as the calendar says. For what is written down. */
  wall(): number;
  /** Runs `task` once, `ms` milliseconds from now; call the result to cancel. */
  after(ms: number, task: () => void): () => void;
}
