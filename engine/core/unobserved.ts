/**
 * The observer of a router that nobody observes.
 *
 * @module
 */
import type { CallObserver, ObservedFunction, ObservedParty } from "../ports/call_observer.ts";

/** Hears everything and does nothing. */
export const unobserved: CallObserver = {
  attach: () => {},
  functionOf: (namespace: string, function_id: string): ObservedFunction => ({
    namespace,
    function_id,
  }),
  partyOf: (worker_id: string): ObservedParty => ({ worker_id }),
  opened: () => {},
  wantsCandidates: () => false,
  sent: () => undefined,
  settled: () => {},
  failed: () => {},
  refused: () => {},
  answered: () => {},
};
