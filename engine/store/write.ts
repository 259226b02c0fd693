/**
 * Computes what a write does to its entries: the part that all stores share.
 *
 * It reads the old entries from the store and returns the new ones with their JSON; the store makes
 * them visible and durable, or discards them.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  type Change,
  type Changed,
  type Entry,
  type KeyChange,
  type StoreKey,
  VALUE_BYTES_MAX,
} from "../ports/store.ts";
import {
  commitCostMin,
  STORE_COMMIT_BYTES_MAX,
  STORE_COMMIT_CHANGES_MAX,
  StoredEntry,
} from "./record.ts";
import { JsonText } from "../../sdk/typescript/wire/member_text.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { passingBytesOf } from "../core/wire/bytes.ts";
import { checkKey, keyId } from "./store_key.ts";

const encoder = new TextEncoder();

/** A key that a write changes, and how. */
export class Step {
  readonly id: string;
  readonly key: StoreKey;
  /** The new entry; `undefined` to delete. */
  readonly entry: Entry | undefined;
  /** Length of `json`. */
  readonly bytes: number;
  #text: string;
  #json: Uint8Array | undefined;

  /** `text` is the JSON, or its bytes if they are there already. */
  constructor(id: string, key: StoreKey, entry?: Entry, text: string | Uint8Array = "") {
    this.id = id;
    this.key = key;
    this.entry = entry;
    this.bytes = entry?.bytes ?? 0;
    this.#text = typeof text === "string" ? text : "";
    this.#json = typeof text === "string" ? undefined : text;
  }

  /**
   * The value as JSON in UTF-8, made when it is asked for; empty when there is no entry. Not to be
   * kept: small ones share memory.
   */
  get json(): Uint8Array {
    return this.#json ??= passingBytesOf(this.#text);
  }
}

/**
 * A value from this size on counts as four times its JSON while it waits, since its write holds it
 * parsed, as the caller sent it.
 */
const LARGE_BYTES = 256 * 1024;
const LARGE_FACTOR = 4;

/** Bytes of JSON that waiting changes hold, and as what they count for the bound of all. */
export function sizeOf(steps: readonly Step[]): { bytes: number; weight: number } {
  let [bytes, weight] = [0, 0];
  for (const step of steps) {
    bytes += step.bytes;
    weight += step.bytes < LARGE_BYTES ? step.bytes : LARGE_FACTOR * step.bytes;
  }
  return { bytes, weight };
}

/** Result of {@linkcode applyChanges}. */
export interface Applied {
  /** One per change, in the order given. */
  readonly changed: Changed[];
  /** One per changed key. */
  readonly steps: Step[];
}

/** The store as {@linkcode applyChanges} uses it. */
export interface Entries {
  /** The entry after all earlier writes. */
  read(id: string): Entry | undefined;
  /** A version that was never used before. */
  nextVersion(): number;
}

/**
 * Refuses a write that no store accepts.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for a key that a store cannot hold, or more changes
 * than fit into one commit.
 */
export function checkWrite(changes: readonly KeyChange[]): void {
  for (const [key] of changes) checkKey(key);
  if (changes.length <= STORE_COMMIT_CHANGES_MAX) return;
  throw new EngineError(
    "INVALID_ARGUMENTS",
    `A write of ${changes.length} changes is too large; ${STORE_COMMIT_CHANGES_MAX} are allowed`,
  );
}

/**
 * Runs the changes in order; a later one sees the result of an earlier one of the same key.
 *
 * @throws Whatever a change throws; {@linkcode EngineError} `VALUE_TOO_LARGE`, or `SET_ERROR` for
 * a value that JSON cannot hold. Nothing has changed then.
 */
export function applyChanges(changes: readonly KeyChange[], entries: Entries): Applied {
  if (changes.length === 1) return applyChange(changes[0]!, entries);
  const steps = new Map<string, Step>();
  const changed = changes.map(([key, change]): Changed => {
    const id = keyId(key);
    const earlier = steps.get(id);
    const old = earlier ? earlier.entry : entries.read(id);
    const step = stepOf(id, key, change(old), old, entries);
    if (!step) return { old, new: old };
    steps.set(id, step);
    return { old, new: step.entry };
  });
  const applied = { changed, steps: [...steps.values()] };
  checkSize(applied.steps);
  return applied;
}

/** The usual write has one change: no other one of its key has to be found. */
function applyChange([key, change]: KeyChange, entries: Entries): Applied {
  const id = keyId(key);
  const old = entries.read(id);
  const step = stepOf(id, key, change(old), old, entries);
  return step
    ? { changed: [{ old, new: step.entry }], steps: [step] }
    : { changed: [{ old, new: old }], steps: [] };
}

/** What a new value does to a key; `undefined`: nothing. */
function stepOf(
  id: string,
  key: StoreKey,
  value: ReturnType<Change>,
  old: Entry | undefined,
  entries: Entries,
): Step | undefined {
  if (value === old) return undefined;
  if (value === undefined) return new Step(id, key);
  // Entries are only `old`.
  return makeEntry(id, key, value as Json | JsonText, old, entries.nextVersion());
}

/** Values of up to 64 KiB are not split, so those of one write have to fit into one commit. */
function checkSize(steps: readonly Step[]): void {
  if (steps.length < 2) return;
  const bytes = steps.reduce((sum, step) => sum + commitCostMin(step.key, step.bytes), 0);
  if (bytes <= STORE_COMMIT_BYTES_MAX) return;
  throw new EngineError(
    "VALUE_TOO_LARGE",
    `The small values of one write have ${bytes} bytes; ${STORE_COMMIT_BYTES_MAX} are allowed`,
    { details: { bytes, bytes_max: STORE_COMMIT_BYTES_MAX } },
  );
}

function makeEntry(
  id: string,
  key: StoreKey,
  value: Json | JsonText,
  old: Entry | undefined,
  version: number,
): Step {
  const isText = value instanceof JsonText;
  const text = isText ? value.text : stringify(value);
  const json = text.length <= COUNTED_CHARS_MAX && isAscii(text) ? text : encoder.encode(text);
  const bytes = json.length;
  if (bytes > VALUE_BYTES_MAX) throw tooLarge(bytes);
  const created = old && old.damaged === undefined ? old.created : version;
  const head = { version, created, bytes };
  const entry = new StoredEntry(key, head, isText ? { json: text } : { value });
  return new Step(id, key, entry, json);
}

/** Longest text whose characters are looked at, before it is encoded at once. */
const COUNTED_CHARS_MAX = 4_096;

/** Whether a text has as many bytes as characters. */
function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

function tooLarge(bytes: number): EngineError {
  return new EngineError(
    "VALUE_TOO_LARGE",
    `A value of ${bytes} bytes is too large; ${VALUE_BYTES_MAX} are allowed`,
    { details: { bytes, bytes_max: VALUE_BYTES_MAX } },
  );
}

function stringify(value: Json): string {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(value);
  } catch (thrown) {
    cause = thrown; // A cycle, a bigint, or more levels than the stack has.
  }
  if (text !== undefined) return text;
  throw new EngineError("SET_ERROR", "A value that JSON cannot hold cannot be stored", { cause });
}
