/**
 * Reads telemetry frames (OTLP/JSON) from workers: parsing, bounds and a time budget.
 *
 * Parsing runs on the engine's only thread, so a budget of bytes and milliseconds per second limits
 * it across all senders. {@linkcode TelemetryIntake} handles spans and logs; `metrics/otlp.ts`
 * handles metrics with a budget of its own.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { TelemetryFrame } from "../../engine/ports/telemetry.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { isTooDeepBytes, JSON_DEPTH_MAX } from "../../sdk/typescript/wire/json_depth.ts";
import { REDACTED, type Redactor } from "./redact.ts";

/** Spans or log records that are read from one frame of telemetry. */
export const TELEMETRY_FRAME_ITEMS_MAX = 5_000;
/** Largest frame of spans or logs, in bytes. */
export const TELEMETRY_FRAME_BYTES_MAX = 4 * 1024 * 1024;
/** Characters of all attributes of a span or log record as JSON; those beyond are left out. */
export const TELEMETRY_ATTRIBUTES_CHARS_MAX = 65_536;
/** Attributes per span or log record. */
const TELEMETRY_ATTRIBUTES_MAX = 128;
/** Longest name in a span or a log record, in characters. */
export const TELEMETRY_NAME_CHARS_MAX = 1_024;
/** Longest text in a span or a log record, in characters. */
export const TELEMETRY_TEXT_CHARS_MAX = 32_768;
/** Bytes of spans and logs of all workers that are read in a second. */
export const TELEMETRY_INTAKE_BYTES_PER_SECOND = 16 * 1024 * 1024;
/** Time for reading frames of telemetry in a second, in milliseconds. */
export const TELEMETRY_INTAKE_MS_PER_SECOND = 250;
/** Interval of warnings that telemetry is dropped, in milliseconds. */
export const TELEMETRY_WARNING_MS = 60_000;

/** Nesting of an attribute value that is read. */
const VALUE_DEPTH_MAX = 16;

/** Stores the items of a parsed frame. */
export interface FrameReader {
  /** Returns how many items were stored and dropped. @throws {Error} The frame is malformed. */
  take(frame: unknown): { readonly taken: number; readonly dropped: number };
}

/** Dependencies of {@linkcode TelemetryIntake}. */
export interface IntakeSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly spans: FrameReader;
  readonly logs: FrameReader;
}

/** Counters since the intake was created. */
export interface IntakeStats {
  /** Frames received, frames that could not be parsed, and frames dropped by the budget. */
  readonly frames: number;
  readonly broken: number;
  readonly refused: number;
  /** Spans and log records stored, and those dropped as malformed, surplus or duplicate. */
  readonly taken: number;
  readonly dropped: number;
}

/** Receives the frames of spans and logs of all workers. */
export class TelemetryIntake {
  readonly #setup: IntakeSetup;
  readonly #stats = { frames: 0, broken: 0, refused: 0, taken: 0, dropped: 0 };
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #budget: IntakeBudget;
  #warnedAt = -Infinity;

  constructor(setup: IntakeSetup) {
    this.#setup = setup;
    this.#budget = new IntakeBudget(setup.clock);
  }

  /** The current counters; the object is updated in place. */
  get stats(): IntakeStats {
    return this.#stats;
  }

