/**
 * Work that runs in one place at a time, such as the timer of all cron triggers.
 *
 * In one engine this is that engine; over several machines one of them has the role, and another
 * one takes it over when that one is gone.
 *
 * @module
 */

/** Gives out roles. */
export interface Keeping {
  /**
   * Runs `run` while this engine has the role, again after it lost the role and got it back. The
   * signal is aborted when it loses the role; `run` then returns soon. Disposing of the result
   * gives the role up, and waits until `run` has returned. A `run` that fails is logged and runs
   * again after a pause.
   */
  keep(role: string, run: (signal: AbortSignal) => Promise<void>): AsyncDisposable;
}
