/**
 * Draining connections, and what stays in place until their workers come back.
 *
 * A drained connection gets no new calls until it closes, and neither does one on which the same
 * worker reattaches. Until its handover ends, calls of the functions that it registered are parked,
 * and the triggers of disconnected workers stay. None of this is on the path of a call that some
 * worker can execute.
 *
 * @module
 */
import type { EventListener } from "../ports/events.ts";
import type { DrainOptions, Handover, Traffic } from "../ports/traffic.ts";
import type { Calls } from "./calls.ts";
import { FUNCTIONS_PER_WORKER_MAX, type FunctionTable } from "./function_table.ts";
import { type ParkedCalls, type Target, targetOf } from "./parked_calls.ts";
import type { Peer } from "./peer.ts";
import type { TriggerTable } from "./trigger_table.ts";

/** Registrations that end in one step, some 0.5 ms, of a peer that has more than it may keep. */
export const RETIRED_AT_ONCE = 128;
/** So many end together with the peer: in 4 ms, and its disconnect names its functions. */
export const RETIRED_DOWN_TO = 1_000;

/** Dependencies of handovers. */
export interface HandoversOptions {
  readonly functions: FunctionTable;
  readonly triggers: TriggerTable;
  readonly parked: ParkedCalls;
  readonly calls: Calls;
  /** The peer with that worker id; `undefined` when it is not connected. */
  peer(worker_id: string): Peer | undefined;
  readonly report: EventListener;
  /** Called after all consequences were sent. */
  flushEvents(): void;
}

/** A handover that has not ended. */
class OpenHandover implements Handover {
  readonly isComingBack: boolean;
  /** The peers that it drains, disconnected ones included. */
  readonly peers = new Set<Peer>();
  /** The functions that these peers have registered since it began. */
  readonly targets = new Set<Target>();
  readonly #end: (handover: OpenHandover) => void;

  constructor({ isComingBack }: DrainOptions, end: (handover: OpenHandover) => void) {
    this.isComingBack = isComingBack;
    this.#end = end;
  }

  get runningCalls(): number {
    return [...this.peers].reduce((sum, peer) => sum + peer.runningCalls, 0);
  }

  end(): void {
    this.#end(this);
  }
}

/** Drains peers, and keeps what belongs to workers that come back. */
export class Handovers implements Traffic {
  readonly #options: HandoversOptions;
  readonly #open = new Set<OpenHandover>();

  constructor(options: HandoversOptions) {
    this.#options = options;
  }

  drain(worker_ids: readonly string[], options: DrainOptions): Handover {
    const { functions, peer: find } = this.#options;
    const handover = new OpenHandover(options, (handover) => this.#end(handover));
    for (const id of worker_ids) {
      const peer = find(id) ?? this.findDisconnected(id);
      if (!peer) continue; // It disconnected a moment ago, and its registrations with it.
      handover.peers.add(peer);
      functions.drain(peer);
      for (const target of this.#targetsOf(peer)) this.#expect(handover, target);
    }
    this.#open.add(handover);
    return handover;
  }

  /** A worker registered a function: parked calls of it start, unless the worker is draining. */
  functionRegistered(peer: Peer, function_id: string, namespace: string): void {
    const target = targetOf(function_id, namespace);
    if (!peer.isDraining) return this.#options.calls.startParked(target);
    for (const handover of this.#open) {
      if (handover.peers.has(peer)) this.#expect(handover, target);
    }
  }

  /**
   * Removes some functions and triggers of a peer whose connection has ended, as if it had taken
   * them back itself: to end 10,000 at once takes 20 to 50 ms. `true`: many are left. Those of a
   * worker that will come back stay, since its successor may have them.
   */
  retire(peer: Peer): boolean {
    const { functions, triggers, report } = this.#options;
    const left = (): number => functions.countOf(peer) + triggers.triggersOf(peer);
    if (this.#isComingBack(peer) || left() <= RETIRED_DOWN_TO) return false;
    const { removed, gone } = functions.removeSome(peer, RETIRED_AT_ONCE);
    const [worker_id, ids_changed] = [peer.id, gone > 0];
    if (removed > 0) report({ type: "functions_changed", worker_id, ids_changed });
    const ended = triggers.removeSome(peer, RETIRED_AT_ONCE - removed);
    if (ended > 0) report({ type: "triggers_changed", worker_id });
    return left() > RETIRED_DOWN_TO;
  }

  /** A worker disconnected: its triggers end, unless it is to come back. */
  disconnected(peer: Peer): void {
    if (this.#isComingBack(peer)) this.#options.triggers.orphan(peer);
    else this.#options.triggers.removeOwner(peer);
  }

  /** The drained peer with that worker id that has disconnected. */
  findDisconnected(worker_id: string): Peer | undefined {
    for (const { peers } of this.#open) {
      for (const peer of peers) if (peer.id === worker_id && !peer.isLive) return peer;
    }
    return undefined;
  }

  /** A worker reattached on a new connection, which is drained if the previous one was. */
  reattached(previous: Peer, peer: Peer): void {
    if (!previous.isDraining) return;
    this.#options.functions.drain(peer);
    for (const { peers } of this.#open) if (peers.delete(previous)) peers.add(peer);
    // The worker registers them again on every connection; orphaned triggers must not add up.
    if (!previous.isLive) this.#endTriggers(previous);
  }

  #end(handover: OpenHandover): void {
    if (!this.#open.delete(handover)) return;
    const { parked, calls, flushEvents } = this.#options;
    if (handover.isComingBack) {
      for (const target of handover.targets) {
        parked.stopExpecting(target);
      }
    }
    for (const peer of handover.peers) {
      if (!peer.isLive && !this.#isComingBack(peer)) this.#endTriggers(peer);
    }
    calls.failUnexpected();
    flushEvents();
  }

  #expect({ isComingBack, peers, targets }: OpenHandover, target: Target): void {
    if (targets.has(target)) return;
    // Bounds a worker that keeps registering and unregistering new ids.
    if (targets.size >= peers.size * FUNCTIONS_PER_WORKER_MAX) return;
    targets.add(target);
    if (isComingBack) this.#options.parked.expect(target);
  }

  /** The functions of a peer; of a disconnected one, those that its handovers know. */
  #targetsOf(peer: Peer): Target[] {
    if (peer.isLive) {
      const entries = this.#options.functions.entriesOf(peer);
      return entries.map(({ id, namespace }) => targetOf(id, namespace));
    }
    return [...this.#open].flatMap(({ peers, targets }) => peers.has(peer) ? [...targets] : []);
  }

  #isComingBack(peer: Peer): boolean {
    for (const { isComingBack, peers } of this.#open) {
      if (isComingBack && peers.has(peer)) return true;
    }
    return false;
  }

  #endTriggers(peer: Peer): void {
    const { triggers, report } = this.#options;
    if (triggers.triggersOf(peer) > 0) report({ type: "triggers_changed", worker_id: peer.id });
    triggers.removeOwner(peer);
  }
}
