/**
 * A store in memory: for tests, and for an engine without a state file.
 *
 * A write is complete when `write()` returns. Values are copied when they are written, as by a
 * store on disk.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type {
  Changed,
  Entry,
  KeyChange,
  Store,
  StoreKey,
  StoreStats,
  StoreStatus,
} from "../ports/store.ts";
import { applyChanges, checkWrite } from "./write.ts";
import { StoredEntry } from "./record.ts";
import { checkKey, compareKeys, isBelow, keyId } from "./store_key.ts";

const decoder = new TextDecoder();

/** Keeps entries in a map, until the process ends. */
export class MemoryStore implements Store {
  readonly #entries = new Map<string, Entry>();
  /** All entries in key order, sorted by the first list after a change. */
  #sorted: Entry[] | undefined;
  #version = 0;
  #isClosed = false;
  readonly #stats = { commits: 0, changes: 0, failed: 0, lost: 0, bytes: 0, commit_ms: null };

  get stats(): StoreStats {
    return this.#stats;
  }

  readonly status: StoreStatus = {
    path: null,
    failure: null,
    damaged: [],
    queued_bytes: 0,
    cache_bytes: 0,
    freeBytes: () => null,
  };

  // deno-lint-ignore require-await -- A throw is to become a rejection.
  async get(key: StoreKey): Promise<Entry | undefined> {
    this.#assertOpen();
    checkKey(key);
    return this.#entries.get(keyId(key));
  }

  // deno-lint-ignore require-await -- A throw is to become a rejection.
  async list(
    prefix: StoreKey,
    limit: number,
    after?: StoreKey,
    bytesMax: number = Infinity,
  ): Promise<Entry[]> {
    this.#assertOpen();
    this.#sorted ??= [...this.#entries.values()].sort((a, b) => compareKeys(a.key, b.key));
    const first = firstAfter(
      this.#sorted,
      after && compareKeys(after, prefix) > 0 ? after : prefix,
    );
    const found: Entry[] = [];
    let bytes = 0;
    for (let i = first; i < this.#sorted.length; i++) {
      if (found.length >= limit || bytes >= bytesMax) break;
      const entry = this.#sorted[i]!;
      if (!isBelow(entry.key, prefix)) break;
      found.push(entry);
      bytes += entry.bytes;
    }
    return found;
  }

  // deno-lint-ignore require-await -- A throw is to become a rejection.
  async write(changes: readonly KeyChange[]): Promise<Changed[]> {
    this.#assertOpen();
    checkWrite(changes);
    const { changed, steps } = applyChanges(changes, {
      read: (id) => this.#entries.get(id),
      nextVersion: () => ++this.#version,
    });
    if (steps.length > 0) this.#stats.commits++;
    this.#stats.changes += steps.length;
    for (const { id, entry, json } of steps) {
      this.#stats.bytes += json.length;
      if (!entry) this.#entries.delete(id);
      else this.#entries.set(id, new StoredEntry(entry.key, entry, { json: decoder.decode(json) }));
    }
    if (steps.length > 0) this.#sorted = undefined;
    return changed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new EngineError("store_unavailable", "The store is closed");
  }
}

/** Index of the first entry behind a key. */
function firstAfter(sorted: readonly Entry[], key: StoreKey): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareKeys(sorted[middle]!.key, key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
