/**
 * The encoding of an entry in Deno KV: one record, and parts beside it when the value is large.
 *
 * A record is a head of 17 bytes followed by the JSON or, with parts, by the length of the JSON.
 * Parts are keyed by the version of their entry and their number. A version is never used twice, so
 * the parts of a new value never overwrite those of the old one, and a reader finds them complete
 * or deleted. No I/O.
 *
 * @module
 */

import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Entry, StoreKey } from "../ports/store.ts";
import { keyBytes } from "./store_key.ts";

/** Changes in one commit, and so in one write; Deno KV takes 1,000. */
export const STORE_COMMIT_CHANGES_MAX = 500;
/** Bytes of keys and values in one commit; Deno KV takes 819,200. */
export const STORE_COMMIT_BYTES_MAX = 700 * 1024;
/** Largest record that Deno KV takes; a larger value is cut into parts. */
export const STORE_RECORD_BYTES_MAX = 64 * 1024;
/** One part of a large value. */
export const STORE_PART_BYTES = 60 * 1024;

const WHOLE = 1;
const IN_PARTS = 2;
/** A byte for the kind, then version and created as 64-bit floats, exact for safe integers. */
const HEAD_BYTES = 17;
/** The length of the JSON as a 64-bit float. */
const LENGTH_BYTES = 8;
/** Estimated cost in a commit of a record or part, beside its key and value. */
const OVERHEAD_BYTES = 32;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

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
}

/** Number of parts of a value of this many bytes; 0: the value is in its record. */
export function partsFor(bytes: number): number {
  return bytes + HEAD_BYTES <= STORE_RECORD_BYTES_MAX ? 0 : Math.ceil(bytes / STORE_PART_BYTES);
}

/** The record of an entry. */
export function encodeRecord({ version, created, bytes }: Entry, json: Uint8Array): Uint8Array {
  const inParts = partsFor(bytes) > 0;
  const record = new Uint8Array(HEAD_BYTES + (inParts ? LENGTH_BYTES : bytes));
  const view = new DataView(record.buffer);
  record[0] = inParts ? IN_PARTS : WHOLE;
  view.setFloat64(1, version);
  view.setFloat64(9, created);
  if (inParts) view.setFloat64(HEAD_BYTES, bytes);
  else record.set(json, HEAD_BYTES);
  return record;
}

/** The parts of a value, without copying it. */
export function* cutParts(json: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < json.length; at += STORE_PART_BYTES) {
    yield json.subarray(at, at + STORE_PART_BYTES);
  }
}

/** Decodes a record; `undefined` for bytes that are not one. */
export function decodeRecord(record: Uint8Array): Head | undefined {
  const inParts = record[0] === IN_PARTS;
  const isWhole = record[0] === WHOLE && record.length > HEAD_BYTES;
  if (!isWhole && !(inParts && record.length === HEAD_BYTES + LENGTH_BYTES)) return undefined;
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const bytes = inParts ? view.getFloat64(HEAD_BYTES) : record.length - HEAD_BYTES;
  const json = inParts ? undefined : record.subarray(HEAD_BYTES);
  return { version: view.getFloat64(1), created: view.getFloat64(9), bytes, json };
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

/**
 * The entry of a record.
 *
 * @throws {Error} When the bytes are not JSON in UTF-8.
 */
export function makeEntry(key: StoreKey, head: Head, json: Uint8Array): Entry {
  const { version, created, bytes } = head;
  return { key, value: JSON.parse(decoder.decode(json)) as Json, bytes, version, created };
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
