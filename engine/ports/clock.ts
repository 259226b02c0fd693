/**
 * Time, for everything except the adapters.
 *
 * @module
 */

/** A clock; tests use one that they advance by hand. */
export interface Clock {
  /** Monotonic milliseconds from an unspecified origin. For durations. */
  now(): number;
  /** Milliseconds since 1970. For timestamps. */
  wall(): number;
  /** Runs `task` once after `ms` milliseconds; call the result to cancel. */
  after(ms: number, task: () => void): () => void;
}
