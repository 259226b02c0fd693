/**
 * The jobs of one queue in the store: their layout, and one write for each thing that happens.
 *
 * | key in the store | value |
 * | --- | --- |
 * | `queue_ready`, queue, lane, order | a job that may begin |
 * | `queue_later`, queue, time, order | a job that has to wait for its time |
 * | `queue_dead`, queue, order | a job whose attempts are used up |
 * | `queue_dead_ids`, queue, id | the order of a dead job |
 * | `queue_ids`, queue, id | until when a job of this id is the same one |
 * | `queue_meta`, queue | whether the queue is paused |
 *
 * The order of a job is its priority and its number, as text that sorts like them; it stays with
 * the job. A job is in one place at any time, and is deleted when it is done.
 *
 * @module
 */
import type { Entry, KeyChange, Store, StoreKey } from "../../engine/ports/store.ts";
import {
  type Job,
  type JobFailure,
  type JobInput,
  PRIORITY_MAX,
} from "../../engine/ports/queue.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** How long an id stands for the same job. */
export const UNIQUE_MS = 86_400_000;
/** Digits of a time in a key; enough for 30,000 years. */
const TIME_DIGITS = 15;
/** Jobs that one write moves or deletes. */
export const MOVED_MAX = 100;
/** Bytes of jobs that are read at once. */
export const PAGE_BYTES = 512 * 1024;
/** Of a job that did not run. */
const NO_FAILURES: readonly JobFailure[] = [];
/** Sorts behind every order and every encoded lane. */
const BEHIND = "~";

/** A job and where it is. */
export interface StoredJob {
  readonly order: string;
  readonly job: Job;
  /** Length of its record. */
  readonly bytes: number;
  /** Its record as it was read or written. */
  readonly entry: Entry;
}

/** A page, and whether there may be more behind it. */
export interface JobPage {
  readonly jobs: readonly StoredJob[];
  readonly isLast: boolean;
}

/** Places of jobs that wait; a position sorts as the key does. */
export type Area = "queue_ready" | "queue_later" | "queue_dead";

/** Reads and writes the jobs of one queue. */
export class JobStore {
  readonly #store: Store;
  readonly #queue: string;

  constructor(store: Store, queue: string) {
    this.#store = store;
    this.#queue = queue;
  }

  /** Adds a job; `undefined`: one with its id is there already. */
  add(input: JobInput, order: string, now: number): Promise<StoredJob | undefined> {
    const { id, payload, lane, priority = 0, at_ms, expires_at_ms } = input;
    const due_at_ms = at_ms !== undefined && at_ms > now ? at_ms : undefined;
    const job: Job = {
      id,
      payload,
      lane,
      priority,
      attempts: 0,
      enqueued_at_ms: now,
      ...due_at_ms !== undefined && { due_at_ms },
      ...expires_at_ms !== undefined && { expires_at_ms },
      failures: NO_FAILURES,
    };
    if (input.isUnique) return this.#addUnique(job, order);
    const record = recordOf(job);
    const written = this.#store.write([[this.#keyOf(job, order), () => record, null]]);
    return written.then(([added]) => storedOf(order, job, added!.new!));
  }

  async #addUnique(job: Job, order: string): Promise<StoredJob | undefined> {
    const { id, enqueued_at_ms: now } = job;
    const record = recordOf(job);
    let isNew = true;
    const [, added] = await this.#store.write([
      [["queue_ids", this.#queue, id], (old) => {
        isNew = !old || old.damaged !== undefined || (old.value as number) <= now;
        return isNew ? now + UNIQUE_MS : old;
      }],
      [this.#keyOf(job, order), (old) => isNew ? record : old, null],
      [["queue_ids_expiry", timeText(now + UNIQUE_MS), this.#queue, id], (old) => isNew || old],
    ]);
    return isNew ? storedOf(order, job, added!.new!) : undefined;
  }

