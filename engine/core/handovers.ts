/**
 * Workers that are relieved of their calls, and what stays in place until they come back.
 *
 * A relieved line stays so until its end, and so does a line on which the same program comes back
 * to the engine. Until a handover ends, calls of the functions that its lines offered wait for
 * somebody to offer them, and the triggers of those that have left stay. Nothing here is on the
 * path of a call that somebody can run.
 *
 * @module
 */
import { FUNCTIONS_PER_WORKER_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { EventListener } from "../ports/events.ts";
import type { DrainOptions, Handover, Traffic } from "../ports/traffic.ts";
import type { Calls } from "./calls.ts";
import type { FunctionTable } from "./function_table.ts";
import { type ParkedCalls, type Target, targetOf } from "./parked_calls.ts";
import type { Peer } from "./peer.ts";
import type { TriggerTable } from "./trigger_table.ts";

/** What handovers stand on. */
export interface HandoversOptions {
  readonly functions: FunctionTable;
  readonly triggers: TriggerTable;
  readonly parked: ParkedCalls;
  readonly calls: Calls;
  /** The line with that id; `undefined` when it is over or never was. */
  peer(worker_id: string): Peer | undefined;
  readonly report: EventListener;
  /** All consequences of what was asked for were sent. */
  flushEvents(): void;
}

/** One handover that has not ended. */
class OpenHandover implements Handover {
  readonly isComingBack: boolean;
  /** The lines it relieves, also those that have left. */
  readonly peers = new Set<Peer>();
  /** What they offered since. */
  readonly targets = new Set<Target>();
  readonly #end: (handover: OpenHandover) => void;

  constructor({ isComingBack }: DrainOptions, end: (handover: OpenHandover) => void) {
    this.isComingBack = isComingBack;
    this.#end = end;
  }

  get runningCalls(): number {
    return [...this.peers].reduce((sum, { inflightCalls }) => sum + inflightCalls, 0);
  }

  end(): void {
    this.#end(this);
  }
}

/** Relieves lines, and keeps what they leave. */
export class Handovers implements Traffic {
  readonly #options: HandoversOptions;
  readonly #open = new Set<OpenHandover>();

  /** Makes one that relieves nobody. */
  constructor(options: HandoversOptions) {
    this.#options = options;
  }

  drain(worker_ids: readonly string[], options: DrainOptions): Handover {
    const { functions, peer: find } = this.#options;
    const handover = new OpenHandover(options, (handover) => this.#end(handover));
    for (const id of worker_ids) {
      const peer = find(id) ?? this.findDisconnected(id);
      if (!peer) continue; // It left a moment ago, and took with it what it offered.
      handover.peers.add(peer);
      functions.drain(peer);
      for (const target of this.#targetsOf(peer)) this.#expect(handover, target);
    }
    this.#open.add(handover);
    return handover;
  }

  /** A worker offers a function from now on: what waited for it starts, unless it is relieved. */
  functionRegistered(peer: Peer, function_id: string, namespace: string): void {
    const target = targetOf(function_id, namespace);
    if (!peer.isDraining) return this.#options.calls.startParked(target);
    for (const handover of this.#open) {
      if (handover.peers.has(peer)) this.#expect(handover, target);
    }
  }

  /** A worker has left: its triggers end, unless it is to come back. */
  disconnected(peer: Peer): void {
    if (this.#isComingBack(peer)) this.#options.triggers.orphan(peer);
    else this.#options.triggers.removeOwner(peer);
  }

  /** The relieved line with that id that has left. */
  findDisconnected(worker_id: string): Peer | undefined {
    for (const { peers } of this.#open) {
      for (const peer of peers) if (peer.id === worker_id && !peer.isLive) return peer;
    }
    return undefined;
  }

  /** A program has come back on another line, which is relieved when the line before was. */
  reattached(previous: Peer, peer: Peer): void {
    if (!previous.isDraining) return;
    this.#options.functions.drain(peer);
    for (const { peers } of this.#open) if (peers.delete(previous)) peers.add(peer);
    // It registers them again, and again with every line; what lines leave must not add up.
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
    // Whoever entries ever new ids and takes them back again ends here.
    if (targets.size >= peers.size * FUNCTIONS_PER_WORKER_MAX) return;
    targets.add(target);
    if (isComingBack) this.#options.parked.expect(target);
  }

  /** What a line entries; of one that has left, what the handovers that concern it know of. */
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
