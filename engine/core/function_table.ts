/**
 * Which workers offer which function, and which replica gets the next call.
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
import { BytesIndex } from "./wire/bytes_index.ts";

/** One live registration. */
export interface Replica {
  readonly entry: FunctionEntry;
  readonly peer: Peer;
  readonly registration: RegisterFunction;
  /** The check of its `request_format`; `undefined`: not made yet, `null`: nothing is checked. */
  check: SchemaCheck | null | undefined;
}

/** A function that somebody offers: at least one replica, the newest registration last. */
export interface FunctionEntry {
  readonly namespace: string;
  readonly id: string;
  readonly replicas: Replica[];
  /** Those that may get calls; `replicas` itself while none of their workers drains. */
  ready: readonly Replica[];
  /** Where among them to begin looking for the next call. */
  cursor: number;
  /** Replicas whose `request_format` is enforced. */
  enforcedFormats: number;
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
  readonly isReserved: boolean;
  /** The set of ids has changed. */
  readonly isNew: boolean;
  /** Workers whose replicas had to go, because the engine offers the function from now on. */
  readonly displaced: readonly Peer[];
}

/** Who can run what. */
export class FunctionTable {
  /** By namespace, then by id. */
  readonly #entries = new Map<string, Map<string, FunctionEntry>>();
  /** Those of the default namespace. */
  readonly #byBytes = new BytesIndex<FunctionEntry>();
  readonly #byPeer = new Map<Peer, Map<FunctionEntry, Replica>>();
  #version = 0;

  /** Changes whenever the set of ids does. */
  get version(): number {
    return this.#version;
  }

