/**
 * Triggers of type `cron`: all jobs, and the one timer that waits for the earliest of them.
 *
 * The timer runs on a clock that stands still while the computer sleeps, so it is never set for
 * longer than {@linkcode WAKE_MS_MAX}: after a sleep or a jump of the clock, jobs are looked at
 * soon.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import { type Expression, readExpression, ReadExpressions } from "./expression.ts";
import { Job, type JobSettings, type JobSetup, timeText } from "./job.ts";
import { BACK_MS_MAX, type JobIdentity, keyOf, type Run } from "./records.ts";

/** Longest wait for the next look at all jobs. */
export const WAKE_MS_MAX = 5_000;
/** Jobs at once. */
export const JOBS_MAX = 5_000;
/** How long jobs are looked at before other work gets its turn. */
const SLICE_MS = 5;
const PAUSE_MS = 1;
/** Longest `jitter_ms`: an hour. */
const JITTER_MS_MAX = 3_600_000;
const TIMEOUT_MS = 600_000;
const TIMEOUT_MS_MAX = 604_800_000;
/** Times that a listing shows of each job. */
export const NEXT_SHOWN = 5;

/** The config of a trigger. */
const Config = v.object({
  expression: v.nullish(v.string(), ""),
  timezone: v.opt(v.string()),
  catch_up: v.nullish(v.picklist(["none", "last", "all"]), "none"),
  overlap: v.nullish(v.picklist(["skip", "queue", "allow"]), "skip"),
  jitter_ms: v.nullish(v.int(0, JITTER_MS_MAX), 0),
  timeout_ms: v.nullish(v.int(1, TIMEOUT_MS_MAX), TIMEOUT_MS),
  condition_function_id: v.opt(v.text(1)),
});

/** What {@linkcode CronJobs} work with. */
export interface JobsSetup extends JobSetup {
  /** Zone of triggers that name none. */
  readonly timezone: string;
}

/** Provider of the trigger type `cron`. */
export class CronJobs implements AsyncDisposable {
  readonly #setup: JobsSetup;
  readonly #expressions = new ReadExpressions();
  readonly #jobs = new Map<string, Job>();
  /** Jobs whose record is being read, by key; they count as jobs. */
  readonly #opening = new Map<string, Promise<Job>>();
  /** By id of a trigger. */
  readonly #byTrigger = new Map<string, Job>();
  /** Of the last trigger; most have the same ones, which are kept once. */
  #settings: JobSettings | undefined;
  #cancel: (() => void) | undefined;
  #dueMs = Infinity;
  #lastWall: number;
  /** This engine has the role to fire. */
  #isKept = false;
  #isStopped = false;

  constructor(setup: JobsSetup) {
    this.#setup = setup;
    this.#lastWall = setup.clock.wall();
  }

  /** @throws {EngineError} `trigger_registration_failed` with what is wrong, and where. */
  async add(trigger: TriggerInstance): Promise<void> {
    const config = fitTrigger(Config, trigger);
    const timezone = config.timezone ?? this.#setup.timezone;
    const expression = this.#read(config.expression, timezone);
    const settings = this.#settingsOf(config);
    this.remove(trigger.id);
    const opened = this.#open(trigger, expression, settings);
    // A known job gets the trigger at once: it ends with its last one.
    const job = opened instanceof Job ? opened : await opened;
    job.settings = settings;
    job.triggers.set(trigger.id, true);
    this.#byTrigger.set(trigger.id, job);
    if (this.#isFiring) job.advance(this.#setup.clock.wall());
    this.#wakeBy(job.next);
  }

  /**
   * Fires jobs until the signal is aborted; without it, jobs are known and listed, and nothing
   * fires. What came due before is fired or missed, as each job says, unless another engine that
   * had the role fired it.
   */
  async fireUntil(signal: AbortSignal): Promise<void> {
    await this.#catchUpWithOthers();
    if (signal.aborted) return;
    this.#isKept = true;
    this.#wake();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    this.#isKept = false;
    this.#cancel?.();
    this.#dueMs = Infinity;
  }

  /** Reads the records again: another engine may have written them. */
  async #catchUpWithOthers(): Promise<void> {
    const { records, clock } = this.#setup;
    for (const job of [...this.#jobs.values()]) {
      job.goOnFrom(await records.open(job.key, job.identity, clock.wall()));
    }
  }

  get #isFiring(): boolean {
    return this.#isKept && !this.#isStopped;
  }

  /** Removes a trigger; a run that is under way ends by itself. */
  remove(id: string): void {
    const job = this.#byTrigger.get(id);
    if (!job) return;
    this.#byTrigger.delete(id);
    job.triggers.delete(id);
    if (job.triggers.size === 0) job.stop();
    if (job.isIdle) this.#jobs.delete(job.key);
  }

  /** Jobs that have triggers, of one function if it is given; the one that fires next first. */
  live(functionId?: string | null): Job[] {
    const next = ({ next }: Job): number => next ?? Infinity;
    const live = [...this.#jobs.values()].filter(({ triggers, identity }) =>
      triggers.size > 0 && (!functionId || identity.function_id === functionId)
    );
    return live.sort((a, b) => next(a) - next(b));
  }

