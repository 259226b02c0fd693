/**
 * The encoding of an entry in Deno KV: one record, and parts beside it when the value is large.
 *
 * A record is a head of 21 bytes followed by the JSON or, with parts, by the length of the JSON.
 * The head ends with a checksum of the key, the rest of the head and the JSON, so flipped bits and
 * records that were exchanged are noticed. Records of version 0.1.0 have none; they stay readable.
 * Parts are keyed by the version of their entry and their number. A version is never used twice, so
 * the parts of a new value never overwrite those of the old one, and a reader finds them complete
 * or deleted. No I/O.
 *
 * @module
 */

import { crc32 } from "node:zlib";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { type Entry, type StoreKey, VALUE_BYTES_MAX } from "../ports/store.ts";
import { keyBytes, keyId } from "./store_key.ts";

/** Changes in one commit, and so in one write; Deno KV takes 1,000. */
export const STORE_COMMIT_CHANGES_MAX = 500;
/** Bytes of keys and values in one commit; Deno KV takes 819,200. */
export const STORE_COMMIT_BYTES_MAX = 700 * 1024;
/** Largest record that Deno KV takes; a larger value is cut into parts. */
export const STORE_RECORD_BYTES_MAX = 64 * 1024;
/** One part of a large value. */
export const STORE_PART_BYTES = 60 * 1024;

/** Kinds of records, first those that version 0.1.0 wrote. */
const WHOLE = 1;
const IN_PARTS = 2;
const WHOLE_SUMMED = 3;
const IN_PARTS_SUMMED = 4;
/** A byte for the kind, then version and created as 64-bit floats, exact for safe integers. */
const PLAIN_HEAD_BYTES = 17;
/** The same, then the checksum. */
const HEAD_BYTES = PLAIN_HEAD_BYTES + 4;
/** The length of the JSON as a 64-bit float. */
const LENGTH_BYTES = 8;
/** Estimated cost in a commit of a record or part, beside its key and value. */
const OVERHEAD_BYTES = 32;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** An entry with its value or its JSON, whichever was there first or was read last. */
export class StoredEntry implements Entry {
  readonly key: StoreKey;
  readonly bytes: number;
  readonly version: number;
  readonly created: number;
  #value: Json | undefined;
  #json: string | undefined;

  /** `known` is the value, or its JSON, which is parsed when the value is read. */
  constructor(
    key: StoreKey,
    head: Pick<Head, "version" | "created" | "bytes">,
    known: { readonly value: Json } | { readonly json: string },
  ) {
    this.key = key;
    this.bytes = head.bytes;
    this.version = head.version;
    this.created = head.created;
    if ("json" in known) this.#json = known.json;
    else this.#value = known.value;
  }

  get value(): Json {
    if (this.#value === undefined) {
      this.#value = JSON.parse(this.#json!) as Json;
      this.#json = undefined; // Never both, for the sake of memory.
    }
    return this.#value;
  }

  get json(): string {
    return this.#json ?? JSON.stringify(this.#value);
  }
}

/** An entry, or `null` for a key that has none. */
export type Known = Entry | null;

/** A record that was read. */
export interface Head {
  readonly version: number;
  readonly created: number;
  /** Length of the JSON. */
  readonly bytes: number;
  /** The JSON, unless it is in parts. */
  readonly json: Uint8Array | undefined;
  /** The checksum; `undefined` in a record of version 0.1.0. */
  readonly sum: number | undefined;
}

/** Number of parts of a value of this many bytes; 0: the value is in its record. */
export function partsFor(bytes: number): number {
  return bytes + HEAD_BYTES <= STORE_RECORD_BYTES_MAX ? 0 : Math.ceil(bytes / STORE_PART_BYTES);
}

/** Length of the record of a value of this many bytes. */
export function recordBytes(bytes: number): number {
  return HEAD_BYTES + (partsFor(bytes) > 0 ? LENGTH_BYTES : bytes);
}