  /** Every function. */
  *entries(): Generator<FunctionEntry> {
    for (const entries of this.#entries.values()) yield* entries.values();
  }

  /** Ids in a namespace that may be shown to anybody who mistyped one. */
  *visibleIds(namespace: string): Generator<string> {
    for (const { id, replicas } of this.#entries.get(namespace)?.values() ?? []) {
      const { metadata } = replicas.at(-1)!.registration;
      if ((metadata as JsonObject | undefined)?.internal !== true) yield id;
    }
  }

  /** Functions a worker offers. */
  countOf(peer: Peer): number {
    return this.#byPeer.get(peer)?.size ?? 0;
  }

  /** What a worker offers. */
  entriesOf(peer: Peer): FunctionEntry[] {
    return [...this.#byPeer.get(peer)?.keys() ?? []];
  }

  /** The function of that name; `undefined` when no live worker offers it. */
  find(function_id: string, namespace: string = DEFAULT_NAMESPACE): FunctionEntry | undefined {
    return this.#entries.get(namespace)?.get(function_id);
  }

  /** The function of the default namespace whose id stands in `view` from `start` to `end`. */
  findBytes(view: DataView, start: number, end: number): FunctionEntry | undefined {
    return this.#byBytes.find(view, start, end);
  }

  /** Records that a worker offers a function; again: the newer registration counts. */
  add(peer: Peer, registration: RegisterFunction): Added {
    const { id, namespace = DEFAULT_NAMESPACE } = registration;
    const known = this.find(id, namespace);
    // A function of the engine has only replicas of the engine, so the first one decides.
    const isOwn = known?.replicas[0]?.peer.isBuiltin ?? false;
    if (isOwn && !peer.isBuiltin) return { isReserved: true, isNew: false, displaced: [] };
    const out = known && !isOwn && peer.isBuiltin ? known.replicas.map(({ peer }) => peer) : [];
    const entry = known ?? this.#open(namespace, id);
    for (const other of out) this.#drop(entry, other);
    this.#drop(entry, peer);
    const check = isEnforced(peer, registration) ? undefined : null;
    const replica: Replica = { entry, peer, registration, check };
    entry.replicas.push(replica);
    if (entry.ready !== entry.replicas || peer.isDraining) refreshReady(entry);
    if (check === undefined) entry.enforcedFormats++;
    const registered = this.#byPeer.get(peer);
    if (registered) registered.set(entry, replica);
    else this.#byPeer.set(peer, new Map([[entry, replica]]));
    return { isReserved: false, isNew: known === undefined, displaced: out };
  }

  /** Removes the replica of a worker: `gone` if it was the last; `undefined`: there was none. */
  remove(
    peer: Peer,
    function_id: string,
    namespace: string = DEFAULT_NAMESPACE,
  ): { gone: boolean } | undefined {
    const entry = this.find(function_id, namespace);
    if (!entry || !this.#drop(entry, peer)) return undefined;
    return { gone: this.#closeIfEmpty(entry) };
  }

  /** A worker drains from now on, and its replicas get no calls any more. */
  drain(peer: Peer): void {
    peer.isDraining = true;
    for (const entry of this.entriesOf(peer)) {
      entry.cursor = 0;
      refreshReady(entry);
    }
  }

  /** A worker has left: how many functions it offered, and how many of them nobody offers now. */
  removePeer(peer: Peer): { registered: number; removed: number } {
    const entries = this.entriesOf(peer);
    let removed = 0;
    for (const entry of entries) {
      this.#drop(entry, peer);
      if (this.#closeIfEmpty(entry)) removed++;
    }
    return { registered: entries.length, removed };
  }

  /**
   * The replica to run a call whose tail has so many bytes: the one whose worker executes
   * the fewest calls, in turn among equals; `undefined` when all are at their bound or drain.
   */
  pick(entry: FunctionEntry, bytes: number, bounds: LoadBounds): Replica | undefined {
    const { ready } = entry;
    const { length } = ready;
    if (length === 1) return hasRoom(ready[0]!.peer, bytes, bounds) ? ready[0] : undefined;
    let best: Replica | undefined;
    let bestAt = 0;
    for (let i = 0; i < length; i++) {
      const at = (entry.cursor + i) % length;
      const replica = ready[at]!;
      if (best && replica.peer.inflightCalls >= best.peer.inflightCalls) continue;
      if (!hasRoom(replica.peer, bytes, bounds)) continue;
      best = replica;
      bestAt = at;
    }
    if (best) entry.cursor = (bestAt + 1) % length;
    return best;
  }

  /**
   * A draining worker's own replica, for a call that it makes while it runs one: without it that
   * one might never end. Only when nobody else may be given the call.
   */
  pickSelf(
    entry: FunctionEntry,
    peer: Peer,
    bytes: number,
    bounds: LoadBounds,
  ): Replica | undefined {
    if (!peer.isDraining || peer.inflightCalls === 0 || entry.ready.length > 0) return undefined;
    const registered = this.#byPeer.get(peer)?.get(entry);
    return registered && hasRoom(peer, bytes, bounds) ? registered : undefined;
  }

  #open(namespace: string, id: string): FunctionEntry {
    const replicas: Replica[] = [];
    const entry: FunctionEntry = {
      namespace,
      id,
      replicas,
      ready: replicas,
      cursor: 0,
      enforcedFormats: 0,
      subject: undefined,
    };
    const entries = this.#entries.get(namespace);
    if (entries) entries.set(id, entry);
    else this.#entries.set(namespace, new Map([[id, entry]]));
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.add(entry);
    this.#version++;
    return entry;
  }

  /** Takes a worker's replica out of an entry, which may then be empty. */
  #drop(entry: FunctionEntry, peer: Peer): boolean {
    const registered = this.#byPeer.get(peer);
    const replica = registered?.get(entry);
    if (!registered || !replica) return false;
    registered.delete(entry);
    if (registered.size === 0) this.#byPeer.delete(peer);
    const place = entry.ready.indexOf(replica);
    if (place >= 0 && place < entry.cursor) entry.cursor--;
    entry.replicas.splice(entry.replicas.indexOf(replica), 1);
    if (entry.ready !== entry.replicas) refreshReady(entry);
    if (isEnforced(peer, replica.registration)) entry.enforcedFormats--;
    return true;
  }

  #closeIfEmpty(entry: FunctionEntry): boolean {
    const { namespace, id, replicas } = entry;
    if (replicas.length > 0) return false;
    const entries = this.#entries.get(namespace)!;
    entries.delete(id);
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.remove(entry);
    if (entries.size === 0) this.#entries.delete(namespace);
    this.#version++;
    return true;
  }
}

/** Says anew which replicas may get calls. */
function refreshReady(entry: FunctionEntry): void {
  const { replicas } = entry;
  const drains = replicas.some(({ peer }) => peer.isDraining);
  entry.ready = drains ? replicas.filter(({ peer }) => !peer.isDraining) : replicas;
}

/** Whether a worker may get one more call. One that executes nothing may get any. */
export function hasRoom(peer: Peer, bytes: number, bounds: LoadBounds): boolean {
  if (peer.inflightCalls >= bounds.max_inflight_calls_per_worker) return false;
  const pendingBytes = peer.inflightBytes + peer.connection.queuedBytes;
  return pendingBytes === 0 || pendingBytes + bytes <= bounds.max_inflight_bytes_per_worker;
}

/** Functions of the engine itself check their payloads in their own words. */
function isEnforced(peer: Peer, { request_format }: RegisterFunction): boolean {
  return request_format !== undefined && !peer.isBuiltin;
}
