/**
 * What whoever restarts workers asks of the core, so that a restart loses no call.
 *
 * @module
 */

/** How lines are to be relieved. */
export interface DrainOptions {
  /**
   * Somebody comes to offer the same again: calls that nobody else can run wait for that, each for
   * `CALL_HOLD_MS` at most, and triggers stay in place. Otherwise such calls fail at once.
   */
  readonly isComingBack: boolean;
}

/** Lines that get no new calls. */
export interface Handover {
  /** Calls that these lines are running now. */
  readonly runningCalls: number;
  /**
   * It is over: somebody has taken over, or nobody will. Calls that still wait for a function that
   * nobody offers fail with `function_not_found`; triggers that nobody took over end. A second call
   * changes nothing.
   */
  end(): void;
}

/** Relieves lines of their calls. */
export interface Traffic {
  /** From now on these lines (ids of connections) get no new calls; what they run goes on. */
  drain(worker_ids: readonly string[], options: DrainOptions): Handover;
}
