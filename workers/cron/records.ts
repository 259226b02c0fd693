/**
 * What is kept of each job: the last time for which it fired, and its last runs.
 *
 * A record is written before a call is made, in one write with the run, so a crash cannot make a
 * time fire twice. A run that has no end when its record is read again was interrupted by the end
 * of the engine. A trigger has another id after its worker restarts, so a job is known by what it
 * does: function, expression, zone and metadata.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { Entry, Store } from "../../engine/ports/store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Runs that are kept of a job. */
export const RUNS_KEPT = 5;
/** Longest error of a run, in characters. */
const ERROR_CHARS_MAX = 300;
/** Records of jobs that no worker has registered for so long are removed. */
export const RECORD_KEPT_MS = 400 * 24 * 3_600_000;
const PAGE_RECORDS = 500;
/** A record whose job was used less than this ago need not say so again. */
const USED_MS = 24 * 3_600_000;

/** A clock that goes back by less fires no time twice; by more, times count again. */
export const BACK_MS_MAX = 3_600_000;

/** How a run ended; `suppressed`: by its condition. */
export type Outcome = "running" | "ok" | "failed" | "suppressed" | "interrupted";

/** One run; times are in milliseconds since 1970. */
export interface Run {
  /** When it was to start. */
  readonly scheduled_ms: number;
  readonly started_ms: number;
  readonly outcome: Outcome;
  readonly ended_ms?: number;
  readonly error?: string;
  /** It was asked for, and does not count as firing. */
  readonly manual?: true;
}

/** What is kept of a job. */
export interface CronRecord {
  /** The last time for which it fired, or from which on it counts. */
  readonly slot_ms: number;
  /** The oldest first. */
  readonly runs: readonly Run[];
}

/** What a job is known by. */
export interface JobIdentity {
  readonly function_id: string;
  readonly namespace: string | undefined;
  readonly expression: string;
  readonly timezone: string;
  readonly metadata: Json | undefined;
}

/** The key of a job's record. */
export function keyOf(identity: JobIdentity): string {
  const { function_id, namespace, expression, timezone, metadata } = identity;
  const text = JSON.stringify([function_id, namespace, expression, timezone, metadata ?? null]);
  return createHash("sha256").update(text).digest("hex");
}

/** The records of all jobs, in the store. */
export class CronRecords {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Reads the record of a job, and creates one if it has none, or one that cannot be read: the job
   * counts from `now`. So does one whose last time is over {@linkcode BACK_MS_MAX} ahead: the clock
   * was wrong. A record that says all that is written only once a day: workers that start again
   * register thousands of triggers.
   */
  async open(key: string, identity: JobIdentity, now: number): Promise<CronRecord> {
    const [changed] = await this.#store.write([[["cron", key], (entry) => {
      const { slot_ms, runs } = recordIn(entry) ?? { slot_ms: now, runs: [] };
      const slot = slot_ms > now + BACK_MS_MAX ? now : slot_ms;
      if (entry && slot === slot_ms && isFresh(entry, now)) return entry;
      return valueOf(identity, { slot_ms: slot, runs }, now);
    }]]);
    return readRecord(changed!.new!.value as JsonObject)!;
  }

  /**
   * Writes a record; resolves when it is on disk. A later time stays, which another engine has
   * fired after this one lost its role.
   */
  async save(key: string, identity: JobIdentity, record: CronRecord, now: number): Promise<void> {
    await this.#store.write([[["cron", key], (entry) => {
      const there = recordIn(entry)?.slot_ms ?? 0;
      const slot_ms = there > now + BACK_MS_MAX ? record.slot_ms : Math.max(there, record.slot_ms);
      return valueOf(identity, { slot_ms, runs: record.runs }, now);
    }]]);
  }

  /** Removes records that have not been used for {@linkcode RECORD_KEPT_MS}. */
  async sweep(now: number): Promise<void> {
    let after: readonly string[] | undefined;
    for (;;) {
      const page = await this.#store.list(["cron"], PAGE_RECORDS, after);
      const old = page.filter(({ value, damaged }) =>
        damaged === undefined &&
        now - Number((value as JsonObject).used_ms ?? 0) > RECORD_KEPT_MS
      );
      await this.#store.write(old.map(({ key }) => [key, () => undefined]));
      if (page.length < PAGE_RECORDS) return;
      after = page.at(-1)!.key;
    }
  }
}

/** The beginning of an error's text. */
export function shortError(text: string): string {
  return text.length > ERROR_CHARS_MAX ? `${text.slice(0, ERROR_CHARS_MAX)}…` : text;
}

function valueOf(identity: JobIdentity, { slot_ms, runs }: CronRecord, now: number): JsonObject {
  const { function_id, expression, timezone } = identity;
  const kept = runs.slice(-RUNS_KEPT).map((run) => ({ ...run }) as unknown as JsonObject);
  return { function_id, expression, timezone, slot_ms, used_ms: now, runs: kept };
}

/** The record of an entry; `undefined`: there is none that can be read. */
function recordIn(entry: Entry | undefined): CronRecord | undefined {
  if (!entry || entry.damaged !== undefined) return undefined;
  return readRecord(entry.value as JsonObject);
}

/** Whether a record can be read, has no run without an end, and was used not long ago. */
function isFresh({ value, damaged }: Entry, now: number): boolean {
  if (damaged !== undefined || !readRecord(value as JsonObject)) return false;
  const { used_ms, runs } = value as unknown as { used_ms?: number; runs: readonly Run[] };
  const age = now - Number(used_ms ?? 0);
  return age >= 0 && age < USED_MS && runs.every(({ outcome }) => outcome !== "running");
}

function readRecord({ slot_ms, runs }: JsonObject): CronRecord | undefined {
  if (typeof slot_ms !== "number" || !Array.isArray(runs)) return undefined;
  const read = (runs as unknown as Run[]).map((run): Run =>
    run.outcome === "running" ? { ...run, outcome: "interrupted" } : run
  );
  return { slot_ms, runs: read };
}
