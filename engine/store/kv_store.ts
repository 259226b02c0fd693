/**
 * The store on Deno KV, with this process as its only writer.
 *
 * A write passes three stages, always in the order of the requests: it waits until the entries it
 * reads are in memory (slots.ts), is applied in memory (write.ts), and resolves when the commit
 * that contains it is on disk (group_commit.ts). Readers see only what is on disk, after waiting
 * for the earlier writes of their key.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

import type { Changed, Entry, KeyChange, Store, StoreKey, StoreStats } from "../ports/store.ts";
import { Cache, type Slot, Slots } from "./slots.ts";
import { applyChanges, checkWrite, type Step } from "./write.ts";
import { commitCost } from "./record.ts";
import { GroupCommit, type Work } from "./group_commit.ts";
import { type KvFile, type OpenKv, openKvFile } from "./kv_file.ts";
import { KvRecords, type Put } from "./kv_records.ts";
import { checkKey, keyId } from "./store_key.ts";

/** Bytes of values that the store keeps in memory. */
export const STORE_CACHE_BYTES_MAX = 256 * 1024 * 1024;

/** Options of {@linkcode openKvStore}. */
export interface KvStoreOptions {
  /** Bytes of values kept in memory. Default: {@linkcode STORE_CACHE_BYTES_MAX}. */
  readonly cacheBytesMax?: number;
  /** Opens the database; tests pass one that fails. Default: `Deno.openKv`. */
  readonly openKv?: OpenKv;
}

/** A write from the request until it is settled. */
interface Pending extends Work {
  readonly changes: readonly KeyChange[];
  /** One per key. */
  readonly slots: readonly Slot[];
  readonly answer: PromiseWithResolvers<Changed[]>;
  steps: readonly Step[];
  changed: readonly string[];
  mutations: number;
  bytes: number;
  /** Resolves or rejects the request; set when the write is applied. */
  settle: Work["settle"];
}

/**
 * Opens the store in a file and creates the file if needed; its directory must exist.
 *
 * @throws {EngineError} `store_unavailable` when the file is held by another process (named in
 * `details.pid`), cannot be written, or is not a state file.
 */
export async function openKvStore(path: string, options: KvStoreOptions = {}): Promise<Store> {
  const { cacheBytesMax = STORE_CACHE_BYTES_MAX, openKv = Deno.openKv } = options;
  const file = await openKvFile(path, openKv);
  const records = new KvRecords(file.kv);
  try {
    await records.deleteOrphanParts();
    return new KvStore(file, records, new Cache(cacheBytesMax));
  } catch (thrown) {
    file[Symbol.dispose]();
    throw failedRead("store_unavailable", thrown);
  }
}

