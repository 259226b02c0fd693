/**
 * The store on Deno KV, with this process as its only writer.
 *
 * A write passes three stages, always in the order of the requests: it waits until the entries it
 * reads are in memory (slots.ts), is applied in memory (write.ts), and resolves when the commit
 * that contains it is on disk (group_commit.ts), or when it is applied, if its caller accepts that.
 * Readers of a key see only what was acknowledged, after waiting for its earlier writes; lists wait
 * until all earlier writes are on disk.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

import { statfsSync } from "node:fs";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import type {
  Changed,
  DamagedKey,
  Entry,
  KeyChange,
  StateCheck,
  Store,
  StoreFile,
  StoreKey,
  StoreStats,
  StoreStatus,
  WriteOptions,
} from "../ports/store.ts";
import type { Turns } from "../ports/turns.ts";
import { Cache, type Slot, Slots } from "./slots.ts";
import { applyChanges, checkWrite, sizeOf, type Step } from "./write.ts";
import { Outstanding } from "./outstanding.ts";
import { commitCost } from "./record.ts";
import { GroupCommit, type Work } from "./group_commit.ts";
import { type KvFile, type OpenKv, openKvFile } from "./kv_file.ts";
import { KvRecords, type Put } from "./kv_records.ts";
import type { StateTask } from "./state_thread.ts";
import { checkKey, keyId } from "./store_key.ts";
import { RequestedWrites, SettledAnswers } from "./write_turns.ts";

/** Bytes of values that the store keeps in memory. */
export const STORE_CACHE_BYTES_MAX = 128 * 1024 * 1024;
/** Bytes that stay cached when the store was not used for {@linkcode IDLE_MS}. */
const IDLE_CACHE_BYTES = 8 * 1024 * 1024;
const IDLE_MS = 30_000;
/** Bytes of writes that wait for the disk; one write may be larger when nothing else waits. */
export const STORE_QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that are deleted or replaced before the file is asked to shrink. */
const SHRINK_AFTER_BYTES = 32 * 1024 * 1024;
/**
 * Versions that are skipped at the start: those of writes that were acknowledged and did not reach
 * the disk. More than 60 s of such writes can use.
 */
const SKIPPED_VERSIONS = 2 ** 24;
/** Damaged keys that the status names. */
const DAMAGED_KEYS_MAX = 100;

/** Options of {@linkcode openKvStore}. */
export interface KvStoreOptions {
  /** Bytes of values kept in memory. Default: {@linkcode STORE_CACHE_BYTES_MAX}. */
  readonly cacheBytesMax?: number;
  /** Opens the database; tests pass one that fails. Default: `Deno.openKv`. */
  readonly openKv?: OpenKv;
  /** Takes what is there when it is not what was there before. Default `false`. */
  readonly acceptsEmptyState?: boolean;
  /** Gets notices about damage. */
  readonly log?: Log;
  /** Shared with the rest of the process. Default: unlimited. */
  readonly memory?: MemoryBudget;
  /** Default: the cache keeps what it has when the store is idle. */
  readonly clock?: Clock;
  /** Where the answers of a commit have their turns. Default: they are given at once. */
  readonly turns?: Turns;
}

/** A write from the request until it is settled. */
interface Pending extends Work {
  /** Grows with the requests. */
  readonly number: number;
  /** Empty when they are applied: what is kept until a commit costs every collection. */
  changes: readonly KeyChange[];
  /** One per key. */
  readonly slots: readonly Slot[];
  answer(changed: Changed[]): void;
  refuse(reason: unknown): void;
  /** Answered when it is applied, before it is on disk. */
  readonly isEarly: boolean;
  steps: readonly Step[];
  changed: readonly string[];
  mutations: number;
  bytes: number;
  /** Bytes of the queue that it holds, and as what they count for its bound. */
  taken: number;
  weight: number;
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
  const { openKv = Deno.openKv, acceptsEmptyState, log } = options;
  const file = await openKvFile(path, openKv, { acceptsEmptyState, log });
  return await openStoreOn(file, path, options);
}

