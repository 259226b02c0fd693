/**
 * Entries in memory: the slots of keys in use, and a cache of those used last.
 *
 * A slot exists while a reader or a write holds its key. It is never evicted, so a write that waits
 * for its entries finds them, however small the cache is. An entry is read from disk once for all
 * who wait, and a result that a commit has overtaken is discarded.
 *
 * The cache keeps the entries used last, within a number of bytes, also those that do not exist. It
 * holds what is on disk only, so evicting is always safe. Its order of use is a ring of links: a
 * map keeps the places of deleted keys for a while, so moving a key to its end would get slow.
 *
 * @module
 */
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import type { StoreKey } from "../ports/store.ts";
import { READ_KEYS_MAX } from "./kv_records.ts";
import { Outstanding } from "./outstanding.ts";
import type { Known } from "./record.ts";
import { keyId } from "./store_key.ts";

/** Reads up to {@linkcode READ_KEYS_MAX} keys from disk. */
export type Read = (keys: readonly StoreKey[]) => Promise<PromiseSettledResult<Known>[]>;

/** A key that a reader or a write holds. */
export class Slot {
  readonly id: string;
  readonly key: StoreKey;
  /** The entry on disk; `undefined` when it is not known. */
  committed: Known | undefined;
  /** The entry after the last applied write; `undefined` when no write is under way. */
  newest: Known | undefined;
  /** The newest entry that was acknowledged before it is on disk; `undefined`: none was. */
  acknowledged: Known | undefined;
  /** Applied writes that are not settled. */
  applied = 0;
  /** Writes that are not answered, with or without an error. */
  readonly unanswered = new Outstanding();
  /** Resolves when reading has ended; `failure` is set when it failed. */
  loading: Promise<void> | undefined;
  failure: unknown;
  users = 0;
  /** Its entry is not cached. */
  isPassing = false;

  constructor(id: string, key: StoreKey, committed: Known | undefined) {
    this.id = id;
    this.key = key;
    this.committed = committed;
  }

  /** The entry that readers see; `undefined` when it is not known. */
  get readable(): Known | undefined {
    return this.acknowledged !== undefined ? this.acknowledged : this.committed;
  }

  /** The entry that the next write sees; `undefined` when it is not known. */
  get state(): Known | undefined {
    return this.newest !== undefined ? this.newest : this.committed;
  }
}

/** The slots of one store. */
export class Slots {
  readonly #cache: Cache;
  readonly #read: Read;
  readonly #onLoaded: () => void;
  readonly #slots = new Map<string, Slot>();
  readonly #running = new Set<Promise<void>>();
  #toLoad: { slot: Slot; done: () => void }[] = [];

  /** `onLoaded` is called after each read from disk, also a failed one. */
  constructor(cache: Cache, read: Read, onLoaded: () => void) {
    this.#cache = cache;
    this.#read = read;
    this.#onLoaded = onLoaded;
  }

  /** The entry on disk, if it is cached and the key is not held. */
  atRest(id: string): Known | undefined {
    return this.#slots.has(id) ? undefined : this.#cache.get(id);
  }

  /** The slot of a key that is held. */
  get(id: string): Slot | undefined {
    return this.#slots.get(id);
  }

