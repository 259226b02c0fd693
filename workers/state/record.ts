/**
 * The record of an entry in the store: the value and its times, as text. The value is parsed for
 * callers only that need more than its text.
 *
 * @module
 */
import type { Entry } from "../../engine/ports/store.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** Address of an entry. */
export interface Place {
  readonly scope: string;
  readonly key: string;
}

/** An entry that has not expired. */
export interface StateEntry extends Place {
  /** Parsed from `json` when it is read. */
  readonly value: Json;
  /** The value as it is stored. */
  readonly json: string;
  /** Length of the stored record. */
  readonly bytes: number;
  readonly version: number;
  /** Version of the write that created the entry. */
  readonly created: number;
  /** Milliseconds since 1970. */
  readonly updated_at_ms: number;
  /** Milliseconds since 1970; `undefined`: never. */
  readonly expires_at_ms: number | undefined;
}

/** A value to store. */
export interface NewValue {
  readonly value: Json;
  /** Milliseconds since 1970; `undefined`: never. */
  readonly expires_at_ms: number | undefined;
}

/**
 * The members of a record, in this order. What is behind the value has no quotes of its own, so the
 * last place of a name is that of the record, whatever the value has.
 */
const VALUE = '{"value":';
const UPDATED = ',"updated_at_ms":';
const EXPIRES = ',"expires_at_ms":';

/** The record of a value. */
export function recordOf({ value, expires_at_ms }: NewValue, now: number): JsonText {
  const expiry = expires_at_ms === undefined ? "" : `${EXPIRES}${expires_at_ms}`;
  return new JsonText(`${VALUE}${JSON.stringify(value)}${UPDATED}${now}${expiry}}`);
}

/** An entry as its record has it: the value is a part of the text, which nothing parses. */
export class RecordedEntry implements StateEntry {
  readonly scope: string;
  readonly key: string;
  readonly json: string;
  readonly bytes: number;
  readonly version: number;
  readonly created: number;
  readonly updated_at_ms: number;
  readonly expires_at_ms: number | undefined;

  constructor({ key: [, scope, key], json, bytes, version, created }: Entry) {
    const end = json.lastIndexOf(UPDATED);
    const times = json.slice(end + UPDATED.length, -1).split(EXPIRES, 2);
    this.scope = scope!;
    this.key = key!;
    this.json = json.slice(VALUE.length, end);
    this.bytes = bytes;
    this.version = version;
    this.created = created;
    this.updated_at_ms = Number(times[0]);
    this.expires_at_ms = times.length > 1 ? Number(times[1]) : undefined;
  }

  get value(): Json {
    return JSON.parse(this.json) as Json;
  }
}

/** The value of a record. */
export function valueOf(entry: Entry): Json {
  return new RecordedEntry(entry).value;
}

/** When a record expires, in milliseconds since 1970; `undefined`: never. */
export function expiryOf({ json }: Entry): number | undefined {
  const end = json.lastIndexOf(UPDATED);
  const at = json.indexOf(EXPIRES, end + UPDATED.length);
  return at < 0 ? undefined : Number(json.slice(at + EXPIRES.length, -1));
}

/** Whether there is an entry that has expired. */
export function isExpired(entry: Entry | undefined, now: number): boolean {
  const expiresAtMs = entry && entry.damaged === undefined ? expiryOf(entry) : undefined;
  return expiresAtMs !== undefined && expiresAtMs <= now;
}
