/**
 * Draining of workers that are restarted or stopped, so that no call is lost.
 *
 * @module
 */

/** How to drain. */
export interface DrainOptions {
  /**
   * The workers will register the same again: calls that no other worker can execute are parked,
   * each for at most `CALL_PARK_MS`, and triggers stay. Otherwise such calls fail at once. If two
   * handovers concern one connection or one function, one of them is enough.
   */
  readonly isComingBack: boolean;
}

/** Connections that get no new calls. */
export interface Handover {
  /** Calls that these connections execute now. */
  readonly runningCalls: number;
  /**
   * Ends the handover, because the new workers are ready or will not come. Calls that are still
   * parked for a function without replicas fail with `function_not_found`; orphaned triggers end.
   * Open connections keep draining, and nothing of them is kept afterwards. A second call has no
   * effect.
   */
  end(): void;
}

/** Drains connections. */
export interface Traffic {
  /**
   * Stops new calls to these connections (worker ids) until they close; running calls go on, and
   * may call functions that only their own connection provides. A connection that reattaches is
   * drained as well. Ids of closed connections are ignored, unless an open handover concerns them.
   */
  drain(worker_ids: readonly string[], options: DrainOptions): Handover;
}