  /** Parses and stores a frame of spans or logs; ignores metrics. Never throws. */
  receive({ kind, bytes, address, worker_id }: TelemetryFrame): void {
    if (kind === "MTRC") return;
    this.#stats.frames++;
    const from = { kind, id: worker_id ?? undefined, address: address ?? undefined };
    if (this.#budget.spend(bytes.length, () => this.#read(kind, bytes, from))) return;
    this.#stats.refused++;
    this.#warn("telemetry exceeds the intake budget and is dropped", from);
  }

  #read(kind: "OTLP" | "LOGS", bytes: Uint8Array, from: Record<string, string | undefined>): void {
    try {
      checkFrame(bytes);
      const frame: unknown = JSON.parse(this.#decoder.decode(bytes));
      const reader = kind === "OTLP" ? this.#setup.spans : this.#setup.logs;
      const { taken, dropped } = reader.take(frame);
      this.#stats.taken += taken;
      this.#stats.dropped += dropped;
    } catch (thrown) {
      this.#stats.broken++;
      const [reason = ""] = String(thrown).split("\n", 1);
      this.#warn("malformed telemetry is dropped", { ...from, reason });
    }
  }

  /** Rate-limited: a faulty sender usually repeats its fault. */
  #warn(text: string, fields: Record<string, string | undefined>): void {
    const now = this.#setup.clock.now();
    if (now - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = now;
    const { broken, refused } = this.#stats;
    this.#setup.log.warn(text, { ...fields, broken, refused });
  }
}

function checkFrame(bytes: Uint8Array): void {
  if (bytes.length > TELEMETRY_FRAME_BYTES_MAX) {
    const most = `the most is ${TELEMETRY_FRAME_BYTES_MAX}; send it in smaller batches`;
    throw new Error(`The frame has ${bytes.length} bytes, ${most}`);
  }
  if (isTooDeepBytes(bytes, 0, bytes.length)) {
    throw new Error(`The frame is nested deeper than ${JSON_DEPTH_MAX} levels`);
  }
}

const SECOND_MS = 1_000;

/**
 * Limits how many bytes are parsed per second and how much of the thread that may take.
 *
 * Time spent beyond a second's allowance is deducted from the following seconds.
 */
export class IntakeBudget {
  readonly #clock: Clock;
  #bytes = 0;
  #spentMs = 0;
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** Runs `task`, which parses `bytes`; returns `false` without running it when over budget. */
  spend(bytes: number, task: () => void): boolean {
    const began = this.#clock.now();
    if (began - this.#since >= SECOND_MS) this.#nextSecond(began);
    this.#bytes += bytes;
    if (this.#bytes > TELEMETRY_INTAKE_BYTES_PER_SECOND) return false;
    if (this.#spentMs >= TELEMETRY_INTAKE_MS_PER_SECOND) return false;
    try {
      task();
    } finally {
      this.#spentMs += this.#clock.now() - began;
    }
    return true;
  }

  #nextSecond(now: number): void {
    const seconds = Math.floor((now - this.#since) / SECOND_MS);
    this.#spentMs = Math.max(0, this.#spentMs - seconds * TELEMETRY_INTAKE_MS_PER_SECOND);
    this.#bytes = 0;
    this.#since += seconds * SECOND_MS;
  }
}

/** Member names of the nested lists in an OTLP frame. */
export type FrameLists = readonly [resources: string, scopes: string, records: string];

/** The resource and instrumentation scope of a group of records. */
export interface ItemOrigin {
  /** Attributes of the resource, unparsed. */
  readonly resource: readonly unknown[];
  readonly scope_name: string | null;
  readonly scope_version: string | null;
}

/** The items of one frame. */
export interface FrameItems<Item> {
  readonly items: Item[];
  /** Malformed records and those beyond {@linkcode TELEMETRY_FRAME_ITEMS_MAX}. */
  readonly dropped: number;
}

/**
 * Reads the records of a frame: calls `origin` with the resource and scope of each group, then
 * `read` for every record in it, which returns `undefined` for a malformed one.
 *
 * Malformed records count towards the bound too, since rejecting a record is the slowest case.
 *
 * @throws {Error} The frame lacks the outer list.
 */
export function readItems<Item>(
  frame: unknown,
  lists: FrameLists,
  origin: (origin: ItemOrigin) => void,
  read: (record: unknown) => Item | undefined,
): FrameItems<Item> {
  const items: Item[] = [];
  let dropped = 0;
  for (const { records, ...from } of groupsOf(frame, lists)) {
    origin(from);
    for (const [at, record] of records.entries()) {
      if (items.length >= TELEMETRY_FRAME_ITEMS_MAX || dropped >= TELEMETRY_FRAME_ITEMS_MAX) {
        dropped += records.length - at;
        break;
      }
      const item = read(record);
      if (item) items.push(item);
      else dropped++;
    }
  }
  return { items, dropped };
}

/** Yields groups of records, at most {@linkcode TELEMETRY_FRAME_ITEMS_MAX}. */
function* groupsOf(
  frame: unknown,
  [resources, scopes, records]: FrameLists,
): Generator<ItemOrigin & { readonly records: readonly unknown[] }> {
  const all = member(frame, resources);
  if (!Array.isArray(all)) throw new Error(`The frame has no list ${resources}`);
  let left = TELEMETRY_FRAME_ITEMS_MAX;
  for (const each of all) {
    if (left-- <= 0) return;
    if (each === null || typeof each !== "object") {
      throw new Error(`A member of ${resources} is not an object`);
    }
    const resource = listIn(member(each, "resource"), "attributes");
    for (const group of listIn(each, scopes)) {
      if (left-- <= 0) return;
      const scope = member(group, "scope");
      yield {
        resource,
        scope_name: textIn(scope, "name"),
        scope_version: textIn(scope, "version"),
        records: listIn(group, records),
      };
    }
  }
}

/** A member of a parsed value; `undefined` unless the value is an object that has it. */
export function member(owner: unknown, name: string): unknown {
  return owner !== null && typeof owner === "object" && Object.hasOwn(owner, name)
    ? (owner as Record<string, unknown>)[name]
    : undefined;
}

/** The same for a list; empty when the member is absent or not a list. */
export function listIn(owner: unknown, name: string): readonly unknown[] {
  const list = member(owner, name);
  return Array.isArray(list) ? list : [];
}

function textIn(owner: unknown, name: string): string | null {
  const text = member(owner, name);
  return typeof text === "string" && text !== "" ? text : null;
}

/** Reads OTLP attributes: bounded, and redacted by name. */
export function readAttributes(list: readonly unknown[], redactor: Redactor): Map<string, Json> {
  const attributes = new Map<string, Json>();
  let charsLeft = TELEMETRY_ATTRIBUTES_CHARS_MAX;
  for (const each of list.slice(0, 4 * TELEMETRY_ATTRIBUTES_MAX)) {
    if (attributes.size >= TELEMETRY_ATTRIBUTES_MAX) break;
    const { key, value } = (each ?? {}) as { key?: unknown; value?: unknown };
    if (typeof key !== "string" || key === "") continue;
    const name = cut(key, TELEMETRY_NAME_CHARS_MAX);
    const read = redactor.hits(name) ? REDACTED : redactor.value(readValue(value, 0));
    const chars = name.length + (typeof read === "string" ? read : JSON.stringify(read)).length;
    if (chars > charsLeft) continue;
    charsLeft -= chars;
    attributes.set(name, read);
  }
  return attributes;
}

/** Converts an OTLP `AnyValue` (`stringValue`, `intValue`, `arrayValue`, …) to JSON. */
export function readValue(value: unknown, depth: number): Json {
  if (value === null || typeof value !== "object" || depth > VALUE_DEPTH_MAX) return null;
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } =
    value as Record<string, unknown>;
  if (typeof stringValue === "string") return cut(stringValue, TELEMETRY_TEXT_CHARS_MAX);
  if (typeof boolValue === "boolean") return boolValue;
  if (intValue !== undefined) return readNumber(intValue);
  if (doubleValue !== undefined) return readNumber(doubleValue);
  if (typeof bytesValue === "string") return cut(bytesValue, TELEMETRY_TEXT_CHARS_MAX);
  const items = (arrayValue ?? kvlistValue) as { values?: unknown } | undefined;
  if (!Array.isArray(items?.values)) return null;
  const values = items.values.slice(0, TELEMETRY_ATTRIBUTES_MAX);
  if (arrayValue !== undefined) return values.map((item) => readValue(item, depth + 1));
  return Object.fromEntries(values.flatMap((item) => {
    const { key, value } = (item ?? {}) as { key?: unknown; value?: unknown };
    return typeof key === "string" ? [[key, readValue(value, depth + 1)] as const] : [];
  }));
}

/** Converts nanoseconds since 1970, text or number, to milliseconds; `undefined` if invalid. */
export function readNanos(nanos: string | number | null | undefined): number | undefined {
  if (nanos === null || nanos === undefined || nanos === "") return undefined;
  const ms = Number(nanos) / 1e6;
  return Number.isFinite(ms) && ms > 0 && ms < 8.64e15 ? ms : undefined;
}

/**
 * Cuts text to `max` characters and copies it.
 *
 * A slice of a larger string would keep the whole string alive, such as everything that a process
 * printed at once.
 */
export function cut(text: string, max: number): string {
  const whole = text.length <= max ? ` ${text}` : ` ${text.slice(0, max - 1)}…`;
  return whole.slice(1); // Slicing flattens the concatenation into a string of its own.
}

/** Integers beyond 2^53 stay text. */
function readNumber(value: unknown): Json {
  const number = Number(value);
  const isExact = !Number.isInteger(number) || Number.isSafeInteger(number);
  if (typeof value === "string" && !isExact) return value;
  return Number.isFinite(number) ? number : null;
}
