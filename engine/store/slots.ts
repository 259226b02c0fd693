/**
 * What is known of the keys in use: on disk, and after the writes that are on their way there.
 *
 * A slot lives while somebody holds its key. Nothing in it can be evicted, so a write that waits
 * for its entries finds them, however small the cache is. What is on disk is read at most once for
 * all who wait, and a reading that a commit has overtaken is thrown away.
 *
 * @module
 */
import type { StoreKey } from "../ports/store.ts";
import type { Cache, Known } from "./cache.ts";
import { READ_KEYS_MAX } from "./kv_records.ts";
import { keyId } from "./store_key.ts";

/** Reads what is on disk at up to {@linkcode READ_KEYS_MAX} keys. */
export type Read = (keys: readonly StoreKey[]) => Promise<PromiseSettledResult<Known>[]>;

/** A key that somebody holds. */
export class Slot {
  readonly id: string;
  readonly key: StoreKey;
  /** What is on disk; `undefined` when that is not known. */
  committed: Known | undefined;
  /** What the last applied write leaves; `undefined` when none is on its way. */
  newest: Known | undefined;
  /** Applied writes that are not settled. */
  applied = 0;
  /** Resolves when the writes that were asked for are settled, however they ended. */
  settled: Promise<void> | undefined;
  /** Resolves when reading has ended; `failure` says why nothing is known after it. */
  loading: Promise<void> | undefined;
  failure: unknown;
  users = 0;

  /** Made by {@linkcode Slots.hold}. */
  constructor(id: string, key: StoreKey, committed: Known | undefined) {
    this.id = id;
    this.key = key;
    this.committed = committed;
  }

  /** What the next write sees; `undefined` when that is not known. */
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

  /** `onLoaded` is called whenever something became known, or could not be read. */
  constructor(cache: Cache, read: Read, onLoaded: () => void) {
    this.#cache = cache;
    this.#read = read;
    this.#onLoaded = onLoaded;
  }

  /** What is on disk, if it is known and nobody holds the key. */
  atRest(id: string): Known | undefined {
    return this.#slots.has(id) ? undefined : this.#cache.get(id);
  }

  /** The slot of a key that somebody holds. */
  get(id: string): Slot | undefined {
    return this.#slots.get(id);
  }

  /** The slot of a key, until {@linkcode release}. */
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

  /** Ends one hold. */
  release(slot: Slot): void {
    if (--slot.users === 0) this.#slots.delete(slot.id);
  }

  /** A write is applied: the next one sees what it leaves. */
  apply(slot: Slot, known: Known): void {
    slot.newest = known;
    slot.applied++;
  }

  /** An applied write is on disk, or with `undefined` it failed and nothing is sure any more. */
  settle(slot: Slot, known: Known | undefined): void {
    slot.applied--;
    if (known === undefined || slot.applied === 0) slot.newest = undefined;
    slot.committed = known;
    slot.loading = undefined;
    if (known === undefined) this.#cache.delete(slot.id);
    else this.#cache.set(slot.id, known);
  }

  /** Reads what is on disk. Keys that are asked for in one turn are read together. */
  load(slot: Slot): Promise<void> {
    return slot.loading ??= new Promise((done) => {
      slot.failure = undefined;
      if (this.#toLoad.push({ slot, done }) === 1) queueMicrotask(() => this.#startLoads());
    });
  }

  /** Resolves when nothing is being read. */
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
