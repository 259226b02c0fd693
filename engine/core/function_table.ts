/**
 * Which workers registered which function, and which replica gets the next call.
 *
 * A plain table: it sends nothing and has no clock. Each live registration of a function is a
 * replica. A function of a built-in worker has no replicas of other workers.
 *
 * @module
 */
import { LargeMap } from "../../sdk/typescript/wire/large_map.ts";
import {
  DEFAULT_NAMESPACE,
  type JsonObject,
  type RegisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import type { ObservedFunction } from "../ports/call_observer.ts";
import { SEND_AHEAD_BYTES } from "../ports/connection.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import type { SchemaCheck } from "../ports/schemas.ts";
import { nameKey, namesOf } from "./access/access.ts";
import { FarLoad, FarPicks, WORKERS_OF_ENGINE } from "./far_load.ts";
import type { Peer } from "./peer.ts";
import { type Holding, NO_HOLDING, Registrations } from "./registrations.ts";
import { hashOf, passingBytesOf, viewOf } from "./wire/bytes.ts";
import { BytesIndex } from "./wire/bytes_index.ts";

/** Functions that one worker may register. */
export const FUNCTIONS_PER_WORKER_MAX = 10_000;
/** Functions that another engine may register, for all its workers. */
export const FUNCTIONS_PER_ENGINE_MAX = 100_000;

/** A call up to this size fits into what each connection has for itself. */
const SMALL_CALL_BYTES = 64 * 1024;

/** One live registration of a function. */
export interface Replica {
  readonly entry: FunctionEntry;
  /** The worker that registered it. */
  readonly peer: Peer;
  /** Executes its calls: that worker, or its server (`served.ts`). */
  readonly callee: Peer;
  readonly registration: RegisterFunction;
  readonly holding: Holding;
  /** How its worker names the function; `undefined`: as the entry does. */
  readonly own: FunctionName | undefined;
  /** The load of another engine; `undefined` for a worker of this one. */
  readonly far: FarLoad | undefined;
  /** Check of its `request_format`; `undefined` before the first use, `null` when it has none. */
  check: SchemaCheck | null | undefined;
}

/** Names a function. */
export interface FunctionName {
  readonly namespace: string;
  readonly id: string;
}

/**
 * A registered function: at least one replica, those of other engines first, then those of workers,
 * the newest registration last.
 */
export interface FunctionEntry {
  readonly namespace: string;
  readonly id: string;
  replicas: Replica[];
  /**
   * Replicas that may get calls; `replicas` itself unless one of their workers is draining or
   * suspect.
   */
  ready: readonly Replica[];
  /** Index in `ready` where the search for the next replica starts. */
  cursor: number;
  /** Number of replicas whose `request_format` is enforced. */
  enforcedFormats: number;
  /**
   * Number of replicas whose workers name the function otherwise, so that its calls are rewritten:
   * it is not found by bytes.
   */
  renamed: number;
  /** Number of replicas that are other engines. */
  engines: number;
  /** The observer's handle for it; `undefined` before the first call. */
  subject: ObservedFunction | undefined;
  /** Place among those opened since the last sorted list; -1: that list has it. */
  addedAt: number;
}

/** Limits of the unanswered calls of a worker. */
export interface LoadBounds {
  readonly max_inflight_calls_per_worker: number;
  readonly max_inflight_bytes_per_worker: number;
  /** See `far_load.ts`. */
  readonly cluster?: { readonly far_calls: number };
}

/** What an engine reports of one of its functions. */
export interface EngineLoad {
  readonly replicas: number;
  /** Calls that the workers of these replicas execute. */
  readonly running: number;
}

/** The load of one function. */
export interface FunctionLoad extends EngineLoad {
  readonly namespace: string;
  readonly id: string;
}

/** Outcome of {@linkcode FunctionTable.add}. */
export interface Added {
  /** The function belongs to a built-in worker; nothing changed. */
  readonly isReserved: boolean;
  /** Whether the set of ids changed. */
  readonly isNew: boolean;
  /** Workers whose replicas were removed because a built-in worker registered the function. */
  readonly displaced: readonly Peer[];
}

/** The registered functions. */
export class FunctionTable {
  /** By namespace, then by id. */
  readonly #entries = new Map<string, LargeMap<FunctionEntry>>();
  /** Functions of the default namespace. */
  readonly #byBytes = new BytesIndex<FunctionEntry>();
  readonly #byPeer = new Map<Peer, Map<FunctionEntry, Replica>>();
  readonly #registrations: Registrations;
  readonly #memory: MemoryBudget;
  readonly #farPicks = new FarPicks();
  #version = 0;
  /** Sums of two hashes of all ids. */
  readonly #sums = [0, 0];
  #count = 0;
  /** As of the last {@linkcode FunctionTable.sorted}. */
  #sorted: FunctionEntry[] = [];
  /** Opened since then, in no particular order. */
  #added: FunctionEntry[] = [];
  #sortedVersion = 0;

  /** `memory`: that of the process, which holds what a callee has not read yet. */
  constructor(
    registrations: Registrations = new Registrations(),
    memory: MemoryBudget = UNLIMITED_MEMORY,
  ) {
    this.#registrations = registrations;
    this.#memory = memory;
  }

  /** Changes with the set of ids. */
  get version(): number {
    return this.#version;
  }

  /** Equal for equal sets of ids, whatever happened in between. */
  get mark(): string {
    return `${this.#count} ${this.#sums.join(" ")}`;
  }

  /** All functions. */
  *entries(): Generator<FunctionEntry> {
    for (const entries of this.#entries.values()) yield* entries.values();
  }

  /**
   * All functions by id, then namespace. Sorted when the set of ids has changed, which is fast
   * where most were sorted already.
   */
  sorted(): readonly FunctionEntry[] {
    if (this.#sortedVersion === this.#version) return this.#sorted;
    const isOpen = ({ replicas }: FunctionEntry): boolean => replicas.length > 0;
    const added = this.#added.sort(compareEntries);
    for (const entry of added) entry.addedAt = -1;
    this.#sorted = [...this.#sorted.filter(isOpen), ...added].sort(compareEntries);
    this.#added = [];
    this.#sortedVersion = this.#version;
    return this.#sorted;
  }

  /** Ids in a namespace that may be suggested for a mistyped one. */
  *visibleIds(namespace: string): Generator<string> {
    for (const { id, replicas } of this.#entries.get(namespace)?.values() ?? []) {
      const { metadata } = replicas.at(-1)!.registration;
      if ((metadata as JsonObject | undefined)?.internal !== true) yield id;
    }
  }

  /** Number of functions that a worker registered. */
  countOf(peer: Peer): number {
    return this.#byPeer.get(peer)?.size ?? 0;
  }

  /** The functions that a worker registered. */
  entriesOf(peer: Peer): FunctionEntry[] {
    return [...this.#byPeer.get(peer)?.keys() ?? []];
  }

  /** The function with that id; `undefined` when no live worker registered it. */
  find(function_id: string, namespace: string = DEFAULT_NAMESPACE): FunctionEntry | undefined {
    return this.#entries.get(namespace)?.get(function_id);
  }

  /** The function of the default namespace whose id is in `view` from `start` to `end`. */
  findBytes(view: DataView, start: number, end: number): FunctionEntry | undefined {
    return this.#byBytes.find(view, start, end);
  }

  /** What a worker's registration of a function takes; `undefined` when it has none. */
  holdingOf(peer: Peer, function_id: string, namespace?: string): Holding | undefined {
    const entry = this.find(function_id, namespace);
    return entry && this.#byPeer.get(peer)?.get(entry)?.holding;
  }

  /** What a worker registered a function with; `undefined` when it did not. */
  registrationOf(
    peer: Peer,
    function_id: string,
    namespace: string,
  ): RegisterFunction | undefined {
    const entry = this.find(function_id, namespace);
    return entry && this.#byPeer.get(peer)?.get(entry)?.registration;
  }

  /**
   * Adds a replica; a repeated registration replaces the worker's earlier one. What it takes is
   * released with it, at once if it is not added. Calls go to `callee`.
   */
  add(
    peer: Peer,
    registration: RegisterFunction,
    holding: Holding = NO_HOLDING,
    callee: Peer = peer,
  ): Added {
    const { id, namespace = DEFAULT_NAMESPACE } = registration;
    const known = this.find(id, namespace);
    // No other worker of this engine has a replica of a built-in's function: the last one decides.
    const isBuiltin = isOfBuiltin(known);
    if (isBuiltin && !peer.isBuiltin && !peer.isEngine) {
      this.#registrations.release(peer, holding);
      return { isReserved: true, isNew: false, displaced: [] };
    }
    const out = known && !isBuiltin && peer.isBuiltin
      ? known.replicas.map(({ peer }) => peer).filter((other) => !other.isEngine)
      : [];
    const entry = known ?? this.#open(namespace, id);
    for (const other of out) this.#drop(entry, other);
    const before = this.#byPeer.get(peer)?.get(entry)?.far;
    this.#drop(entry, peer);
    const check = isEnforced(peer, registration) ? undefined : null;
    const own = ownName(peer, namespace, id);
    const far = peer.isEngine ? before ?? new FarLoad() : undefined;
    const replica: Replica = { entry, peer, callee, registration, holding, own, far, check };
    if (far) {
      entry.engines++;
      entry.replicas.unshift(replica);
    } else if (entry.replicas.length > 0) entry.replicas.push(replica);
    else entry.replicas = entry.ready = [replica]; // One that grows would have room for 17.
    if (entry.ready !== entry.replicas || !isPreferred(replica)) refreshReady(entry);
    if (check === undefined) entry.enforcedFormats++;
    if (own && ++entry.renamed === 1) this.#hideFromBytes(entry);
    const registered = this.#byPeer.get(peer);
    if (registered) registered.set(entry, replica);
    else this.#byPeer.set(peer, new Map([[entry, replica]]));
    return { isReserved: false, isNew: known === undefined, displaced: out };
  }

  /** Removes a worker's replica: `gone` if it was the last; `undefined` if there was none. */
  remove(
    peer: Peer,
    function_id: string,
    namespace: string = DEFAULT_NAMESPACE,
  ): { gone: boolean } | undefined {
    const entry = this.find(function_id, namespace);
    if (!entry || !this.#drop(entry, peer)) return undefined;
    return { gone: this.#closeIfEmpty(entry) };
  }

  /** Marks a worker as draining; its replicas get no more calls. */
  drain(peer: Peer): void {
    peer.isDraining = true;
    this.#refreshReady(peer);
  }

  /**
   * Marks a worker that may be frozen; its replicas get calls only of functions that no other
   * worker offers.
   */
  suspect(peer: Peer, isSuspect: boolean): void {
    peer.isSuspect = isSuspect;
    this.#refreshReady(peer);
  }

  #refreshReady(peer: Peer): void {
    for (const entry of this.entriesOf(peer)) {
      entry.cursor = 0;
      refreshReady(entry);
    }
  }

  /** Removes up to `max` replicas of a worker; `gone`: functions that no other worker offers. */
  removeSome(peer: Peer, max: number): { removed: number; gone: number } {
    const some = this.#byPeer.get(peer)?.keys().take(max).toArray() ?? [];
    let gone = 0;
    for (const entry of some) {
      this.#drop(entry, peer);
      if (this.#closeIfEmpty(entry)) gone++;
    }
    return { removed: some.length, gone };
  }

  /** Removes all replicas of a worker: how many it had, and how many functions are gone. */
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
   * The replica for a call whose remainder has `bytes` bytes: the one whose worker executes the
   * fewest calls, round-robin among equals; `undefined` when all are at their limit or draining.
   * Where other engines offer the function, `far_load.ts` decides.
   */
  pick(
    entry: FunctionEntry,
    bytes: number,
    bounds: LoadBounds,
    caller: Peer,
  ): Replica | undefined {
    const { ready } = entry;
    if (entry.engines > 0) return this.#pickNear(entry, bytes, bounds, caller);
    const { length } = ready;
    if (length === 1) return this.#hasRoom(ready[0]!.callee, bytes, bounds) ? ready[0] : undefined;
    let best: Replica | undefined;
    let bestAt = 0;
    for (let i = 0; i < length; i++) {
      const at = (entry.cursor + i) % length;
      const replica = ready[at]!;
      if (best && replica.callee.inflightCalls >= best.callee.inflightCalls) continue;
      if (!this.#hasRoom(replica.callee, bytes, bounds)) continue;
      best = replica;
      bestAt = at;
    }
    if (best) entry.cursor = (bestAt + 1) % length;
    return best;
  }

  #pickNear(
    entry: FunctionEntry,
    bytes: number,
    bounds: LoadBounds,
    { isEngine }: Peer,
  ): Replica | undefined {
    const { max_inflight_calls_per_worker } = bounds;
    const ofEngine = {
      ...bounds,
      max_inflight_calls_per_worker: max_inflight_calls_per_worker * WORKERS_OF_ENGINE,
    };
    return this.#farPicks.pick(entry, {
      farCalls: bounds.cluster?.far_calls,
      isFromEngine: isEngine,
      hasRoom: ({ callee, far }) => this.#hasRoom(callee, bytes, far ? ofEngine : bounds),
    });
  }

  /** The functions that workers of this engine offer, and the calls that those execute. */
  *loads(): Generator<FunctionLoad> {
    for (const { namespace, id, replicas, engines } of this.entries()) {
      if (replicas.length === engines) continue;
      let running = 0;
      for (const { far, callee } of replicas) if (!far) running += callee.inflightCalls;
      yield { namespace, id, replicas: replicas.length - engines, running };
    }
  }

  /** Another engine runs so many calls of a function, in so many replicas. */
  reportLoad(peer: Peer, function_id: string, namespace: string, load: EngineLoad): void {
    const entry = this.find(function_id, namespace);
    const far = entry && this.#byPeer.get(peer)?.get(entry)?.far;
    far?.reported(load.replicas, load.running);
  }

  /**
   * A draining worker's own replica, for a call that it makes while it executes one, which might
   * never end otherwise. Only when no other replica is ready.
   */
  pickSelf(
    entry: FunctionEntry,
    peer: Peer,
    bytes: number,
    bounds: LoadBounds,
  ): Replica | undefined {
    if (!peer.isDraining || peer.inflightCalls === 0 || entry.ready.length > 0) return undefined;
    const registered = this.#byPeer.get(peer)?.get(entry);
    return registered && this.#hasRoom(registered.callee, bytes, bounds) ? registered : undefined;
  }

  /**
   * A frame that the callee's connection could not queue would end it, so such a call is refused.
   * A small frame for a connection that is not behind is never counted.
   */
  #hasRoom(peer: Peer, bytes: number, bounds: LoadBounds): boolean {
    if (!hasRoom(peer, bytes, bounds)) return false;
    const isCounted = bytes > SMALL_CALL_BYTES || peer.connection.queuedBytes > SEND_AHEAD_BYTES;
    return !isCounted || this.#memory.usedBytes + bytes <= this.#memory.limitBytes;
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
      renamed: 0,
      engines: 0,
      subject: undefined,
      addedAt: this.#added.length,
    };
    const entries = this.#entries.get(namespace);
    if (entries) entries.set(id, entry);
    else this.#entries.set(namespace, new LargeMap<FunctionEntry>().set(id, entry));
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.add(entry);
    this.#idsChanged(entry, 1);
    this.#added.push(entry);
    return entry;
  }

  /** Removes a worker's replica from an entry, which may be empty then. */
  #drop(entry: FunctionEntry, peer: Peer): boolean {
    const registered = this.#byPeer.get(peer);
    const replica = registered?.get(entry);
    if (!registered || !replica) return false;
    registered.delete(entry);
    this.#registrations.release(peer, replica.holding);
    if (registered.size === 0) this.#byPeer.delete(peer);
    const place = entry.ready.indexOf(replica);
    if (place >= 0 && place < entry.cursor) entry.cursor--;
    entry.replicas.splice(entry.replicas.indexOf(replica), 1);
    if (entry.ready !== entry.replicas) refreshReady(entry);
    if (isEnforced(peer, replica.registration)) entry.enforcedFormats--;
    if (replica.far) entry.engines--;
    if (replica.own && --entry.renamed === 0) this.#showToBytes(entry);
    return true;
  }

  /** Calls of the function have to be parsed from now on. */
  #hideFromBytes(entry: FunctionEntry): void {
    if (entry.namespace === DEFAULT_NAMESPACE) this.#byBytes.remove(entry);
  }

  #showToBytes(entry: FunctionEntry): void {
    if (entry.namespace === DEFAULT_NAMESPACE) this.#byBytes.add(entry);
  }

  #closeIfEmpty(entry: FunctionEntry): boolean {
    const { namespace, id, replicas } = entry;
    if (replicas.length > 0) return false;
    const entries = this.#entries.get(namespace)!;
    entries.delete(id);
    if (namespace === DEFAULT_NAMESPACE) this.#byBytes.remove(entry);
    if (entries.size === 0) this.#entries.delete(namespace);
    this.#idsChanged(entry, -1);
    this.#forgetAdded(entry);
    return true;
  }

  /** A function that comes and goes without end must not be kept until a list is sorted. */
  #forgetAdded({ addedAt }: FunctionEntry): void {
    if (addedAt < 0) return;
    const last = this.#added.pop()!;
    if (addedAt === this.#added.length) return;
    this.#added[addedAt] = last;
    last.addedAt = addedAt;
  }

  /** Sums of integers of 30 bits stay exact, so what was added can be subtracted. */
  #idsChanged({ namespace, id }: FunctionEntry, sign: 1 | -1): void {
    this.#version++;
    this.#count += sign;
    const key = viewOf(passingBytesOf(JSON.stringify([namespace, id])));
    const { byteLength } = key;
    this.#sums[0]! += sign * hashOf(key, 0, byteLength);
    this.#sums[1]! += sign * hashOf(key, 1, byteLength);
  }
}

