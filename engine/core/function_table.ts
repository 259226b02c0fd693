/**
 * Which workers offer which function, and whose turn it is.
 *
 * A plain table: it sends nothing and knows no time. Each live registration of a function is a
 * replica. What the engine itself offers is offered by nobody else.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type JsonObject,
  type RegisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import type { ObservedFunction } from "../ports/call_observer.ts";
import type { SchemaCheck } from "../ports/schemas.ts";
import type { Peer } from "./peer.ts";
import { OffersByBytes } from "./wire/bytes_index.ts";

/** One live registration. */
export interface Replica {
  readonly offer: Offer;
  readonly peer: Peer;
  readonly registration: RegisterFunction;
  /** The check of its `request_format`; `undefined`: not made yet, `null`: nothing is checked. */
  check: SchemaCheck | null | undefined;
}

/** A function that somebody offers: at least one replica, the newest registration last. */
export interface Offer {
  readonly namespace: string;
  readonly id: string;
  readonly replicas: Replica[];
  /** Those that may get calls; `replicas` itself while none of their workers drains. */
  ready: readonly Replica[];
  /** Where among them to begin looking for the next call. */
  turn: number;
  /** Replicas whose `request_format` is enforced. */
  formats: number;
  /** How an observer knows it; `undefined` before the first call. */
  subject: ObservedFunction | undefined;
}

/** What each worker may have unanswered. */
export interface LoadBounds {
  readonly max_inflight_calls_per_worker: number;
  readonly max_inflight_bytes_per_worker: number;
}

/** What add() came to. */
export interface Added {
  /** The engine offers this function itself and keeps it; nothing changed. */
  readonly taken: boolean;
  /** The set of ids has changed. */
  readonly isNew: boolean;
  /** Workers whose replicas had to go, because the engine offers the function from now on. */
  readonly ousted: readonly Peer[];
}

/** Who can run what. */
export class FunctionTable {
  /** By namespace, then by id. */
  readonly #offers = new Map<string, Map<string, Offer>>();
  /** Those of the default namespace. */
  readonly #byBytes = new OffersByBytes<Offer>();
  readonly #byPeer = new Map<Peer, Map<Offer, Replica>>();
  #version = 0;

  /** Changes whenever the set of ids does. */
  get version(): number {
    return this.#version;
  }

