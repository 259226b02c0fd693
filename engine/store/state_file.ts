/**
 * Checks, copies and shrinks a state file, beside the engine that writes it or without one.
 *
 * Everything here waits for the disk, so within an engine it runs in a thread of its own
 * (state_thread.ts). SQLite allows several connections of one process to a file; each sees a
 * snapshot, so a copy is consistent while writes go on.
 *
 * @module
 */
import { DatabaseSync } from "node:sqlite";
import type { DamagedKey, StateCheck, StoreKey } from "../ports/store.ts";
import { PRIVATE_FILE_MODE } from "./marker.ts";
import { decodeRecord, type Head, joinParts, makeEntry, partsFor } from "./record.ts";

/** Damaged keys that a check names. */
const DAMAGED_SHOWN = 100;
/** Problems of SQLite's own check that are named. */
const PROBLEMS_SHOWN = 10;
/** How long a step waits for a commit of the engine. */
const BUSY_MS = 10_000;
/** Pages that one step of shrinking removes; the engine's commits wait for a step. */
const SHRINK_PAGES = 1_000;
/** Fewer free pages are left for the next values. */
const SHRINK_PAGES_MIN = 2_048;
/** Deno KV's encoding of values that are bytes. */
const BYTES_ENCODING = 3;

/** Marks of the parts of a key, as Deno KV writes them. */
const STRING = 0x02;
const NUMBER = 0x21;

/** Verifies every record of a state file, and SQLite's own integrity. */
export function checkStateFile(path: string): StateCheck {
  // SQLite takes it for a new database.
  if (Deno.statSync(path).size === 0) return unreadable("the file is empty (0 bytes)");
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    const rows = database.prepare(`PRAGMA integrity_check(${PROBLEMS_SHOWN})`).all();
    const problems = rows.map((row) => String(Object.values(row)[0])).filter((it) => it !== "ok");
    return { ...checkRecords(database), problems };
  } catch (thrown) {
    return unreadable(thrown instanceof Error ? thrown.message : String(thrown));
  } finally {
    database.close();
  }
}

function unreadable(problem: string): StateCheck {
  return { records: 0, bytes: 0, damaged_count: 0, damaged: [], problems: [problem] };
}

/**
 * Copies a state file as it is now to a path, in place of a file there; the copy appears there when
 * it is complete and checked.
 */
export function copyStateFile(path: string, to: string): StateCheck {
  const ready = `${to}.new`;
  removeIfThere(ready);
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    Deno.openSync(ready, { write: true, createNew: true, mode: PRIVATE_FILE_MODE }).close();
    database.prepare("VACUUM INTO ?").run(ready);
  } catch (thrown) {
    removeIfThere(ready);
    throw thrown;
  } finally {
    database.close();
  }
  const check = checkStateFile(ready);
  sync(ready);
  Deno.renameSync(ready, to);
  return check;
}

/** Returns the space of deleted values to the disk, in steps between commits of the engine. */
export function shrinkStateFile(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  const numberOf = (pragma: string): number =>
    Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? { none: 0 })[0]);
  try {
    if (numberOf("auto_vacuum") === 0) return;
    for (let free = numberOf("freelist_count"); free > SHRINK_PAGES_MIN;) {
      database.prepare(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`).all();
      database.prepare("PRAGMA wal_checkpoint(PASSIVE)").all();
      const left = numberOf("freelist_count");
      if (left >= free) return;
      free = left;
    }
  } finally {
    database.close();
  }
}

/**
 * Rewrites a file of version 0.1.0, whose pages cannot be returned while it is open, when a quarter
 * of it is free. No other connection may be open.
 */
export function rewriteStateFile(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } finally {
    database.close();
  }
}

/** Whether {@linkcode rewriteStateFile} is worth its time, by the first bytes of the file. */
export function needsRewrite(path: string): boolean {
  using file = Deno.openSync(path, { read: true });
  const head = new Uint8Array(100);
  if (file.readSync(head) !== head.length) return false;
  const view = new DataView(head.buffer);
  const [pages, freePages, largestRoot] = [28, 36, 52].map((at) => view.getUint32(at));
  return largestRoot === 0 && freePages! > SHRINK_PAGES_MIN && freePages! > pages! / 4;
}

/** Writes a file's data to the disk. */
export function sync(path: string): void {
  using file = Deno.openSync(path, { read: true, write: true });
  file.syncSync();
}

function checkRecords(database: DatabaseSync): Omit<StateCheck, "problems"> {
  const scan = database.prepare(
    "SELECT k, v, v_encoding FROM kv WHERE k >= ? AND k < ? ORDER BY k",
  );
  const readPart = database.prepare("SELECT v FROM kv WHERE k = ?");
  const start = encodeKey(["entry"]);
  const end = start.slice();
  end[end.length - 1] = 1;
  const damaged: DamagedKey[] = [];
  let records = 0;
  let bytes = 0;
  let damaged_count = 0;
  for (const { k, v, v_encoding } of scan.iterate(start, end)) {
    const key = decodeKey(k as Uint8Array).slice(1);
    const head = v_encoding === BYTES_ENCODING ? decodeRecord(v as Uint8Array) : undefined;
    records++;
    bytes += head?.bytes ?? 0;
    const reason = problemOf(key, head, (part) => readPart.get(encodeKey(part))?.v);
    if (reason === undefined) continue;
    damaged_count++;
    if (damaged.length < DAMAGED_SHOWN) damaged.push({ key, reason });
  }
  return { records, bytes, damaged_count, damaged };
}

function problemOf(
  key: StoreKey,
  head: Head | undefined,
  read: (part: readonly (string | number)[]) => unknown,
): string | undefined {
  if (!head) return "its bytes are no record";
  const parts: Uint8Array[] = [];
  for (let i = 0; !head.json && i < partsFor(head.bytes); i++) {
    const part = read(["part", head.version, i]);
    if (part instanceof Uint8Array) parts.push(part);
  }
  const json = head.json ?? joinParts(parts, head.bytes);
  if (!json) return "parts of its value are missing";
  try {
    makeEntry(key, head, json);
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** A key as Deno KV stores it. */
function encodeKey(key: readonly (string | number)[]): Uint8Array {
  const bytes: number[] = [];
  for (const part of key) {
    if (typeof part === "number") {
      const view = new DataView(new ArrayBuffer(8));
      view.setFloat64(0, part);
      // Positive numbers sort by their bits when the sign is set.
      view.setUint8(0, view.getUint8(0) | 0x80);
      bytes.push(NUMBER, ...new Uint8Array(view.buffer));
      continue;
    }
    bytes.push(STRING);
    for (const byte of new TextEncoder().encode(part)) {
      bytes.push(byte);
      if (byte === 0) bytes.push(0xff);
    }
    bytes.push(0);
  }
  return Uint8Array.from(bytes);
}

/** The strings of a key of an entry. */
function decodeKey(bytes: Uint8Array): string[] {
  const parts: string[] = [];
  for (let at = 1; at < bytes.length; at++) {
    const part: number[] = [];
    for (; bytes[at] !== 0 || bytes[at + 1] === 0xff; at++) {
      if (at >= bytes.length) return parts;
      part.push(bytes[at]!);
      if (bytes[at] === 0) at++;
    }
    parts.push(new TextDecoder().decode(Uint8Array.from(part)));
    at++;
  }
  return parts;
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}