/** Orders by id, then namespace, by code units. */
export function compareEntries(
  a: Pick<FunctionEntry, "id" | "namespace">,
  b: Pick<FunctionEntry, "id" | "namespace">,
): number {
  if (a.id !== b.id) return a.id < b.id ? -1 : 1;
  return a.namespace === b.namespace ? 0 : a.namespace < b.namespace ? -1 : 1;
}

/** Whether a built-in worker offers a function. */
export function isOfBuiltin(entry: FunctionEntry | undefined): boolean {
  return entry?.replicas.at(-1)?.peer.isBuiltin ?? false;
}

/** Refreshes the list of replicas that may get calls: suspect ones if there are no others. */
function refreshReady(entry: FunctionEntry): void {
  const { replicas } = entry;
  if (replicas.every(isPreferred)) {
    entry.ready = replicas;
    return;
  }
  const preferred = replicas.filter(isPreferred);
  entry.ready = preferred.length > 0 ? preferred : replicas.filter(({ peer }) => !peer.isDraining);
}

function isPreferred({ peer }: Replica): boolean {
  return !peer.isDraining && !peer.isSuspect;
}

/** Whether a worker may get one more call. An idle worker may get a call of any size. */
export function hasRoom(peer: Peer, bytes: number, bounds: LoadBounds): boolean {
  if (peer.inflightCalls >= bounds.max_inflight_calls_per_worker) return false;
  const pendingBytes = peer.inflightBytes + peer.connection.queuedBytes;
  return pendingBytes === 0 || pendingBytes + bytes <= bounds.max_inflight_bytes_per_worker;
}

/** How a worker names a function that is registered under other names. */
function ownName(peer: Peer, namespace: string, id: string): FunctionName | undefined {
  if (peer.access === undefined) return undefined;
  const registered = nameKey(namespace, id);
  const own = peer.access.functions.own(registered);
  return own === registered ? undefined : namesOf(own);
}

/** Built-in workers validate their payloads themselves. */
function isEnforced(peer: Peer, { request_format }: RegisterFunction): boolean {
  return request_format !== undefined && !peer.isBuiltin;
}
