/**
 * One job: its triggers, the times that wait to be fired, and its runs.
 *
 * A time is written to the store with its run before the functions are called. If that fails, the
 * time waits, and is tried again later.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { SmallMap } from "../../sdk/typescript/wire/small_map.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { Expression } from "./expression.ts";
import {
  type CronRecord,
  type CronRecords,
  type JobIdentity,
  type Outcome,
  type Run,
  RUNS_KEPT,
  shortError,
} from "./records.ts";
import { CATCH_UP_MAX, type CatchUp, type DueSlots, dueSlots } from "./slots.ts";

/** Runs of one job at once with `overlap: allow`. */
export const RUNS_AT_ONCE_MAX = 100;
/** Times that wait for a run to end; beyond, the oldest are dropped. */
const WAITING_MAX = CATCH_UP_MAX;
/** Time until a write is tried again. */
export const RETRY_MS = 5_000;

/** What happens with a time at which the job still runs. */
export type Overlap = "skip" | "queue" | "allow";

/** How a job runs: what its newest trigger says. */
export interface JobSettings {
  readonly catchUp: CatchUp;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly timeoutMs: number;
  readonly condition: string | undefined;
}

/** What a job uses. */
export interface JobSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly records: CronRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** From 0 to 1. */
  random(): number;
}

/** What one run was for. */
interface Firing {
  readonly slot: number;
  readonly isManual: boolean;
}

/** One job. */
export class Job {
  readonly key: string;
  readonly identity: JobIdentity;
  readonly expression: Expression;
  /** Ids; all else of a trigger is the identity. */
  readonly triggers = new SmallMap<string, true>();
  settings: JobSettings;
  /** The next time that is to come; `undefined`: none. */
  next: number | undefined;
  running = 0;
  /** Times that did not fire because the job ran, and because they were missed. */
  skipped = 0;
  missed = 0;
  readonly #setup: JobSetup;
  #slotMs: number;
  #runs: readonly Run[];
  // What only a job that fires needs is made then: there are thousands that fire once a day.
  #waiting: number[] | undefined;
  #delays: Set<() => void> | undefined;
  #isHeld = false;
  #isClosed = false;
  /** The last write; they follow each other. */
  #saving: Promise<void> | undefined;

  constructor(
    setup: JobSetup,
    key: string,
    identity: JobIdentity,
    expression: Expression,
    settings: JobSettings,
    record: CronRecord,
  ) {
    this.#setup = setup;
    this.key = key;
    this.identity = identity;
    this.expression = expression;
    this.settings = settings;
    this.#slotMs = record.slot_ms;
    this.#runs = record.runs;
    this.next = expression.next(record.slot_ms);
  }

  /** Nothing of it goes on. */
  get isIdle(): boolean {
    return this.triggers.size === 0 && this.running === 0;
  }