  /** What listings show of a job; its next times take up to some milliseconds. */
  viewOf(job: Job): JsonObject {
    const { identity, settings, expression, triggers } = job;
    const { function_id, namespace, timezone } = identity;
    const now = this.#setup.clock.wall();
    const last = job.runs.map((run) => runView(run) as JsonObject);
    return {
      job_id: [...triggers.keys()][0]!,
      function_id,
      ...namespace !== undefined && { namespace },
      expression: expression.text,
      timezone,
      catch_up: settings.catchUp,
      overlap: settings.overlap,
      jitter_ms: settings.jitterMs,
      running: job.running,
      skipped: job.skipped,
      missed: job.missed,
      next: expression.nextTimes(now, NEXT_SHOWN).map(timeText),
      last,
    };
  }
  /**
   * Runs a job now, by the id of its trigger or of its function.
   *
   * @throws {EngineError} `NOT_FOUND`; `INVALID_ARGUMENTS` if several jobs have the function.
   */
  async run(id: string): Promise<{ job: Job; run: Run }> {
    const jobs = [...this.#jobs.values()].filter(({ triggers }) => triggers.size > 0);
    const found = this.#byTrigger.get(id);
    const named = found ? [found] : jobs.filter(({ identity }) => identity.function_id === id);
    if (named.length === 0) {
      throw new EngineError("NOT_FOUND", `No cron trigger has the id or the function ${id}`);
    }
    if (named.length > 1) {
      const ids = named.slice(0, 5).flatMap(({ triggers }) => [...triggers.keys()].slice(0, 1));
      const message = `${named.length} cron triggers call ${id}; name one: ${ids.join(", ")}`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const job = named[0]!;
    return { job, run: await job.runNow() };
  }

  /** Fires nothing any more; runs that are under way go on. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    for (const job of this.#jobs.values()) job.stop();
  }

  /** Ends, after the writes that are under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await Promise.all([...this.#jobs.values()].map((job) => job.close()));
  }

  #settingsOf(config: v.InferOutput<typeof Config>): JobSettings {
    const settings: JobSettings = {
      catchUp: config.catch_up,
      overlap: config.overlap,
      jitterMs: config.jitter_ms,
      timeoutMs: config.timeout_ms,
      condition: config.condition_function_id,
    };
    const last = this.#settings;
    if (last && isEqual(last, settings)) return last;
    return this.#settings = settings;
  }

  #read(text: string, timezone: string): Expression {
    try {
      return readExpression(text, timezone, this.#setup.clock.wall(), this.#expressions);
    } catch (thrown) {
      const { message } = thrown as Error;
      throw new EngineError("trigger_registration_failed", message, { cause: thrown });
    }
  }

  /** The job of a trigger: one that is there, or a new one that goes on where it ended. */
  #open(
    { function_id, namespace, metadata }: TriggerInstance,
    expression: Expression,
    settings: JobSettings,
  ): Job | Promise<Job> {
    const { text, timezone } = expression;
    const identity: JobIdentity = { function_id, namespace, metadata, expression: text, timezone };
    const key = keyOf(identity);
    const known = this.#jobs.get(key) ?? this.#opening.get(key);
    if (known) return known;
    if (this.#jobs.size + this.#opening.size >= JOBS_MAX) {
      const message = `There are ${JOBS_MAX} cron triggers already, the maximum`;
      throw new EngineError("trigger_registration_failed", message);
    }
    const opening = this.#openNew(key, identity, expression, settings);
    this.#opening.set(key, opening);
    return opening;
  }

  async #openNew(
    key: string,
    identity: JobIdentity,
    expression: Expression,
    settings: JobSettings,
  ): Promise<Job> {
    try {
      const { records, clock } = this.#setup;
      const record = await records.open(key, identity, clock.wall());
      const job = new Job(this.#setup, key, identity, expression, settings, record);
      this.#jobs.set(key, job);
      return job;
    } finally {
      this.#opening.delete(key);
    }
  }

  /** Looks at all jobs, in slices. */
  #wake(): void {
    const { clock } = this.#setup;
    const end = clock.now() + SLICE_MS;
    const now = clock.wall();
    if (now < this.#lastWall - BACK_MS_MAX) this.#restartAt(now);
    this.#lastWall = now;
    let next = Infinity;
    for (const job of this.#jobs.values()) {
      job.advance(now);
      next = Math.min(next, job.next ?? Infinity);
      if (clock.now() >= end) {
        next = now + PAUSE_MS;
        break;
      }
    }
    this.#dueMs = Infinity;
    if (this.#jobs.size > 0) this.#wakeBy(next);
    for (const [key, job] of this.#jobs) if (job.isIdle) this.#jobs.delete(key);
  }

  #restartAt(now: number): void {
    const by_s = Math.round((this.#lastWall - now) / 1_000);
    this.#setup.log.warn("the clock went back; cron triggers fire again at the repeated times", {
      by_s,
    });
    for (const job of this.#jobs.values()) job.restartAt(now);
  }

  /** Looks at all jobs at a time, or earlier. */
  #wakeBy(ms: number | undefined): void {
    const { clock } = this.#setup;
    const now = clock.wall();
    const dueMs = Math.min(ms ?? Infinity, now + WAKE_MS_MAX);
    if (!this.#isFiring || dueMs >= this.#dueMs) return;
    this.#cancel?.();
    this.#dueMs = dueMs;
    this.#cancel = clock.after(Math.max(PAUSE_MS, dueMs - now), () => this.#wake());
  }
}

function isEqual(one: JobSettings, other: JobSettings): boolean {
  return one.catchUp === other.catchUp && one.overlap === other.overlap &&
    one.jitterMs === other.jitterMs && one.timeoutMs === other.timeoutMs &&
    one.condition === other.condition;
}

/** A run for people and programs. */
export function runView({ scheduled_ms, started_ms, ended_ms, ...rest }: Run): JsonObject {
  return {
    scheduled_time: timeText(scheduled_ms),
    started_time: timeText(started_ms),
    ...ended_ms !== undefined && { duration_ms: ended_ms - started_ms },
    ...rest,
  };
}
