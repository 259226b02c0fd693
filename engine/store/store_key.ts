/**
 * Keys of stores: which are allowed, how they sort, and their id in a map.
 *
 * Keys sort part by part, each by its code points, and a key sorts before those that it is the
 * beginning of. That is the order of Deno KV; comparing strings with `<` would differ above U+FFFF.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

import type { StoreKey } from "../ports/store.ts";

/** Longest key of the store: UTF-8 of its parts and 2 bytes for each; Deno KV ends at 2,048. */
export const STORE_KEY_BYTES_MAX = 2_000;

const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
/** Moves surrogates, which stand for the highest code points, above all other units. */
const ABOVE_ALL = 0x10000;

/** A string that is unique to the key. */
export function keyId(key: StoreKey): string {
  let id = "";
  for (const part of key) id += `${part.length}:${part}`;
  return id;
}

/**
 * Refuses what a store cannot hold.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for a key without parts, one that is too long, and one
 * with half a surrogate pair, which has no UTF-8.
 */
export function checkKey(key: StoreKey): void {
  if (key.length === 0) throw new EngineError("INVALID_ARGUMENTS", "A store key needs a part");
  if (!key.every((part) => part.isWellFormed())) {
    throw new EngineError("INVALID_ARGUMENTS", "A store key must be well-formed Unicode");
  }
  if (isLong(key) && keyBytes(key) > STORE_KEY_BYTES_MAX) {
    const bytes = keyBytes(key);
    throw new EngineError(
      "INVALID_ARGUMENTS",
      `A store key of ${bytes} bytes is too long; ${STORE_KEY_BYTES_MAX} are allowed`,
      { details: { bytes } },
    );
  }
}

/** Bytes a key takes in a commit: its parts in UTF-8, a zero in them twice, and 2 for each part. */
export function keyBytes(key: StoreKey): number {
  let bytes = 0;
  for (const part of key) {
    bytes += 2;
    for (let i = 0; i < part.length; i++) bytes += bytesOf(part.charCodeAt(i));
  }
  return bytes;
}

/** Bytes of a UTF-16 unit; the two of a pair share four. */
function bytesOf(unit: number): number {
  if (unit === 0) return 2;
  if (unit < 0x80) return 1;
  return unit < 0x800 || isSurrogate(unit) ? 2 : 3;
}

/** Negative, zero or positive, as `a` sorts before, with or after `b`. */
export function compareKeys(a: StoreKey, b: StoreKey): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const order = compareText(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Whether a key starts with all parts of a prefix and has more. */
export function isBelow(key: StoreKey, prefix: StoreKey): boolean {
  return key.length > prefix.length && prefix.every((part, i) => part === key[i]);
}

function compareText(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return isSurrogate(unit) ? unit + ABOVE_ALL : unit;
}

function isSurrogate(unit: number): boolean {
  return unit >= FIRST_SURROGATE && unit <= LAST_SURROGATE;
}

/** Whether a key may be too long; cheap, and right when it says no. */
function isLong(key: StoreKey): boolean {
  let bytes = 0;
  for (const part of key) bytes += 3 * part.length + 2;
  return bytes > STORE_KEY_BYTES_MAX;
}
