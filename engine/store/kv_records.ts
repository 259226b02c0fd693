/**
 * Records and parts in Deno KV: what is read, and what one commit is made of.
 *
 * | key | holds |
 * | --- | --- |
 * | `head` | format of the file and largest version, written with every commit |
 * | `entry`, …key | the record of an entry |
 * | `part`, version, number | one part of a large value |
 * | `debris`, number | note about parts that belong to no entry: not yet, or no longer |
 *
 * Parts that do not fit into the commit of their record are written before it, with a note; the
 * record's commit deletes that note and writes one about the parts it replaced. So at any moment of
 * a crash every part has a record or a note, and opening the file deletes the noted parts.
 *
 * @module
 */
import {
  commitCost,
  cutParts,
  damagedEntry,
  decodeRecord,
  encodeRecord,
  type Head,
  joinParts,
  type Known,
  makeEntry,
  partsFor,
  recordBytes,
  STORE_COMMIT_BYTES_MAX,
  STORE_COMMIT_CHANGES_MAX,
  STORE_RECORD_BYTES_MAX,
} from "./record.ts";
import type { Entry, StoreKey } from "../ports/store.ts";
import { FILE_FORMAT, FILE_HEAD_KEY, type FileHead, type KvDatabase } from "./kv_file.ts";
import type { Marker } from "./marker.ts";
import { compareKeys, isBelow } from "./store_key.ts";

/** Keys that Deno KV reads at once. */
export const READ_KEYS_MAX = 10;
/** Records that one step of a scan fetches. */
const SCAN_RECORDS = 500;

/** A key as a commit leaves it. */
export interface Put {
  readonly key: StoreKey;
  /** `undefined` to delete the key. */
  readonly entry: Entry | undefined;
  readonly json: Uint8Array;
  /** The current entry. */
  readonly replaced: Entry | undefined;
}

/** A record with its key; without a head, its bytes are no record. */
export interface Found {
  readonly key: StoreKey;
  readonly head: Head | undefined;
}

/** The parts of one value. */
interface Parts {
  readonly version: number;
  readonly count: number;
}

/** A note about parts without a record. */
interface OrphanParts {
  readonly id: number;
  readonly parts: readonly Parts[];
}

/** The records of one open file. The caller must not let commits overlap. */
export class KvRecords {
  readonly #kv: KvDatabase;
  readonly #marker: Marker | undefined;
  #orphans: OrphanParts[] = [];

  /** `marker` identifies the file; it is part of the head. */
  constructor(kv: KvDatabase, marker?: Marker) {
    this.#kv = kv;
    this.#marker = marker;
  }

  /** Deletes the parts that a crash left without a record. */
  async deleteOrphanParts(): Promise<void> {
    for await (const { key, value } of this.#kv.list<Parts[]>({ prefix: ["debris"] })) {
      this.#orphans.push({ id: key[1] as number, parts: value });
    }
    while (await this.deleteSomeParts());
  }

  /** Deletes the parts of one note; `false` when there was none. */
  async deleteSomeParts(): Promise<boolean> {
    const next = this.#orphans.shift();
    if (!next) return false;
    const keys = next.parts.flatMap(({ version, count }) =>
      Array.from({ length: count }, (_, i) => ["part", version, i])
    );
    try {
      for (let at = 0; at < keys.length; at += STORE_COMMIT_CHANGES_MAX) {
        const some = keys.slice(at, at + STORE_COMMIT_CHANGES_MAX);
        const commit = this.#kv.atomic();
        for (const key of some) commit.delete(key);
        if (at + some.length === keys.length) commit.delete(["debris", next.id]);
        await commit.commit();
      }
    } catch {
      // The note stays in the file, so the next start tries again.
    }
    return true;
  }

  /** Reads some keys, in that order; one that the database cannot read rejects alone. */
  async read(keys: readonly StoreKey[]): Promise<PromiseSettledResult<Known>[]> {
    let found: Deno.KvEntryMaybe<Uint8Array>[];
    try {
      found = await this.#kv.getMany<Uint8Array[]>(keys.map(entryKey));
    } catch (thrown) {
      if (keys.length === 1) throw thrown;
      return await Promise.allSettled(keys.map(async (key) => {
        const [alone] = await this.read([key]);
        if (alone!.status === "rejected") throw alone!.reason;
        return alone!.value;
      }));
    }
    return Promise.allSettled(found.map(async ({ value }, i) => {
      if (value === null) return null;
      const key = keys[i]!;
      return await this.load({ key, head: headOf(value) }) ??
        damagedEntry(key, "parts of its value are missing");
    }));
  }

  /** Records below a prefix in key order, starting after `after`. */
  async *scan(prefix: StoreKey, limit: number, after?: StoreKey): AsyncGenerator<Found> {
    if (limit < 1) return;
    const isBeyond = after && compareKeys(after, prefix) > 0;
    if (isBeyond && !isBelow(after, prefix)) return;
    // All parts are strings, so an empty byte string sorts before and a number behind any of them.
    const start = [...entryKey(isBeyond ? after : prefix), new Uint8Array()];
    const end = [...entryKey(prefix), 0];
    const batchSize = Math.min(limit, SCAN_RECORDS);
    for await (
      const { key, value } of this.#kv.list<Uint8Array>({ start, end }, { limit, batchSize })
    ) yield { key: key.slice(1) as string[], head: headOf(value) };
  }

