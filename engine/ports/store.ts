/**
 * Storage of built-in workers that outlives the process.
 *
 * @module
 */
import type { JsonText } from "../../sdk/typescript/wire/member_text.ts";
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
  /** The value as JSON: the stored text, if it was written as text or read from a file. */
  readonly json: string;
  /** Length of the value as JSON in UTF-8. */
  readonly bytes: number;
  /** Number of the write: a positive integer, increasing over all keys, never reused. */
  readonly version: number;
  /** Version of the write that created the entry. For insertion order. */
  readonly created: number;
  /**
   * Why the record cannot be read; the value is `null` then, and the versions are 0. It can be
   * overwritten and deleted. `get` fails for such a key instead.
   */
  readonly damaged?: string;
}

/**
 * Computes the new value from the current entry; `undefined` stands for no entry, on both sides.
 * Returning `old` itself keeps the entry without a new version. Must be synchronous, and must not
 * modify its result later; a text is stored as it is. An exception aborts the whole write and is
 * passed to its caller.
 */
export type Change = (old: Entry | undefined) => Json | JsonText | Entry | undefined;

/** Effect of one change: the entry before and after it, `undefined` for none. */
export interface Changed {
  readonly old: Entry | undefined;
  readonly new: Entry | undefined;
}

/**
 * One key and its change. `known`: the entry that is on disk, or `null` for none, from a caller
 * that alone writes this key; it is not read then, and does not stay in memory.
 */
export type KeyChange = readonly [key: StoreKey, change: Change, known?: Entry | null];

/** How a write is made. */
export interface WriteOptions {
  /**
   * The write resolves when it is applied, and is on disk at most so many milliseconds later,
   * unless the disk refuses it or the process dies before; what survives then is a prefix of what
   * was applied. Default: it resolves when it is durable.
   */
  readonly flushMs?: number;
}

/** Counters since the store was opened; the object is live. */
export interface StoreStats {
  /** Groups of writes that reached the disk. */
  readonly commits: number;
  /** Entries in them that were set or removed. */
  readonly changes: number;
  /** Groups of writes that failed. */
  readonly failed: number;
  /** Writes in them that had been acknowledged: see {@linkcode WriteOptions.flushMs}. */
  readonly lost: number;
  /** Bytes of the values in `changes`, as JSON in UTF-8. */
  readonly bytes: number;
  /** Duration of the last commit in milliseconds; `null` before the first one. */
  readonly commit_ms: number | null;
}

/** A key whose record cannot be read. */
export interface DamagedKey {
  /** Where the record is. */
  readonly key: StoreKey;
  /** What is wrong with it, as a sentence. */
  readonly reason: string;
}

/** What health and metrics need to know of a store; the object is live. */
export interface StoreStatus {
  /** The state file; `null`: in memory. */
  readonly path: string | null;
  /** Why the last commit failed; `null` when it succeeded. */
  readonly failure: { readonly at_ms: number; readonly message: string } | null;
  /** Damaged keys that were met since the store was opened, a hundred at most. */
  readonly damaged: readonly DamagedKey[];
  /** Bytes of writes that are not on disk yet. */
  readonly queued_bytes: number;
  /** Estimated bytes of cached entries. */
  readonly cache_bytes: number;
  /** Free bytes on the disk of the state file, measured now; `null`: unknown. */
  freeBytes(): number | null;
  /** Size of that disk. Default: unknown. */
  diskBytes?(): number | null;
}

/** Result of verifying a state file. */
export interface StateCheck {
  /** Records that were read. */
  readonly records: number;
  /** Bytes of their values. */
  readonly bytes: number;
  /** Records that cannot be read. */
  readonly damaged_count: number;
  /** A hundred at most. */
  readonly damaged: readonly DamagedKey[];
  /** What SQLite's own check found; empty when it is intact. */
  readonly problems: readonly string[];
}

/** The file of a store that is open, beside which other threads may work. */
export interface StoreFile {
  /** Verifies every record and the file while writes go on. */
  check(): Promise<StateCheck>;
  /** Copies the state to an absolute path while writes go on, and verifies the copy. */
  backup(to: string): Promise<StateCheck>;
}

/** Ordered keys and whole values, written by this process only. */
export interface Store extends AsyncDisposable {
  /** Counters of the store. */
  readonly stats: StoreStats;
  /** Health of the store. */
  readonly status: StoreStatus;
  /** Absent: the store has no file. */
  readonly file?: StoreFile;
  /**
   * The entry at a key. Waits for pending writes of that key.
   *
   * @throws {EngineError} `GET_ERROR` with `details.key` when its record is damaged.
   */
  get(key: StoreKey): Promise<Entry | undefined>;
  /**
   * Entries below a prefix in key order, at most `limit`, after the key `after` if given; it ends
   * with the entry that reaches `bytesMax` bytes. Damaged entries are among them. Waits for pending
   * writes.
   */
  list(prefix: StoreKey, limit: number, after?: StoreKey, bytesMax?: number): Promise<Entry[]>;
  /**
   * Applies all changes atomically; resolves when they are durable, with one {@linkcode Changed}
   * per change in the given order. Writes of one key take effect in the order of the calls, each
   * one seeing the one before.
   *
   * @throws {EngineError} `VALUE_TOO_LARGE`; `SET_ERROR` when the disk write failed; `overloaded`
   * when too many bytes wait for the disk.
   */
  write(changes: readonly KeyChange[], options?: WriteOptions): Promise<Changed[]>;
}
