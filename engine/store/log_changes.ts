/**
 * The changes of one commit, or a piece of a snapshot, as bytes for the log of the state.
 *
 * A length, JSON of that length, and behind it the values that are bytes: records and parts of
 * values, which are most of it, stay as they are.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/**
 * A key that is deleted, or set to a value: bytes, or what JSON can hold. Or, alone in its message:
 * a backup took the place of everything, and follows as a snapshot.
 */
export type LogChange =
  | readonly [kind: "restored"]
  | readonly [kind: "delete", key: Deno.KvKey]
  | readonly [kind: "set", key: Deno.KvKey, value: unknown];

/** Kinds in the JSON. */
const DELETE = 0;
const SET = 1;
const SET_BYTES = 2;
const RESTORED = 3;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of some changes. */
export function encodeChanges(changes: readonly LogChange[]): Uint8Array {
  const blobs: Uint8Array[] = [];
  const rows = changes.map(([kind, key, value]) => {
    if (kind === "delete") return [DELETE, key];
    if (kind === "restored") return [RESTORED];
    if (!(value instanceof Uint8Array)) return [SET, key, value];
    blobs.push(value);
    return [SET_BYTES, key, value.length];
  });
  const head = encoder.encode(JSON.stringify(rows));
  const bytes = new Uint8Array(blobs.reduce((sum, { length }) => sum + length, 4 + head.length));
  new DataView(bytes.buffer).setUint32(0, head.length);
  bytes.set(head, 4);
  let at = 4 + head.length;
  for (const blob of blobs) {
    bytes.set(blob, at);
    at += blob.length;
  }
  return bytes;
}

/**
 * The changes in some bytes; their values share the memory of the bytes.
 *
 * @throws {EngineError} `store_unavailable` when the bytes are no changes.
 */
export function decodeChanges(bytes: Uint8Array): LogChange[] {
  try {
    const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getUint32(0);
    let at = 4 + length;
    const rows: unknown = JSON.parse(decoder.decode(bytes.subarray(4, at)));
    if (at > bytes.length || !Array.isArray(rows)) throw new Error("its length is wrong");
    const changes = rows.map((row: unknown): LogChange => {
      if (Array.isArray(row) && row[0] === RESTORED) return ["restored"];
      if (!Array.isArray(row) || !isKey(row[1])) throw new Error("it has a row without a key");
      const [kind, key, value] = row as [unknown, Deno.KvKey, unknown];
      if (kind === DELETE) return ["delete", key];
      if (kind === SET) return ["set", key, value];
      if (kind !== SET_BYTES || !Number.isSafeInteger(value) || at + Number(value) > bytes.length) {
        throw new Error("it has a row of no kind");
      }
      at += Number(value);
      return ["set", key, bytes.subarray(at - Number(value), at)];
    });
    if (at !== bytes.length) throw new Error("its length is wrong");
    return changes;
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    const message = `A message of the state's log cannot be read (${reason}); it was written by ` +
      "a newer engine or by another program";
    throw new EngineError("store_unavailable", message, { cause: thrown });
  }
}

function isKey(key: unknown): boolean {
  return Array.isArray(key) && key.length > 0 &&
    key.every((part) => typeof part === "string" || typeof part === "number");
}
