/**
 * The store of the built-in workers that run where the state is kept: there while this engine keeps
 * it, and refusing everything else.
 *
 * Whether it does is asked before and after each read, by the clock, so that an engine that was
 * stopped for a while never answers with what another one has changed since.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type {
  Changed,
  Entry,
  KeyChange,
  Store,
  StoreKey,
  StoreStats,
  StoreStatus,
  WriteOptions,
} from "../../ports/store.ts";

/** A store that comes and goes. */
export class KeptStore implements Store {
  #store: Store | undefined;
  #isHeld: () => boolean = () => false;

  /** The store from now on, as long as `isHeld` says so; `undefined`: none. */
  set(store: Store | undefined, isHeld: () => boolean = () => false): void {
    this.#store = store;
    this.#isHeld = isHeld;
  }

  get stats(): StoreStats {
    return this.#store?.stats ?? NO_STATS;
  }

  get status(): StoreStatus {
    return this.#store?.status ?? NO_STATUS;
  }

  get(key: StoreKey): Promise<Entry | undefined> {
    return this.#read((store) => store.get(key));
  }

  list(...query: Parameters<Store["list"]>): Promise<Entry[]> {
    return this.#read((store) => store.list(...query));
  }

  // deno-lint-ignore require-await -- A throw is to become a rejection.
  async write(changes: readonly KeyChange[], options?: WriteOptions): Promise<Changed[]> {
    // The log refuses writes of an engine that was replaced, whatever its clock says.
    return this.#current().write(changes, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(); // Its owner disposes of what is behind it.
  }

  async #read<T>(read: (store: Store) => Promise<T>): Promise<T> {
    const result = await read(this.#current());
    this.#current();
    return result;
  }

  #current(): Store {
    if (this.#store && this.#isHeld()) return this.#store;
    throw new EngineError("store_unavailable", "This engine does not keep the state now");
  }
}

const NO_STATS: StoreStats = {
  commits: 0,
  changes: 0,
  failed: 0,
  lost: 0,
  bytes: 0,
  commit_ms: null,
};

const NO_STATUS: StoreStatus = {
  path: null,
  failure: null,
  damaged: [],
  queued_bytes: 0,
  cache_bytes: 0,
  freeBytes: () => null,
};