  /** Holds a key until {@linkcode release}. */
  hold(key: StoreKey): Slot {
    const id = keyId(key);
    let slot = this.#slots.get(id);
    if (!slot) {
      slot = new Slot(id, key, this.#cache.get(id));
      this.#slots.set(id, slot);
    }
    slot.users++;
    return slot;
  }

  /** Holds a key whose entry on disk the caller knows; it is neither read nor cached. */
  holdKnown(key: StoreKey, known: Known): Slot {
    const slot = this.hold(key);
    if (slot.state !== undefined) return slot;
    slot.committed = known;
    slot.isPassing = true;
    slot.loading = undefined; // What is being read is no newer.
    return slot;
  }

  /** Ends one hold. */
  release(slot: Slot): void {
    if (--slot.users === 0) this.#slots.delete(slot.id);
  }

  /** Applies a write: the next one sees its entry, and readers do once it is acknowledged. */
  apply(slot: Slot, known: Known, isAcknowledged: boolean): void {
    slot.newest = known;
    if (isAcknowledged) slot.acknowledged = known;
    slot.applied++;
  }

  /** Settles an applied write; `undefined` when it failed, so that the entry is unknown. */
  settle(slot: Slot, known: Known | undefined): void {
    slot.applied--;
    if (known === undefined || slot.applied === 0) slot.newest = slot.acknowledged = undefined;
    slot.committed = known;
    slot.loading = undefined;
    if (known === undefined || slot.isPassing) this.#cache.delete(slot.id);
    else this.#cache.set(slot.id, known);
  }

  /** Reads the entry from disk. Keys that are requested in one tick are read together. */
  load(slot: Slot): Promise<void> {
    return slot.loading ??= new Promise((done) => {
      slot.failure = undefined;
      if (this.#toLoad.push({ slot, done }) === 1) queueMicrotask(() => this.#startLoads());
    });
  }

  /** Resolves when no read is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #startLoads(): void {
    const all = this.#toLoad;
    this.#toLoad = [];
    for (let at = 0; at < all.length; at += READ_KEYS_MAX) {
      const running = this.#loadSome(all.slice(at, at + READ_KEYS_MAX));
      this.#running.add(running);
      void running.then(() => this.#running.delete(running));
    }
  }

  async #loadSome(loads: readonly { slot: Slot; done: () => void }[]): Promise<void> {
    const tokens = loads.map(({ slot }) => slot.loading);
    const found = await this.#read(loads.map(({ slot }) => slot.key)).catch((reason) =>
      loads.map(() => ({ status: "rejected", reason } as const))
    );
    loads.forEach(({ slot, done }, i) => {
      if (slot.loading === tokens[i]) this.#take(slot, found[i]!);
      done();
    });
    this.#onLoaded();
  }

  #take(slot: Slot, found: PromiseSettledResult<Known>): void {
    slot.loading = undefined;
    if (found.status === "rejected") {
      slot.failure = found.reason;
    } else {
      slot.committed = found.value;
      this.#cache.set(slot.id, found.value);
    }
  }
}

/** Estimated bytes of the objects around a value. */
const OVERHEAD_BYTES = 256;
/** How much is evicted for a new entry while memory is tight, in sizes of the new one. */
const TIGHT_FACTOR = 2;
/** Estimated size of a parsed value over its JSON. */
const PARSED_FACTOR = 2;

/** A key in the order of use. */
interface Link {
  readonly id: string;
  readonly known: Known;
  older: Link;
  newer: Link;
}

/** A cache that evicts the least recently used entry first. */
export class Cache {
  readonly #links = new Map<string, Link>();
  /** Closes the ring: its `newer` is the oldest, its `older` the newest. */
  readonly #ring: Link = makeRing();
  readonly #bytesMax: number;
  readonly #memory: MemoryBudget;
  #bytes = 0;

  constructor(bytesMax: number, memory: MemoryBudget = UNLIMITED_MEMORY) {
    this.#bytesMax = bytesMax;
    this.#memory = memory;
  }

  /** Estimated bytes in use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The entry of a key; `undefined` when it is not cached. Counts as a use. */
  get(id: string): Known | undefined {
    const link = this.#links.get(id);
    if (!link) return undefined;
    if (this.#ring.older !== link) {
      unlink(link);
      this.#addNewest(link);
    }
    return link.known;
  }

  /** As {@linkcode get} without counting as a use, for scans. */
  peek(id: string): Known | undefined {
    return this.#links.get(id)?.known;
  }

  /**
   * Caches an entry, unless it is larger than the whole cache or the process has no memory for it.
   * While memory is tight, every new entry takes the place of old ones.
   */
  set(id: string, known: Known): void {
    const cost = costOf(id, known);
    this.delete(id);
    if (cost > this.#bytesMax) return;
    if (this.#memory.isTight) this.shrink(Math.max(0, this.#bytes - TIGHT_FACTOR * cost));
    if (!this.#memory.take("caches", cost)) return;
    const link: Link = { id, known, older: this.#ring, newer: this.#ring };
    this.#links.set(id, link);
    this.#addNewest(link);
    this.#bytes += cost;
    this.shrink(this.#bytesMax);
  }

  /** Evicts the oldest entries until the others fit. */
  shrink(bytesMax: number): void {
    while (this.#bytes > bytesMax) this.#drop(this.#ring.newer);
  }

  /** Removes a key. */
  delete(id: string): void {
    const link = this.#links.get(id);
    if (link) this.#drop(link);
  }

  #addNewest(link: Link): void {
    const ring = this.#ring;
    link.newer = ring;
    link.older = ring.older;
    ring.older.newer = link;
    ring.older = link;
  }

  #drop(link: Link): void {
    unlink(link);
    this.#links.delete(link.id);
    const cost = costOf(link.id, link.known);
    this.#bytes -= cost;
    this.#memory.release("caches", cost);
  }
}

function makeRing(): Link {
  const ring = { id: "", known: null } as Link;
  ring.older = ring;
  ring.newer = ring;
  return ring;
}

function unlink(link: Link): void {
  link.older.newer = link.newer;
  link.newer.older = link.older;
}

function costOf(id: string, known: Known): number {
  return OVERHEAD_BYTES + PARSED_FACTOR * (id.length + (known ? known.bytes : 0));
}
