/**
 * Which replicas could have run a call, for those who ask later.
 *
 * @module
 */
import { TRACE_CANDIDATES_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Candidate } from "../ports/telemetry.ts";
import { hasRoom, type LoadBounds, type Offer } from "./function_table.ts";
import type { Peer } from "./peer.ts";

/**
 * The replicas of a function as they were when `chosen` got a call whose tail has so many
 * bytes, which counts among those it runs already; the chosen one first.
 */
export function candidatesOf(
  { id, replicas }: Offer,
  chosen: Peer,
  bytes: number,
  bounds: LoadBounds,
): Candidate[] {
  const others = replicas.filter(({ peer }) => peer !== chosen)
    .slice(0, TRACE_CANDIDATES_MAX - 1)
    .map(({ peer }) => viewOf(peer, id, peer.inflightCalls, whyNot(peer, bytes, bounds)));
  return [viewOf(chosen, id, chosen.inflightCalls - 1, null), ...others];
}

function viewOf(peer: Peer, id: string, in_flight: number, passed_over: string | null): Candidate {
  return { worker_id: peer.id, name: peer.nameFor(id), in_flight, passed_over };
}

function whyNot(peer: Peer, bytes: number, bounds: LoadBounds): string | null {
  if (peer.isDraining) return "draining";
  if (peer.inflightCalls >= bounds.max_inflight_calls_per_worker) return "at its bound of calls";
  return hasRoom(peer, bytes, bounds) ? null : "at its bound of bytes";
}
