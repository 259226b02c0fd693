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
import {
  TELEMETRY_FRAME_ITEMS_MAX,
  TELEMETRY_INTAKE_BYTES_PER_SECOND,
  TELEMETRY_INTAKE_MS_PER_SECOND,
  TELEMETRY_WARNING_MS,
} from "../limits.ts";

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
