/**
 * What whoever restarts workers asks of the core, so that a restart loses no call.
 *
 * @module
 */

/** How lines are to be relieved. */
export interface DrainOptions {
  /**
   * Somebody comes to offer the same again: calls that nobody else can run wait for that, each for
   * `CALL_PARK_MS` at most, and triggers stay in place. Otherwise such calls fail at once. Of two
   * handovers that concern one line or one function, either can make them wait.
   */
  readonly isComingBack: boolean;
}

/** Lines that get no new calls. */
export interface Handover {
  /** Calls that these lines are running now. */
  readonly runningCalls: number;
  /**
   * It is over: somebody has taken over, or nobody will. Calls that still wait for a function that
   * nobody offers fail with `function_not_found`; triggers that nobody took over end. Lines that
   * are not over yet stay relieved, and what they leave later is not kept. A second call changes
   * nothing.
   */
  end(): void;
}

/** Relieves lines of their calls. */
export interface Traffic {
  /**
   * From now on, until their end, these lines (ids of connections) get no new calls but for their
   * own: a call that one of them runs may call what only that line offers. What they run goes on.
   * A line that comes back by `reattach` is relieved as well. Ids of lines that are over or never
   * were are passed over, unless a handover that concerns them is open.
   */
  drain(worker_ids: readonly string[], options: DrainOptions): Handover;
}
