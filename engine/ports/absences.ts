/**
 * Why something that a call or a trigger needs is not there, and what to type about it.
 *
 * The core asks when a function or a trigger type has no provider, never for one that has.
 *
 * @module
 */

/** Why a function or a trigger type has no provider, though a worker is known for it. */
export interface Absence {
  /** For people, such as `worker py is down (exit 1), next start in 8 s`. */
  readonly reason: string;
  /** The worker that would provide it. */
  readonly worker: string;
  /** A command that helps; `undefined` where waiting does, or nothing. */
  readonly command?: string;
}

/** What is known about workers that are not there. Every method answers at once. */
export interface Absences {
  /** Why no worker offers a function; `undefined`: none is known that would. */
  ofFunction(function_id: string, namespace: string): Absence | undefined;
  /** Why no worker provides a trigger type; `undefined`: none is known that would. */
  ofTriggerType(id: string, namespace: string): Absence | undefined;
  /** Whether a function that no worker offers will be offered in a moment: calls wait for it. */
  isExpected?(function_id: string, namespace: string): boolean;
  /** Whether the other engines of the cluster cannot be reached now, which may offer it. */
  isClusterAway?(): boolean;
  /** Trigger types of the built-in workers, also of those that do not run. */
  readonly triggerTypes: readonly string[];
}

/** Knows of no other workers than the connected ones. */
export const NO_ABSENCES: Absences = {
  ofFunction: () => undefined,
  ofTriggerType: () => undefined,
  triggerTypes: [],
};

/** A function by its id. */
export interface FunctionKey {
  readonly namespace: string;
  readonly id: string;
}