  get #waits(): boolean {
    return this.#waiting !== undefined && this.#waiting.length > 0;
  }

  /** Fires, queues or passes over the times that are due. */
  advance(now: number): void {
    if (this.next === undefined || this.next > now) return;
    if (this.triggers.size === 0 || this.#isClosed) return;
    const due = dueSlots(this.expression, this.next, now, this.settings.catchUp);
    this.next = due.next;
    this.#report(due);
    if (due.missed.length === 0 && due.fresh.length === 0) this.#slotMs = due.last;
    for (const slot of due.missed) this.#wait(slot);
    for (const slot of due.fresh) {
      // The missed ones come first, and are no reason to skip it.
      if (due.missed.length > 0) this.#wait(slot);
      else this.#delay(slot);
    }
    this.#dispatch();
  }

  /** The clock went back: times from now on count again. */
  restartAt(now: number): void {
    this.#slotMs = now;
    this.#waiting = undefined;
    this.next = this.expression.next(now);
  }

  /** What the store has of it may be later: another engine fired it meanwhile. */
  goOnFrom({ slot_ms, runs }: CronRecord): void {
    if (this.running === 0) this.#runs = runs;
    if (slot_ms <= this.#slotMs) return;
    this.#slotMs = slot_ms;
    this.#waiting = this.#waiting?.filter((slot) => slot > slot_ms);
    this.next = this.expression.next(slot_ms);
  }

  /** Runs it now, besides its times. Resolves with the run when it has ended. */
  async runNow(): Promise<Run> {
    const slot = this.#setup.clock.wall();
    return await this.#run({ slot, isManual: true });
  }

  /** Its triggers are gone, or the worker ends: what waits is dropped. */
  stop(): void {
    this.#waiting = undefined;
    for (const cancel of this.#delays ?? []) cancel();
    this.#delays = undefined;
  }

  /** No writes from now on; resolves when the last one has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.stop();
    await this.#saving;
  }

  /** Its last runs, the newest first. */
  get runs(): readonly Run[] {
    return [...this.#runs].reverse();
  }

  #report({ passedOver, isMore }: DueSlots): void {
    if (passedOver === 0 && !isMore) return;
    this.missed += passedOver;
    const { function_id, expression } = this.identity;
    const missed = isMore ? `more than ${CATCH_UP_MAX}` : passedOver;
    const catch_up = this.settings.catchUp;
    this.#setup.log.info("times of a cron trigger were missed", {
      function_id,
      expression,
      missed,
      catch_up,
    });
  }

  /** Fires after a part of the jitter. */
  #delay(slot: number): void {
    const { clock, random } = this.#setup;
    const ms = Math.floor(random() * this.settings.jitterMs);
    if (ms === 0) return this.#offer(slot);
    const cancel = clock.after(ms, () => {
      this.#delays?.delete(cancel);
      this.#offer(slot);
      this.#dispatch();
    });
    (this.#delays ??= new Set()).add(cancel);
  }

  #offer(slot: number): void {
    const isBusy = this.running > 0 || this.#waits;
    if (this.settings.overlap !== "skip" || !isBusy) return this.#wait(slot);
    this.skipped++;
    this.#slotMs = Math.max(this.#slotMs, slot);
  }

  #wait(slot: number): void {
    const waiting = this.#waiting ??= [];
    if (waiting.push(slot) <= WAITING_MAX) return;
    waiting.shift();
    this.skipped++;
  }

  /** Starts runs as far as the rule for overlaps allows. */
  #dispatch(): void {
    const most = this.settings.overlap === "allow" ? RUNS_AT_ONCE_MAX : 1;
    while (this.#waits && this.running < most && !this.#isHeld && !this.#isClosed) {
      const slot = this.#waiting!.shift()!;
      void this.#run({ slot, isManual: false }).catch((thrown) => this.#hold(slot, thrown))
        .finally(() => this.#dispatch());
    }
  }

  /** A time could not be written: it waits for the next attempt. */
  #hold(slot: number, thrown: unknown): void {
    if (this.#isClosed || this.triggers.size === 0) return;
    const { function_id } = this.identity;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    this.#setup.log.warn("a cron trigger waits, since its time cannot be stored", {
      function_id,
      reason,
    });
    (this.#waiting ??= []).unshift(slot);
    if (this.#isHeld) return;
    this.#isHeld = true;
    const cancel = this.#setup.clock.after(RETRY_MS, () => {
      this.#delays?.delete(cancel);
      this.#isHeld = false;
      this.#dispatch();
    });
    (this.#delays ??= new Set()).add(cancel);
  }

  /** Writes a run and makes its calls; rejects when it cannot be written. */
  async #run(firing: Firing): Promise<Run> {
    const { clock } = this.#setup;
    this.running++;
    const { slot, isManual } = firing;
    let run: Run = {
      scheduled_ms: slot,
      started_ms: clock.wall(),
      outcome: "running",
      ...isManual && { manual: true },
    };
    try {
      if (!isManual) this.#slotMs = Math.max(this.#slotMs, slot);
      this.#runs = [...this.#runs, run].slice(-RUNS_KEPT);
      try {
        await this.#save();
      } catch (thrown) {
        this.#runs = this.#runs.filter((each) => each !== run);
        throw thrown;
      }
      const ended: Run = { ...run, ...await this.#call(firing), ended_ms: clock.wall() };
      this.#runs = this.#runs.map((each) => each === run ? ended : each);
      run = ended;
      this.#save().catch(() => {}); // The next write has the end too.
      return run;
    } finally {
      this.running--;
    }
  }

  async #call(firing: Firing): Promise<{ outcome: Outcome; error?: string }> {
    const triggers = [...this.triggers.keys()];
    const calls = triggers.map((id) => this.#callOne(id, firing));
    const outcomes = await Promise.allSettled(calls);
    const failed = outcomes.find(({ status }) => status === "rejected");
    if (failed) {
      const { reason } = failed as PromiseRejectedResult;
      const { code = "failed", message = "" } = reason as { code?: string; message?: string };
      return { outcome: "failed", error: shortError(`${code}: ${message}`) };
    }
    const made = outcomes.some((each) => each.status === "fulfilled" && each.value);
    return { outcome: made || triggers.length === 0 ? "ok" : "suppressed" };
  }

  /** Calls one function; `false` when the condition said no. */
  async #callOne(id: string, { slot, isManual }: Firing): Promise<boolean> {
    const { worker, clock } = this.#setup;
    const { condition, timeoutMs } = this.settings;
    const { function_id, namespace, metadata } = this.identity;
    const payload: JsonObject = {
      trigger: "cron",
      job_id: id,
      scheduled_time: timeText(slot),
      actual_time: timeText(clock.wall()),
      ...isManual && { manual: true },
    };
    const request: CallRequest<Json> = {
      function_id,
      payload,
      timeout_ms: timeoutMs,
      ...namespace !== undefined && { namespace },
      ...metadata !== undefined && { metadata },
    };
    if (condition !== undefined) {
      const answer = await worker.trigger<Json, Json>({ ...request, function_id: condition });
      if (answer === false) return false;
    }
    await worker.trigger(request);
    return true;
  }

  /** Writes the record after the writes before. */
  #save(): Promise<void> {
    const { records, clock } = this.#setup;
    const saved = (this.#saving ?? Promise.resolve()).then(async () => {
      if (this.#isClosed) return;
      const record = { slot_ms: this.#slotMs, runs: this.#runs };
      await records.save(this.key, this.identity, record, clock.wall());
    });
    const settled = saved.catch(() => {}).then(() => {
      if (this.#saving === settled) this.#saving = undefined;
    });
    this.#saving = settled;
    return saved;
  }
}

/** A time as PROTOCOL 4.5 writes it. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z").replace("Z", "+00:00");
}