  /**
   * Reads the entry of a record, which may be damaged; `undefined` when its parts were deleted
   * since it was read.
   */
  async load({ key, head }: Found): Promise<Entry | undefined> {
    if (!head) return damagedEntry(key, "its bytes are no record");
    const json = head.json ?? await this.#readParts(head);
    if (!json) return undefined;
    try {
      return makeEntry(key, head, json);
    } catch (thrown) {
      return damagedEntry(key, thrown instanceof Error ? thrown.message : String(thrown));
    }
  }

  async #readParts(head: Head): Promise<Uint8Array | undefined> {
    const keys = Array.from(
      { length: partsFor(head.bytes) },
      (_, i) => ["part", head.version, i] as const,
    );
    const parts: Uint8Array[] = [];
    for (let at = 0; at < keys.length; at += READ_KEYS_MAX) {
      const some = keys.slice(at, at + READ_KEYS_MAX);
      for (const { value } of await this.#kv.getMany<Uint8Array[]>(some)) {
        if (!(value instanceof Uint8Array)) return undefined;
        parts.push(value);
      }
    }
    return joinParts(parts, head.bytes);
  }

  /** Commits all puts atomically. `version` is the largest one in use. */
  async commit(puts: readonly Put[], version: number): Promise<void> {
    const ahead = chooseAhead(puts);
    if (ahead.size > 0) await this.#sendAhead([...ahead], version);

    const commit = this.#kv.atomic().set(FILE_HEAD_KEY, this.#head(version));
    // One piece of memory for all: an allocation costs more than what is written there.
    const records = new Uint8Array(
      sumOf(puts, ({ entry }) => entry ? recordBytes(entry.bytes) : 0),
    );
    let at = 0;
    for (const put of puts) {
      const { key, entry, json } = put;
      if (!entry) {
        commit.delete(entryKey(key));
        continue;
      }
      const record = records.subarray(at, at += recordBytes(entry.bytes));
      commit.set(entryKey(key), encodeRecord(entry, json, record));
      if (partsFor(json.length) === 0 || ahead.has(put)) continue;
      let i = 0;
      for (const part of cutParts(json)) commit.set(["part", entry.version, i++], part);
    }
    const parts = puts.flatMap(({ replaced }) => replaced ? partsOf(replaced) : []);
    if (parts.length > 0) commit.set(["debris", version], parts);
    else if (ahead.size > 0) commit.delete(["debris", version]);
    await commit.commit();
    if (parts.length > 0) this.#orphans.push({ id: version, parts });
  }

  #head(version: number): FileHead {
    return { format: FILE_FORMAT, version, ...this.#marker };
  }

  /** Writes parts before their records; if it fails, the note stays for the next start. */
  async #sendAhead(puts: readonly Put[], version: number): Promise<void> {
    const noted = puts.flatMap(({ entry }) => entry ? partsOf(entry) : []);
    const head = this.#head(version);
    let commit = this.#kv.atomic().set(FILE_HEAD_KEY, head).set(["debris", version], noted);
    let bytes = STORE_RECORD_BYTES_MAX; // Room for the note.
    for (const { entry, json } of puts) {
      let i = 0;
      for (const part of cutParts(json)) {
        if (bytes + part.length > STORE_COMMIT_BYTES_MAX) {
          await commit.commit();
          commit = this.#kv.atomic();
          bytes = 0;
        }
        commit.set(["part", entry!.version, i++], part); // Only values have parts.
        bytes += part.length;
      }
    }
    await commit.commit();
  }
}

/**
 * The puts whose parts must be written ahead for the rest to fit into one commit, largest first.
 */
function chooseAhead(puts: readonly Put[]): Set<Put> {
  const ahead = new Set<Put>();
  let mutations = 0;
  let bytes = 0;
  for (const { key, json } of puts) {
    const cost = commitCost(key, json.length);
    mutations += cost.mutations;
    bytes += cost.bytes;
  }
  const fits = (): boolean =>
    mutations <= STORE_COMMIT_CHANGES_MAX && bytes <= STORE_COMMIT_BYTES_MAX;
  if (fits()) return ahead;
  for (const put of puts.toSorted((a, b) => b.json.length - a.json.length)) {
    const parts = partsFor(put.json.length);
    if (fits() || parts === 0) break;
    ahead.add(put);
    mutations -= parts;
    bytes -= put.json.length;
  }
  return ahead;
}

/** A damaged entry has none: its version may be that of others. */
function partsOf({ version, bytes }: Entry): Parts[] {
  const count = partsFor(bytes);
  return count > 0 ? [{ version, count }] : [];
}

function sumOf(puts: readonly Put[], bytesOf: (put: Put) => number): number {
  return puts.reduce((sum, put) => sum + bytesOf(put), 0);
}

function entryKey(key: StoreKey): Deno.KvKey {
  return ["entry", ...key];
}

function headOf(record: unknown): Head | undefined {
  return record instanceof Uint8Array ? decodeRecord(record) : undefined;
}