/** Writes the record of an entry into memory of its length, which is returned. */
export function encodeRecord(
  entry: Entry,
  json: Uint8Array,
  record: Uint8Array = new Uint8Array(recordBytes(entry.bytes)),
): Uint8Array {
  const { key, version, created, bytes } = entry;
  const inParts = partsFor(bytes) > 0;
  const view = new DataView(record.buffer, record.byteOffset, record.length);
  record[0] = inParts ? IN_PARTS_SUMMED : WHOLE_SUMMED;
  view.setFloat64(1, version);
  view.setFloat64(9, created);
  view.setUint32(PLAIN_HEAD_BYTES, sumOf(key, { version, created }, json));
  if (inParts) view.setFloat64(HEAD_BYTES, bytes);
  else record.set(json, HEAD_BYTES);
  return record;
}

function sumOf(
  key: StoreKey,
  { version, created }: Pick<Head, "version" | "created">,
  json: Uint8Array,
): number {
  return crc32(json, crc32(`${keyId(key)} ${version} ${created} `));
}

/** The parts of a value, without copying it. */
export function* cutParts(json: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < json.length; at += STORE_PART_BYTES) {
    yield json.subarray(at, at + STORE_PART_BYTES);
  }
}

/** Decodes a record; `undefined` for bytes that are not one. */
export function decodeRecord(record: Uint8Array): Head | undefined {
  const kind = record[0];
  const isSummed = kind === WHOLE_SUMMED || kind === IN_PARTS_SUMMED;
  const headBytes = isSummed ? HEAD_BYTES : PLAIN_HEAD_BYTES;
  const inParts = kind === IN_PARTS || kind === IN_PARTS_SUMMED;
  const isWhole = (kind === WHOLE || kind === WHOLE_SUMMED) && record.length > headBytes;
  if (!isWhole && !(inParts && record.length === headBytes + LENGTH_BYTES)) return undefined;
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const bytes = inParts ? view.getFloat64(headBytes) : record.length - headBytes;
  if (!(bytes >= 0 && bytes <= VALUE_BYTES_MAX)) return undefined;
  return {
    version: view.getFloat64(1),
    created: view.getFloat64(9),
    bytes,
    json: inParts ? undefined : record.subarray(headBytes),
    sum: isSummed ? view.getUint32(PLAIN_HEAD_BYTES) : undefined,
  };
}

/** An entry that cannot be read, for one that is to be overwritten or deleted. */
export function damagedEntry(key: StoreKey, damaged: string): Entry {
  return { key, value: null, json: "null", bytes: 0, version: 0, created: 0, damaged };
}

/** Joins parts; `undefined` when they do not have the expected length. */
export function joinParts(parts: readonly Uint8Array[], bytes: number): Uint8Array | undefined {
  if (parts.reduce((sum, part) => sum + part.length, 0) !== bytes) return undefined;
  const json = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    json.set(part, at);
    at += part.length;
  }
  return json;
}

/** Whether the checksum of a record fits; one without a checksum fits. */
export function isIntact(key: StoreKey, head: Head, json: Uint8Array): boolean {
  return head.sum === undefined || head.sum === sumOf(key, head, json);
}

/**
 * The entry of a record. With a checksum that fits, the JSON need not be parsed.
 *
 * @throws {Error} When the checksum does not fit, or without one the bytes are not JSON in UTF-8.
 */
export function makeEntry(key: StoreKey, head: Head, json: Uint8Array): Entry {
  if (!isIntact(key, head, json)) throw new Error("its checksum does not fit");
  const text = decoder.decode(json);
  if (head.sum === undefined) JSON.parse(text);
  return new StoredEntry(key, head, { json: text });
}

/** The share of an entry with its parts in a commit. */
export function commitCost(key: StoreKey, bytes: number): { mutations: number; bytes: number } {
  const parts = partsFor(bytes);
  return { mutations: 1 + parts, bytes: recordCost(key) + bytes + parts * OVERHEAD_BYTES };
}

/** Least bytes of an entry in a commit: all of it, unless its value is in parts. */
export function commitCostMin(key: StoreKey, bytes: number): number {
  return recordCost(key) + (partsFor(bytes) > 0 ? 0 : bytes);
}

function recordCost(key: StoreKey): number {
  return keyBytes(key) + HEAD_BYTES + OVERHEAD_BYTES;
}
