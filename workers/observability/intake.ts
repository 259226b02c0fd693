/**
 * Frames of spans and logs that workers send: bounded, read, and counted when they are broken.
 *
 * The engine reads them in its only thread, so there is an end to what it reads in a second,
 * whoever sends it. Metrics are read elsewhere.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { TelemetryFrame } from "../../engine/ports/telemetry.ts";
import {
  TELEMETRY_FRAME_ITEMS_MAX,
  TELEMETRY_INTAKE_BYTES_PER_SECOND,
  TELEMETRY_INTAKE_MS_PER_SECOND,
  TELEMETRY_WARNING_MS,
} from "../limits.ts";

/** Somebody who reads frames of a kind; throws when the whole is none. */
export interface FrameReader {
  /** Says what became of the items in it. */
  take(frame: unknown): { readonly taken: number; readonly dropped: number };
}

/** What an intake works with. */
export interface IntakeSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly spans: FrameReader;
  readonly logs: FrameReader;
}

/** What came in since the start. */
export interface IntakeStats {
  /** Frames that came, and those that were broken or too many. */
  readonly frames: number;
  readonly broken: number;
  readonly refused: number;
  /** Spans and log records that were kept, and those that were broken, too many or known. */
  readonly taken: number;
  readonly dropped: number;
}

/** See the top of this file. */
export class TelemetryIntake {
  readonly #setup: IntakeSetup;
  readonly #stats = { frames: 0, broken: 0, refused: 0, taken: 0, dropped: 0 };
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #share: ReadingShare;
  #warnedAt = -Infinity;

  /** Stores. */
  constructor(setup: IntakeSetup) {
    this.#setup = setup;
    this.#share = new ReadingShare(setup.clock);
  }

  /** What came in since the start; live. */
  get stats(): IntakeStats {
    return this.#stats;
  }

  /** Hears of a frame; never throws. */
  hear({ kind, bytes, address, worker_id }: TelemetryFrame): void {
    if (kind === "MTRC") return;
    this.#stats.frames++;
    const from = { kind, id: worker_id ?? undefined, address: address ?? undefined };
    if (this.#share.read(bytes.length, () => this.#read(kind, bytes, from))) return;
    this.#stats.refused++;
    this.#warn("telemetry comes faster than it is read, so some is dropped", from);
  }

  #read(kind: "OTLP" | "LOGS", bytes: Uint8Array, from: Record<string, string | undefined>): void {
    try {
      const frame: unknown = JSON.parse(this.#decoder.decode(bytes));
      const reader = kind === "OTLP" ? this.#setup.spans : this.#setup.logs;
      const { taken, dropped } = reader.take(frame);
      this.#stats.taken += taken;
      this.#stats.dropped += dropped;
    } catch (thrown) {
      this.#stats.broken++;
      const [reason = ""] = String(thrown).split("\n", 1);
      this.#warn("telemetry that cannot be read is dropped", { ...from, reason });
    }
  }

  /** A line now and then: whoever sends nonsense sends much of it. */
  #warn(text: string, fields: Record<string, string | undefined>): void {
    const now = this.#setup.clock.now();
    if (now - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = now;
    const { broken, refused } = this.#stats;
    this.#setup.log.warn(text, { ...fields, broken, refused });
  }
}

const SECOND_MS = 1_000;

/** See the top of this file. */
export class ReadingShare {
  readonly #clock: Clock;
  #bytes = 0;
  #spentMs = 0;
  #since: number;

  /** Nothing was read yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** Reads so many bytes, unless that would be too much: then nothing is done and it is `false`. */
  read(bytes: number, task: () => void): boolean {
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

/** Names of the lists in a frame: of resources, of their scopes, of the records. */
export type FrameLists = readonly [resources: string, scopes: string, records: string];

/** What records belong to. */
export interface ItemOrigin {
  /** Attributes of the resource, as they came. */
  readonly resource: readonly unknown[];
  readonly scope_name: string | null;
  readonly scope_version: string | null;
}

/** What a frame held. */
export interface ReadItems<Item> {
  readonly items: Item[];
  /** Broken ones, and those beyond the bound. */
  readonly dropped: number;
}

/**
 * Reads the records of a frame; `origin` hands over what the ones after it belong to, and `read`
 * says what a record is, or `undefined` for a broken one.
 *
 * @throws {Error} When the whole is no frame.
 */
export function readItems<Item>(
  frame: unknown,
  lists: FrameLists,
  origin: (origin: ItemOrigin) => void,
  read: (record: unknown) => Item | undefined,
): ReadItems<Item> {
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

/** Groups of records, so many at most. */
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
      throw new Error(`A member of ${resources} is no object`);
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

function member(owner: unknown, name: string): unknown {
  return owner !== null && typeof owner === "object" && Object.hasOwn(owner, name)
    ? (owner as Record<string, unknown>)[name]
    : undefined;
}

function listIn(owner: unknown, name: string): readonly unknown[] {
  const list = member(owner, name);
  return Array.isArray(list) ? list : [];
}

function textIn(owner: unknown, name: string): string | null {
  const text = member(owner, name);
  return typeof text === "string" && text !== "" ? text : null;
}
