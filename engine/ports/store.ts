/**
 * Where built-in workers keep what must outlive the process.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** A path such as `["state", "orders", "42"]`; entries sort by it, part by part. */
export type StoreKey = readonly string[];

/** A value and when it was written. */
export interface Entry {
  readonly key: StoreKey;
  /** Not to be changed: it may be the store's own copy. */
  readonly value: Json;
  /** Length of the value as JSON in UTF-8. */
  readonly bytes: number;
  /** Number of the write: a positive integer that grows over all keys and is never used twice. */
  readonly version: number;
  /** Version of the write that made the entry, kept while it exists. For insertion order. */
  readonly created: number;
}

/**
 * Turns what is there (`undefined`: nothing) into what is to be there (`undefined`: nothing).
 * Returning `old` itself leaves the entry as it is, without a new version. Must not wait, and must
 * not change later what it returned. A throw undoes the whole write and is handed to its caller as
 * it is.
 */
export type Change = (old: Entry | undefined) => Json | Entry | undefined;

/** What one change did: the entry before and after it, `undefined` for none. */
export interface Changed {
  readonly old: Entry | undefined;
  readonly new: Entry | undefined;
}

/** One key and what to do there. */
export type KeyChange = readonly [key: StoreKey, change: Change];

/** What a store has done since it was opened; the object is live. */
export interface StoreStats {
  /** Groups of writes that are on disk. */
  readonly commits: number;
  /** Entries in them that were set or removed. */
  readonly changes: number;
  /** Groups of writes that the disk refused. */
  readonly failed: number;
  /** Bytes of the values in `changes`, as JSON in UTF-8. */
  readonly bytes: number;
  /** How long the last commit took until it was on disk, in milliseconds; `null` before one. */
  readonly commit_ms: number | null;
}

/** Ordered keys and whole values, written by this process alone. */
export interface Store extends AsyncDisposable {
  /** Counts of what it did. */
  readonly stats: StoreStats;
  /** The entry at a key. Waits for a write of that key that is on its way. */
  get(key: StoreKey): Promise<Entry | undefined>;
  /**
   * Entries below a prefix, in key order, `limit` at most, after `after` if given. Waits for the
   * writes that are on their way.
   */
  list(prefix: StoreKey, limit: number, after?: StoreKey): Promise<Entry[]>;
  /**
   * All changes in one step, or none if one throws; resolves when a crash cannot undo them any
   * more, with one {@linkcode Changed} per change in the order given. Writes of one key take
   * effect in the order in which they were asked for, each seeing the one before.
   *
   * @throws {EngineError} `VALUE_TOO_LARGE`; `SET_ERROR` when the disk refused.
   */
  write(changes: readonly KeyChange[]): Promise<Changed[]>;
}