  /** Jobs of a lane behind an order. */
  lane(lane: string, limit: number, after: string): Promise<JobPage> {
    const prefix = ["queue_ready", this.#queue, lane];
    return this.#page(prefix, limit, after === "" ? undefined : [...prefix, after]);
  }

  /** Jobs of the lanes behind a lane, in the order of the lanes. */
  lanes(limit: number, afterLane: string | undefined): Promise<JobPage> {
    const prefix = ["queue_ready", this.#queue];
    return this.#page(
      prefix,
      limit,
      afterLane === undefined ? undefined : [...prefix, afterLane, BEHIND],
    );
  }

  /** Jobs that wait for their time, the next one first. */
  later(limit: number): Promise<JobPage> {
    return this.#page(["queue_later", this.#queue], limit, undefined);
  }

  /** Dead jobs behind an order. */
  dead(limit: number, after: string): Promise<JobPage> {
    const prefix = ["queue_dead", this.#queue];
    return this.#page(prefix, limit, after === "" ? undefined : [...prefix, after]);
  }

  /** Positions of an area behind one of them, for counting. */
  async positions(area: Area, limit: number, after: string): Promise<readonly string[]> {
    const prefix = [area, this.#queue];
    const key = after === "" ? undefined : [...prefix, ...after.split("\0")];
    const found = await this.#store.list(prefix, limit, key);
    return found.map((entry) => entry.key.slice(2).join("\0"));
  }

  /** Dead jobs by their ids; those that are gone are left out. */
  async deadById(ids: readonly string[]): Promise<StoredJob[]> {
    const found: StoredJob[] = [];
    for (const id of ids) {
      const order = await this.#store.get(["queue_dead_ids", this.#queue, id]);
      if (!order) continue;
      const entry = await this.#store.get(["queue_dead", this.#queue, order.value as string]);
      const stored = entry && readEntry(entry);
      if (stored) found.push(stored);
    }
    return found;
  }

  /** Deletes a job that ran and is done. Only its queue changes the record of a job that runs. */
  async done({ order, job, entry }: StoredJob): Promise<void> {
    await this.#store.write([[this.#readyKey(job.lane, order), () => undefined, entry]]);
  }

  /** Rewrites a job that ran where it is, after a failed attempt. */
  async rewrite({ order, entry }: StoredJob, job: Job): Promise<StoredJob> {
    const record = recordOf(job);
    const key = this.#readyKey(job.lane, order);
    const [changed] = await this.#store.write([[key, () => record, entry]]);
    return storedOf(order, job, changed!.new!);
  }

  /** Moves a job that ran to those that wait for their time. */
  async postpone({ order, entry }: StoredJob, job: Job): Promise<StoredJob> {
    const record = recordOf(job);
    const [, added] = await this.#store.write([
      [this.#readyKey(job.lane, order), () => undefined, entry],
      [this.#laterKey(job.due_at_ms!, order), () => record, null],
    ]);
    return storedOf(order, job, added!.new!);
  }

  /** Moves jobs whose time has come to those that may begin; returns those that were there. */
  async promote(stored: readonly StoredJob[]): Promise<StoredJob[]> {
    const jobs: (Job | undefined)[] = [];
    const changes = stored.flatMap((each, i): KeyChange[] => {
      const { due_at_ms, ...job } = each.job;
      const record = recordOf(job);
      return [
        [this.#laterKey(due_at_ms!, each.order), (old) => {
          jobs[i] = old && job;
          return undefined;
        }],
        [this.#readyKey(job.lane, each.order), (old) => jobs[i] ? record : old, null],
      ];
    });
    const changed = await this.#store.write(changes);
    return stored.flatMap(({ order }, i) => {
      const job = jobs[i];
      return job ? [storedOf(order, job, changed[2 * i + 1]!.new!)] : [];
    });
  }

  /** Moves a job that ran to the dead ones. */
  async bury({ order, entry }: StoredJob, job: Job): Promise<void> {
    const record = recordOf(job);
    await this.#store.write([
      [this.#readyKey(job.lane, order), () => undefined, entry],
      [["queue_dead", this.#queue, order], () => record, null],
      [["queue_dead_ids", this.#queue, job.id], () => order],
    ]);
  }

  /** Gives a dead job a new order among those that may begin; `undefined`: it is gone. */
  async redrive(stored: StoredJob, job: Job, order: string): Promise<StoredJob | undefined> {
    const record = recordOf(job);
    let isThere = false;
    const [, , added] = await this.#store.write([
      [["queue_dead", this.#queue, stored.order], (old) => {
        isThere = old !== undefined;
        return undefined;
      }],
      [["queue_dead_ids", this.#queue, job.id], () => undefined],
      [this.#readyKey(job.lane, order), (old) => isThere ? record : old, null],
    ]);
    return isThere ? storedOf(order, job, added!.new!) : undefined;
  }

  /** Deletes dead jobs; returns those that were there. */
  async discard(stored: readonly StoredJob[]): Promise<StoredJob[]> {
    const gone: StoredJob[] = [];
    const changes = stored.flatMap((each): KeyChange[] => [
      [["queue_dead", this.#queue, each.order], (old) => {
        if (old) gone.push(each);
        return undefined;
      }],
      [["queue_dead_ids", this.#queue, each.job.id], () => undefined],
    ]);
    await this.#store.write(changes);
    return gone;
  }

  /** Deletes jobs that wait; returns those that were there. */
  async delete(stored: readonly StoredJob[], area: "queue_ready" | "queue_later") {
    const gone: StoredJob[] = [];
    await this.#store.write(stored.map((each): KeyChange => {
      const { job, order } = each;
      const key = area === "queue_ready"
        ? this.#readyKey(job.lane, order)
        : this.#laterKey(job.due_at_ms!, order);
      return [key, (old) => {
        if (old) gone.push(each);
        return undefined;
      }];
    }));
    return gone;
  }

  /** Whether the queue is paused. */
  async isPaused(): Promise<boolean> {
    const meta = await this.#store.get(["queue_meta", this.#queue]);
    return (meta?.value as JsonObject | undefined)?.paused === true;
  }

  /** Keeps whether the queue is paused. */
  async setPaused(paused: boolean): Promise<void> {
    const change = (old: Entry | undefined) => ({
      ...old?.value as JsonObject | undefined,
      paused,
    });
    await this.#store.write([[["queue_meta", this.#queue], change]]);
  }

  async #page(prefix: StoreKey, limit: number, after: StoreKey | undefined): Promise<JobPage> {
    const found = await this.#store.list(prefix, limit, after, PAGE_BYTES);
    const bytes = found.reduce((sum, entry) => sum + entry.bytes, 0);
    const jobs = found.map(readEntry).filter((stored) => stored !== undefined);
    return { jobs, isLast: found.length < limit && bytes < PAGE_BYTES };
  }

  #keyOf({ lane, due_at_ms }: Job, order: string): StoreKey {
    return due_at_ms === undefined ? this.#readyKey(lane, order) : this.#laterKey(due_at_ms, order);
  }

  #readyKey(lane: string, order: string): StoreKey {
    return ["queue_ready", this.#queue, lane, order];
  }

  #laterKey(due_at_ms: number, order: string): StoreKey {
    return ["queue_later", this.#queue, timeText(due_at_ms), order];
  }
}

/** Where a job is, for counting. */
export function positionOf(area: Area, { order, job }: StoredJob): string {
  switch (area) {
    case "queue_ready":
      return `${job.lane}\0${order}`;
    case "queue_later":
      return `${timeText(job.due_at_ms!)}\0${order}`;
    case "queue_dead":
      return order;
  }
}

/** The order of a job: a higher priority first, then by number. */
export function orderOf(priority: number, number: string): string {
  return `${String(PRIORITY_MAX - priority).padStart(3, "0")}.${number}`;
}

/**
 * Hands out numbers that grow also over restarts: `await` one function per life of the engine.
 */
export async function openNumbers(store: Store): Promise<() => string> {
  const [changed] = await store.write([[
    ["queue_life"],
    (old) => (old && old.damaged === undefined ? old.value as number : 0) + 1,
  ]]);
  const life = String(changed!.new!.value).padStart(8, "0");
  let count = 0;
  return () => `${life}.${String(++count).padStart(12, "0")}`;
}

/** Forgets ids whose day is over; returns when to come again, `undefined` if none are left. */
export async function forgetIds(store: Store, now: number): Promise<number | undefined> {
  for (;;) {
    const found = await store.list(["queue_ids_expiry"], MOVED_MAX);
    const due = found.filter(({ key }) => Number(key[1]) <= now);
    if (due.length === 0) return found[0] && Number(found[0].key[1]);
    await store.write(due.flatMap(({ key }): KeyChange[] => [
      [key, () => undefined],
      [["queue_ids", key[2]!, key[3]!], (old) => {
        return old && old.damaged === undefined && (old.value as number) > now ? old : undefined;
      }],
    ]));
  }
}

function timeText(ms: number): string {
  return String(Math.max(0, Math.ceil(ms))).padStart(TIME_DIGITS, "0");
}

/** The job of a record; `undefined` when it is damaged, which the store has logged. */
function readEntry(entry: Entry): StoredJob | undefined {
  const { key, value, damaged } = entry;
  if (damaged !== undefined) return undefined;
  const record = value as JsonObject;
  const failures = (record.failures ?? []) as unknown as readonly JobFailure[];
  const priority = (record.priority ?? 0) as number;
  const attempts = (record.attempts ?? 0) as number;
  const job = { ...record, failures, priority, attempts } as unknown as Job;
  return storedOf(key.at(-1)!, job, entry);
}

function storedOf(order: string, job: Job, entry: Entry): StoredJob {
  return { order, job, bytes: entry.bytes, entry };
}

/** A record leaves out what is as in most jobs. */
function recordOf(job: Job): Json {
  const { id, payload, lane, enqueued_at_ms, expires_at_ms } = job;
  const { failures, priority, attempts, due_at_ms } = job;
  return {
    id,
    payload,
    lane,
    enqueued_at_ms,
    ...expires_at_ms !== undefined && { expires_at_ms },
    ...priority !== 0 && { priority },
    ...attempts !== 0 && { attempts },
    ...due_at_ms !== undefined && { due_at_ms },
    ...failures.length > 0 && { failures: failures as unknown as Json },
  } as unknown as Json;
}
