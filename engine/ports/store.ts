/**
 * Storage of built-in workers that outlives the process.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** Largest value in the store: it fits into one message with what is around it. */
export const VALUE_BYTES_MAX = 64 * 1024 * 1024 - 64 * 1024;

/** A path such as `["state", "orders", "42"]`; entries sort by it, part by part. */
export type StoreKey = readonly string[];

/** A stored value and its versions. */
export interface Entry {
  readonly key: StoreKey;
  /** Read-only: it may be the store's own copy. */
  readonly value: Json;
  /** Length of the value as JSON in UTF-8. */
  readonly bytes: number;
  /** Number of the write: a positive integer, increasing over all keys, never reused. */
  readonly version: number;
  /** Version of the write that created the entry. For insertion order. */
  readonly created: number;
}

/**
 * Computes the new value from the current entry; `undefined` stands for no entry, on both sides.
 * Returning `old` itself keeps the entry without a new version. Must be synchronous, and must not
 * modify its result later. An exception aborts the whole write and is passed to its caller.
 */
export type Change = (old: Entry | undefined) => Json | Entry | undefined;

/** Effect of one change: the entry before and after it, `undefined` for none. */
export interface Changed {
  readonly old: Entry | undefined;
  readonly new: Entry | undefined;
}

/** One key and its change. */
export type KeyChange = readonly [key: StoreKey, change: Change];

/** Counters since the store was opened; the object is live. */
export interface StoreStats {
  /** Groups of writes that reached the disk. */
  readonly commits: number;
  /** Entries in them that were set or removed. */
  readonly changes: number;
  /** Groups of writes that failed. */
  readonly failed: number;
  /** Bytes of the values in `changes`, as JSON in UTF-8. */
  readonly bytes: number;
  /** Duration of the last commit in milliseconds; `null` before the first one. */
  readonly commit_ms: number | null;
}

/** Ordered keys and whole values, written by this process only. */
export interface Store extends AsyncDisposable {
  /** Counters of the store. */
  readonly stats: StoreStats;
  /** The entry at a key. Waits for pending writes of that key. */
  get(key: StoreKey): Promise<Entry | undefined>;
  /**
   * Entries below a prefix in key order, at most `limit`, after the key `after` if given. Waits for
   * pending writes.
   */
  list(prefix: StoreKey, limit: number, after?: StoreKey): Promise<Entry[]>;
  /**
   * Applies all changes atomically; resolves when they are durable, with one {@linkcode Changed}
   * per change in the given order. Writes of one key take effect in the order of the calls, each
   * one seeing the one before.
   *
   * @throws {EngineError} `VALUE_TOO_LARGE`; `SET_ERROR` when the disk write failed.
   */
  write(changes: readonly KeyChange[]): Promise<Changed[]>;
}