  /** Every function. */
  *offers(): Generator<Offer> {
    for (const offers of this.#offers.values()) yield* offers.values();
  }

  /** Ids in a namespace that may be shown to anybody who mistyped one. */
  *visibleIds(namespace: string): Generator<string> {
    for (const { id, replicas } of this.#offers.get(namespace)?.values() ?? []) {
      const { metadata } = replicas.at(-1)!.registration;
      if ((metadata as JsonObject | undefined)?.internal !== true) yield id;
    }
  }

  /** Functions a worker offers. */
  countOf(peer: Peer): number {
    return this.#byPeer.get(peer)?.size ?? 0;
  }

  /** What a worker offers. */
  offersOf(peer: Peer): Offer[] {
    return [...this.#byPeer.get(peer)?.keys() ?? []];
  }

  /** The function of that name; `undefined` when no live worker offers it. */
  find(function_id: string, namespace: string = DEFAULT_NAMESPACE): Offer | undefined {
    return this.#offers.get(namespace)?.get(function_id);
  }

  /** The function of the default namespace whose id stands in `view` from `start` to `end`. */
  findBytes(view: DataView, start: number, end: number): Offer | undefined {
    return this.#byBytes.find(view, start, end);
  }

  /** Records that a worker offers a function; again: the newer registration counts. */
  add(peer: Peer, registration: RegisterFunction): Added {
    const { id, namespace = DEFAULT_NAMESPACE } = registration;
    const known = this.find(id, namespace);
    // The engine's own have no replicas beside them, so the first one tells of what kind all are.
    const isOwn = known?.replicas[0]?.peer.isBuiltin ?? false;
    if (isOwn && !peer.isBuiltin) return { taken: true, isNew: false, ousted: [] };
    const out = known && !isOwn && peer.isBuiltin ? known.replicas.map(({ peer }) => peer) : [];
    const offer = known ?? this.#open(namespace, id);
    for (const other of out) this.#drop(offer, other);
    this.#drop(offer, peer);
    const check = isEnforced(peer, registration) ? undefined : null;
    const replica: Replica = { offer, peer, registration, check };
    offer.replicas.push(replica);
    if (offer.ready !== offer.replicas || peer.isDraining) sift(offer);
    if (check === undefined) offer.formats++;
    const own = this.#byPeer.get(peer);
    if (own) own.set(offer, replica);
    else this.#byPeer.set(peer, new Map([[offer, replica]]));
    return { taken: false, isNew: known === undefined, ousted: out };
  }

  /** Takes a worker's own offer back: `gone` when it was the last one; `undefined`: it had none. */
  remove(
    peer: Peer,
    function_id: string,
    namespace: string = DEFAULT_NAMESPACE,
  ): { gone: boolean } | undefined {
    const offer = this.find(function_id, namespace);
    if (!offer || !this.#drop(offer, peer)) return undefined;
    return { gone: this.#closeIfEmpty(offer) };
  }

  /** A worker drains from now on, and its replicas get no calls any more. */
  drain(peer: Peer): void {
    peer.isDraining = true;
    for (const offer of this.offersOf(peer)) {
      offer.turn = 0;
      sift(offer);
    }
  }

  /** A worker has left: how many functions it offered, and how many of them nobody offers now. */
  removePeer(peer: Peer): { offered: number; gone: number } {
    const offers = this.offersOf(peer);
    let gone = 0;
    for (const offer of offers) {
      this.#drop(offer, peer);
      if (this.#closeIfEmpty(offer)) gone++;
    }
    return { offered: offers.length, gone };
  }

  /**
   * The replica to run a call whose tail has so many bytes: the one whose worker executes
   * the fewest calls, in turn among equals; `undefined` when all are at their bound or drain.
   */
  pick(offer: Offer, bytes: number, bounds: LoadBounds): Replica | undefined {
    const { ready } = offer;
    const { length } = ready;
    if (length === 1) return hasRoom(ready[0]!.peer, bytes, bounds) ? ready[0] : undefined;
    let best: Replica | undefined;
    let bestAt = 0;
    for (let i = 0; i < length; i++) {
      const at = (offer.turn + i) % length;
      const replica = ready[at]!;
      if (best && replica.peer.inflightCalls >= best.peer.inflightCalls) continue;
      if (!hasRoom(replica.peer, bytes, bounds)) continue;
      best = replica;
      bestAt = at;
    }
    if (best) offer.turn = (bestAt + 1) % length;
    return best;
  }

  /**
   * A draining worker's own replica, for a call that it makes while it runs one: without it that
   * one might never end. Only when nobody else may be given the call.
   */
  pickOwn(offer: Offer, peer: Peer, bytes: number, bounds: LoadBounds): Replica | undefined {
    if (!peer.isDraining || peer.inflightCalls === 0 || offer.ready.length > 0) return undefined;
    const own = this.#byPeer.get(peer)?.get(offer);
    return own && hasRoom(peer, bytes, bounds) ? own : undefined;
  }

  #open(namespace: string, id: string): Offer {
    const replicas: Replica[] = [];
    const offer: Offer = {
      namespace,
      id,
      replicas,
      ready: replicas,
      turn: 0,
      formats: 0,
      subject: undefined,
    };
    const offers = this.#offers.get(namespace);
    if (offers) offers.set(id, offer);
    else this.#offers.set(namespace, new Map([[id, offer]]));
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.add(offer);
    this.#version++;
    return offer;
  }

  /** Takes a worker's replica out of an offer, which may then be empty. */
  #drop(offer: Offer, peer: Peer): boolean {
    const own = this.#byPeer.get(peer);
    const replica = own?.get(offer);
    if (!own || !replica) return false;
    own.delete(offer);
    if (own.size === 0) this.#byPeer.delete(peer);
    const place = offer.ready.indexOf(replica);
    if (place >= 0 && place < offer.turn) offer.turn--;
    offer.replicas.splice(offer.replicas.indexOf(replica), 1);
    if (offer.ready !== offer.replicas) sift(offer);
    if (isEnforced(peer, replica.registration)) offer.formats--;
    return true;
  }

  #closeIfEmpty(offer: Offer): boolean {
    const { namespace, id, replicas } = offer;
    if (replicas.length > 0) return false;
    const offers = this.#offers.get(namespace)!;
    offers.delete(id);
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.remove(offer);
    if (offers.size === 0) this.#offers.delete(namespace);
    this.#version++;
    return true;
  }
}

/** Says anew which replicas may get calls. */
function sift(offer: Offer): void {
  const { replicas } = offer;
  const drains = replicas.some(({ peer }) => peer.isDraining);
  offer.ready = drains ? replicas.filter(({ peer }) => !peer.isDraining) : replicas;
}

/** Whether a worker may get one more call. One that executes nothing may get any. */
export function hasRoom(peer: Peer, bytes: number, bounds: LoadBounds): boolean {
  if (peer.inflightCalls >= bounds.max_inflight_calls_per_worker) return false;
  const held = peer.inflightBytes + peer.connection.queuedBytes;
  return held === 0 || held + bytes <= bounds.max_inflight_bytes_per_worker;
}

/** Functions of the engine itself check their payloads in their own words. */
function isEnforced(peer: Peer, { request_format }: RegisterFunction): boolean {
  return request_format !== undefined && !peer.isBuiltin;
}