/** Opens the store in a database that is open; `path` is that of its file. */
export async function openStoreOn(
  file: KvFile,
  path: string,
  options: KvStoreOptions = {},
): Promise<Store> {
  const records = new KvRecords(file.kv, file.marker);
  try {
    await records.deleteOrphanParts();
    return new KvStore(path, file, records, options);
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
  readonly #answers: SettledAnswers;
  readonly #requested: RequestedWrites<Pending>;
  /** Resolves when all requested lists have ended. */
  #scanned: Promise<void> = Promise.resolve();
  /** Requested writes that are not settled. */
  readonly #unsettled = new Outstanding();
  #requests = 0;
  /** Who waits for the disk: while one does, no write may wait. */
  #flushing = 0;
  #version: number;
  readonly #stats = {
    commits: 0,
    changes: 0,
    failed: 0,
    lost: 0,
    bytes: 0,
    commit_ms: null as number | null,
  };
  #closing: Promise<void> | undefined;
  readonly #path: string;
  readonly #options: KvStoreOptions;
  readonly #memory: MemoryBudget;
  /** By the id of the key. */
  readonly #damaged = new Map<string, DamagedKey>();
  #failure: StoreStatus["failure"] = null;
  #queuedBytes = 0;
  /** What counts for {@linkcode STORE_QUEUED_BYTES_MAX}. */
  #queuedWeight = 0;
  #usedAtMs = 0;
  #cancelIdle: (() => void) | undefined;
  /** Bytes of values that were deleted or replaced since the file was asked to shrink. */
  #freedBytes = 0;
  /** Tasks in threads of their own. */
  readonly #tasks = new Set<Promise<unknown>>();

  constructor(path: string, file: KvFile, records: KvRecords, options: KvStoreOptions) {
    this.#path = path;
    this.#options = options;
    this.#memory = options.memory ?? UNLIMITED_MEMORY;
    this.#file = file;
    this.#version = file.version + SKIPPED_VERSIONS;
    const cache = new Cache(options.cacheBytesMax ?? STORE_CACHE_BYTES_MAX, this.#memory);
    this.#cache = cache;
    this.#records = records;
    this.#requested = new RequestedWrites(options.turns, (pending) => this.#try(pending));
    this.#slots = new Slots(cache, (keys) => records.read(keys), () => this.#requested.advance());
    this.#answers = new SettledAnswers(options.turns);
    this.#group = new GroupCommit(
      (works) => this.#commit(works),
      () => this.#idleWork(),
      options.clock,
    );
  }

  get stats(): StoreStats {
    return this.#stats;
  }

  get status(): StoreStatus {
    return {
      path: this.#path,
      failure: this.#failure ?? this.#lostFile(),
      damaged: [...this.#damaged.values()],
      queued_bytes: this.#queuedBytes,
      cache_bytes: this.#cache.bytes,
      freeBytes: () => spaceAt(this.#path)?.free ?? null,
      diskBytes: () => spaceAt(this.#path)?.size ?? null,
    };
  }

  get file(): StoreFile {
    return {
      check: () => this.#inThread({ task: "check", path: this.#path }),
      backup: (to) => this.#inThread({ task: "copy", path: this.#path, to }),
    };
  }

  async get(key: StoreKey): Promise<Entry | undefined> {
    this.#assertOpen();
    checkKey(key);
    this.#used();
    const known = this.#slots.atRest(keyId(key));
    const entry = known !== undefined ? known ?? undefined : await this.#read(key);
    if (entry?.damaged !== undefined) throw this.#damage(entry);
    return entry;
  }

  async list(
    prefix: StoreKey,
    limit: number,
    after?: StoreKey,
    bytesMax: number = Infinity,
  ): Promise<Entry[]> {
    this.#assertOpen();
    this.#used();
    const scan = this.#flushed().then(() => this.#scan(prefix, limit, after, bytesMax));
    const ended = scan.then(() => {}, () => {});
    this.#scanned = this.#scanned.then(() => ended);
    try {
      return await scan;
    } catch (thrown) {
      throw failedRead("LIST_ERROR", thrown);
    }
  }

  write(changes: readonly KeyChange[], options: WriteOptions = {}): Promise<Changed[]> {
    try {
      this.#assertOpen();
      checkWrite(changes);
      this.#used();
      if (this.#queuedWeight >= STORE_QUEUED_BYTES_MAX) throw tooMuchQueued();
    } catch (thrown) {
      return Promise.reject(thrown);
    }
    const number = ++this.#requests;
    this.#unsettled.begin(number);
    const { read, slots } = this.#hold(changes);
    for (const slot of slots) {
      slot.unanswered.begin(number);
      if (slot.state === undefined) void this.#slots.load(slot);
    }
    const { promise, resolve, reject } = Promise.withResolvers<Changed[]>();
    const { flushMs = 0 } = options;
    this.#requested.add({
      number,
      changes,
      slots,
      answer: resolve,
      refuse: reject,
      isEarly: flushMs > 0,
      flushMs,
      read,
      steps: [],
      changed: [],
      mutations: 0,
      bytes: 0,
      taken: 0,
      weight: 0,
      settle: () => {},
    });
    return promise;
  }

  /** Holds the keys of a write, each once. */
  #hold(changes: readonly KeyChange[]): { read: string[]; slots: Slot[] } {
    if (changes.length === 1) {
      const slot = this.#holdOne(changes[0]!);
      return { read: [slot.id], slots: [slot] };
    }
    const held = new Map<string, Slot>();
    for (const change of changes) {
      const id = keyId(change[0]);
      if (!held.has(id)) held.set(id, this.#holdOne(change));
    }
    return { read: [...held.keys()], slots: [...held.values()] };
  }

  #holdOne([key, _change, known]: KeyChange): Slot {
    return known === undefined ? this.#slots.hold(key) : this.#slots.holdKnown(key, known);
  }

  async #read(key: StoreKey): Promise<Entry | undefined> {
    const slot = this.#slots.hold(key);
    try {
      // A failed write may be settled before earlier ones that are still under way.
      await slot.unanswered.ended();
      do {
        if (slot.readable !== undefined) return slot.readable ?? undefined;
        await this.#slots.load(slot);
        // Neither entry nor failure: a failed commit has overtaken the read.
      } while (slot.readable !== undefined || slot.failure === undefined);
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
    await this.#flushed();
    await this.#scanned;
    await this.#group.idle();
    await this.#slots.idle();
    this.#cancelIdle?.();
    await Promise.allSettled(this.#tasks);
    this.#cache.shrink(0);
    this.#file[Symbol.dispose]();
  }

  /** Resolves when all writes that were requested are on disk, or failed. */
  async #flushed(): Promise<void> {
    this.#flushing++;
    this.#group.flush();
    try {
      await this.#unsettled.ended();
    } finally {
      this.#flushing--;
    }
  }

  #assertOpen(): void {
    if (this.#closing) throw new EngineError("store_unavailable", "The store is closed");
  }

  /** Applies a write; `false`: its entries are not known yet. */
  #try(pending: Pending): boolean {
    const unknown = pending.slots.filter(({ state }) => state === undefined);
    const unreadable = unknown.find(({ loading, failure }) => !loading && failure !== undefined);
    if (unreadable) this.#refuse(pending, failedRead("SET_ERROR", unreadable.failure));
    else if (unknown.length === 0) this.#apply(pending);
    for (const slot of unreadable ? [] : unknown) void this.#slots.load(slot);
    return unknown.length === 0 || unreadable !== undefined;
  }

  #refuse(pending: Pending, failure: unknown): void {
    this.#release(pending, true);
    pending.refuse(failure);
  }

  /** Ends the holds of a write that is settled. */
  #release({ number, slots }: Pending, isAnswered: boolean): void {
    for (const slot of slots) {
      if (isAnswered) slot.unanswered.end(number);
      this.#slots.release(slot);
    }
    this.#unsettled.end(number);
  }

  #apply(pending: Pending): void {
    let answer: () => void;
    try {
      const { changed, steps } = applyChanges(pending.changes, {
        read: (id) => this.#slots.get(id)!.state ?? undefined,
        nextVersion: () => ++this.#version,
      });
      for (const { old } of changed) if (old?.damaged !== undefined) this.#damage(old);
      this.#takeQueue(pending, steps);
      pending.steps = steps;
      pending.changed = steps.map(({ id }) => id);
      answer = () => pending.answer(changed);
    } catch (thrown) {
      answer = () => pending.refuse(thrown);
    }
    pending.changes = [];
    const { isEarly } = pending;
    for (const { id, key, entry, bytes } of pending.steps) {
      this.#slots.apply(this.#slots.get(id)!, entry ?? null, isEarly);
      const cost = commitCost(key, bytes);
      pending.mutations += cost.mutations;
      pending.bytes += cost.bytes;
    }
    if (isEarly) {
      answer();
      for (const slot of pending.slots) slot.unanswered.end(pending.number);
      answer = () => {};
    }
    pending.settle = (failure) => this.#settle(pending, answer, failure);
    this.#group.add(pending);
    if (this.#flushing > 0) this.#group.flush();
  }

  /** @throws {EngineError} `overloaded` when too much waits for the disk. */
  #takeQueue(pending: Pending, steps: readonly Step[]): void {
    const { bytes, weight } = sizeOf(steps);
    const fits = this.#queuedWeight === 0 ||
      this.#queuedWeight + weight <= STORE_QUEUED_BYTES_MAX;
    if (!fits || !this.#memory.take("queues", bytes)) throw tooMuchQueued();
    this.#queuedBytes += bytes;
    this.#queuedWeight += weight;
    pending.taken = bytes;
    pending.weight = weight;
  }

  /** Notes a damaged key; the error for its reader. */
  #damage({ key, damaged }: Entry): EngineError {
    const id = keyId(key);
    const reason = damaged!;
    if (!this.#damaged.has(id) && this.#damaged.size < DAMAGED_KEYS_MAX) {
      this.#damaged.set(id, { key, reason });
      const name = key.join("/");
      this.#options.log?.error("a record of the state is damaged", { key: name, reason });
    }
    return new EngineError(
      "GET_ERROR",
      `The record of ${key.join("/")} is damaged: ${reason}; write or delete the key, or restore ` +
        "a backup with `engine state restore FILE`",
      { details: { key: [...key] } },
    );
  }

  /** After a while without use, most of the cache is given back. */
  #used(): void {
    const { clock } = this.#options;
    if (!clock) return;
    this.#usedAtMs = clock.now();
    this.#cancelIdle ??= clock.after(IDLE_MS, () => this.#checkIdle(clock));
  }

  #checkIdle(clock: Clock): void {
    this.#cancelIdle = undefined;
    const restMs = this.#usedAtMs + IDLE_MS - clock.now();
    if (restMs > 0) this.#cancelIdle = clock.after(restMs, () => this.#checkIdle(clock));
    else this.#cache.shrink(IDLE_CACHE_BYTES);
  }

  #settle(pending: Pending, answer: () => void, failure: EngineError | undefined): void {
    this.#queuedBytes -= pending.taken;
    this.#queuedWeight -= pending.weight;
    this.#memory.release("queues", pending.taken);
    for (const { id, entry } of pending.steps) {
      if (!failure) this.#damaged.delete(id);
      this.#slots.settle(this.#slots.get(id)!, failure ? undefined : entry ?? null);
    }
    this.#release(pending, !pending.isEarly);
    if (!failure) return pending.isEarly ? undefined : this.#answers.add(answer);
    if (pending.isEarly && pending.steps.length > 0) this.#lost();
    this.#answers.add(() => pending.refuse(failure));
    // Unknown entries are read again, after all works that failed together are undone.
    queueMicrotask(() => this.#requested.advance());
  }

  /** An acknowledged write is undone, with those that were built on it. */
  #lost(): void {
    if (this.#stats.lost++ > 0) return;
    const hint = "the disk refused it; durability: always waits for the disk";
    this.#options.log?.error("an acknowledged write of the state is lost", { hint });
  }

  /** Commits several writes at once; of a key that several change, only the last counts. */
  async #commit(works: readonly Pending[]): Promise<void> {
    const last = new Map<string, Step>();
    for (const { steps } of works) for (const step of steps) last.set(step.id, step);
    const puts = [...last.values()].map(({ id, key, entry, json }): Put => {
      return { key, entry, json, replaced: this.#slots.get(id)!.committed ?? undefined };
    });
    // A version of its own, so that the next commit does not overwrite the orphan note of this one.
    await this.#counted(puts, this.#commitThere(puts, ++this.#version));
    for (const { replaced, json } of puts) {
      this.#freedBytes += Math.max(0, (replaced?.bytes ?? 0) - json.length);
    }
  }

  /** Refuses a commit that would be lost with the process. */
  async #commitThere(puts: readonly Put[], version: number): Promise<void> {
    const lost = this.#lostFile();
    if (lost) throw new Error(lost.message);
    await this.#records.commit(puts, version);
  }

  #lostFile(): StoreStatus["failure"] {
    const problem = this.#file.lost?.();
    if (problem === undefined) return null;
    const message =
      `the state file ${this.#path} ${problem} while the engine runs; move it back, ` +
      "or stop the engine and restore a backup with `engine state restore FILE`";
    return { at_ms: Date.now(), message };
  }

  async #inThread(task: StateTask): Promise<StateCheck> {
    this.#assertOpen();
    const { runInThread } = await import("./state_thread.ts");
    const running = runInThread(task);
    this.#tasks.add(running);
    try {
      return await running ?? EMPTY_CHECK;
    } finally {
      this.#tasks.delete(running);
    }
  }

  /** Deletes parts of values that are gone; the pages they leave are then given back. */
  async #idleWork(): Promise<boolean> {
    if (await this.#records.deleteSomeParts()) return true;
    this.#shrinkIfWorth();
    return false;
  }

  #shrinkIfWorth(): void {
    if (this.#freedBytes < SHRINK_AFTER_BYTES || this.#closing) return;
    this.#freedBytes = 0;
    this.#inThread({ task: "shrink", path: this.#path }).catch((thrown: unknown) => {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#options.log?.warn("the state file could not be shrunk", { reason });
    });
  }

  /** Counts a commit when it has ended, also with an error. */
  async #counted(puts: readonly Put[], commit: Promise<void>): Promise<void> {
    const began = performance.now();
    try {
      await commit;
    } catch (thrown) {
      this.#stats.failed++;
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      if (!this.#failure) {
        this.#options.log?.error("the state cannot be written", { path: this.#path, message });
      }
      this.#failure = { at_ms: Date.now(), message };
      throw thrown;
    }
    if (this.#failure) this.#options.log?.info("the state can be written again", {});
    this.#failure = null;
    this.#stats.commit_ms = performance.now() - began;
    this.#stats.commits++;
    this.#stats.changes += puts.length;
    for (const { json } of puts) this.#stats.bytes += json.length;
  }

  async #scan(
    prefix: StoreKey,
    limit: number,
    after: StoreKey | undefined,
    bytesMax: number,
  ): Promise<Entry[]> {
    const entries: Entry[] = [];
    let bytes = 0;
    for await (const found of this.#records.scan(prefix, limit, after)) {
      const cached = this.#cache.peek(keyId(found.key));
      const isCurrent = cached?.version === found.head?.version;
      // Missing parts belong to a value that was replaced since the scan.
      const entry = isCurrent
        ? cached
        : await this.#records.load(found) ?? await this.#read(found.key);
      if (!entry) continue;
      if (entry.damaged !== undefined) this.#damage(entry);
      entries.push(entry);
      bytes += entry.bytes;
      if (bytes >= bytesMax) break;
    }
    return entries;
  }
}

const EMPTY_CHECK: StateCheck = {
  records: 0,
  bytes: 0,
  damaged_count: 0,
  damaged: [],
  problems: [],
};

function tooMuchQueued(): EngineError {
  return new EngineError("overloaded", "Too much state waits for the disk; write again later");
}

function spaceAt(path: string): { free: number; size: number } | null {
  try {
    const { bavail, blocks, bsize } = statfsSync(path.slice(0, path.lastIndexOf("/") + 1) || ".");
    return { free: bavail * bsize, size: blocks * bsize };
  } catch {
    return null; // Not supported here.
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