class KvStore implements Store {
  readonly #file: KvFile;
  readonly #records: KvRecords;
  readonly #cache: Cache;
  readonly #slots: Slots;
  readonly #group: GroupCommit<Pending>;
  /** Writes that are not applied yet, in order. Not a `Set`: see `TurnoverMap`. */
  readonly #requested: Pending[] = [];
  /** Resolves when all requested lists have ended. */
  #scanned: Promise<void> = Promise.resolve();
  /** Resolves when all requested writes are settled. */
  #settled: Promise<void> = Promise.resolve();
  #version: number;
  readonly #stats = {
    commits: 0,
    changes: 0,
    failed: 0,
    bytes: 0,
    commit_ms: null as number | null,
  };
  #closing: Promise<void> | undefined;

  constructor(file: KvFile, records: KvRecords, cache: Cache) {
    this.#file = file;
    this.#version = file.version;
    this.#cache = cache;
    this.#records = records;
    this.#slots = new Slots(cache, (keys) => records.read(keys), () => this.#advance());
    this.#group = new GroupCommit((works) => this.#commit(works), () => records.deleteSomeParts());
  }

  get stats(): StoreStats {
    return this.#stats;
  }

  async get(key: StoreKey): Promise<Entry | undefined> {
    this.#assertOpen();
    checkKey(key);
    const known = this.#slots.atRest(keyId(key));
    return known !== undefined ? known ?? undefined : await this.#read(key);
  }

  async list(prefix: StoreKey, limit: number, after?: StoreKey): Promise<Entry[]> {
    this.#assertOpen();
    const scan = this.#settled.then(() => this.#scan(prefix, limit, after));
    const ended = scan.then(() => {}, () => {});
    this.#scanned = this.#scanned.then(() => ended);
    try {
      return await scan;
    } catch (thrown) {
      throw failedRead("LIST_ERROR", thrown);
    }
  }

  // deno-lint-ignore require-await -- A throw is to become a rejection.
  async write(changes: readonly KeyChange[]): Promise<Changed[]> {
    this.#assertOpen();
    checkWrite(changes);
    const keys = new Map(changes.map(([key]) => [keyId(key), key]));
    const answer = Promise.withResolvers<Changed[]>();
    const settledAlone = answer.promise.then(() => {}, () => {});
    // A failed write is settled before earlier ones that are still under way.
    const settled = this.#settled.then(() => settledAlone);
    const slots = [...keys.values()].map((key) => this.#slots.hold(key));
    for (const slot of slots) {
      slot.settled = settled;
      if (slot.state === undefined) void this.#slots.load(slot);
    }
    this.#settled = settled;
    this.#requested.push({
      changes,
      slots,
      answer,
      read: [...keys.keys()],
      steps: [],
      changed: [],
      mutations: 0,
      bytes: 0,
      settle: () => {},
    });
    this.#advance();
    return answer.promise;
  }

  async #read(key: StoreKey): Promise<Entry | undefined> {
    const slot = this.#slots.hold(key);
    try {
      await slot.settled;
      do {
        if (slot.committed !== undefined) return slot.committed ?? undefined;
        await this.#slots.load(slot);
        // Neither entry nor failure: a failed commit has overtaken the read.
      } while (slot.committed !== undefined || slot.failure === undefined);
      throw failedRead("GET_ERROR", slot.failure);
    } finally {
      this.#slots.release(slot);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#settled;
    await this.#scanned;
    await this.#group.idle();
    await this.#slots.idle();
    this.#file[Symbol.dispose]();
  }

  #assertOpen(): void {
    if (this.#closing) throw new EngineError("store_unavailable", "The store is closed");
  }

  /** Applies writes in order, up to the first whose entries are not known yet. */
  #advance(): void {
    for (let pending = this.#requested[0]; pending; pending = this.#requested[0]) {
      const unknown = pending.slots.filter(({ state }) => state === undefined);
      const unreadable = unknown.find(({ loading, failure }) => !loading && failure !== undefined);
      if (unknown.length > 0 && !unreadable) {
        for (const slot of unknown) void this.#slots.load(slot);
        return;
      }
      this.#requested.shift();
      if (unreadable) this.#refuse(pending, failedRead("SET_ERROR", unreadable.failure));
      else this.#apply(pending);
    }
  }

  #refuse(pending: Pending, failure: unknown): void {
    for (const slot of pending.slots) this.#slots.release(slot);
    pending.answer.reject(failure);
  }

  #apply(pending: Pending): void {
    let answer: () => void;
    try {
      const { changed, steps } = applyChanges(pending.changes, {
        read: (id) => this.#slots.get(id)!.state ?? undefined,
        nextVersion: () => ++this.#version,
      });
      pending.steps = steps;
      pending.changed = steps.map(({ id }) => id);
      answer = () => pending.answer.resolve(changed);
    } catch (thrown) {
      answer = () => pending.answer.reject(thrown);
    }
    for (const { id, key, entry, json } of pending.steps) {
      this.#slots.apply(this.#slots.get(id)!, entry ?? null);
      const cost = commitCost(key, json.length);
      pending.mutations += cost.mutations;
      pending.bytes += cost.bytes;
    }
    pending.settle = (failure) => this.#settle(pending, answer, failure);
    this.#group.add(pending);
  }

  #settle(pending: Pending, answer: () => void, failure: EngineError | undefined): void {
    for (const { id, entry } of pending.steps) {
      this.#slots.settle(this.#slots.get(id)!, failure ? undefined : entry ?? null);
    }
    for (const slot of pending.slots) this.#slots.release(slot);
    if (!failure) return answer();
    pending.answer.reject(failure);
    // Unknown entries are read again, after all works that failed together are undone.
    queueMicrotask(() => this.#advance());
  }

  /** Commits several writes at once; of a key that several change, only the last counts. */
  async #commit(works: readonly Pending[]): Promise<void> {
    const last = new Map<string, Step>();
    for (const { steps } of works) for (const step of steps) last.set(step.id, step);
    const puts = [...last.values()].map(({ id, key, entry, json }): Put => {
      return { key, entry, json, replaced: this.#slots.get(id)!.committed ?? undefined };
    });
    // A version of its own, so that the next commit does not overwrite the orphan note of this one.
    await this.#counted(puts, this.#records.commit(puts, ++this.#version));
  }

  /** Counts a commit when it has ended, also with an error. */
  async #counted(puts: readonly Put[], commit: Promise<void>): Promise<void> {
    const began = performance.now();
    try {
      await commit;
    } catch (thrown) {
      this.#stats.failed++;
      throw thrown;
    }
    this.#stats.commit_ms = performance.now() - began;
    this.#stats.commits++;
    this.#stats.changes += puts.length;
    for (const { json } of puts) this.#stats.bytes += json.length;
  }

  async #scan(prefix: StoreKey, limit: number, after?: StoreKey): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const found of this.#records.scan(prefix, limit, after)) {
      const cached = this.#cache.peek(keyId(found.key));
      const isCurrent = cached?.version === found.head.version;
      // Missing parts belong to a value that was replaced since the scan.
      const entry = isCurrent
        ? cached
        : await this.#records.load(found) ?? await this.#read(found.key);
      if (entry) entries.push(entry);
    }
    return entries;
  }
}

function failedRead(
  code: "GET_ERROR" | "LIST_ERROR" | "SET_ERROR" | "store_unavailable",
  cause: unknown,
): EngineError {
  if (cause instanceof EngineError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EngineError(code, `The state file could not be read (${reason})`, { cause });
}
