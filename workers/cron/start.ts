/**
 * Runs `engine-cron`: calls functions at times, once per time, also over a restart of the engine.
 *
 * This file has the functions and the trigger type; `jobs.ts` has all jobs and their timer,
 * `job.ts` one of them, `slots.ts` which times fire, `records.ts` what is stored, `expression.ts`
 * the times.
 *
 * @module
 */
import type { EngineHost } from "../kit/define.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/fit.ts";
import { mapInTurns } from "../kit/in_turns.ts";
import * as v from "../kit/schema.ts";
import { EXPRESSION_CHARS_MAX, readExpression } from "./expression.ts";
import { timeText } from "./job.ts";
import { CronJobs, NEXT_SHOWN, runView } from "./jobs.ts";
import { CronRecords } from "./records.ts";

/** Times that `engine::cron::next` calculates at most. */
export const NEXT_MAX = 100;
/** Jobs in one answer of `engine::cron::list`. */
export const JOBS_LISTED_MAX = 500;

const ListRequest = v.object({
  function_id: v.described("Lists only triggers of this function", v.opt(v.string())),
  limit: v.described(
    "Maximum number of entries",
    v.nullish(v.int(1, JOBS_LISTED_MAX), JOBS_LISTED_MAX),
  ),
});
const NextRequest = v.object({
  expression: v.described(
    "Second, minute, hour, day of month, month, day of week, such as 0 0 9 * * MON-FRI",
    v.string(),
  ),
  timezone: v.described(
    "Time zone, such as Europe/Berlin; default: that of engine-cron",
    v.opt(v.string()),
  ),
  count: v.described("Number of times", v.nullish(v.int(1, NEXT_MAX), NEXT_SHOWN)),
});
const RunRequest = v.object({
  job_id: v.described("A job_id of engine::cron::list, or the id of its function", v.text(1)),
});

/** Configuration of `engine-cron` with all defaults. */
export interface CronConfig {
  /** Of triggers that name none. */
  readonly timezone: string;
}

/** Calls functions at times. */
export function startCron(
  worker: Worker,
  { timezone }: CronConfig,
  { clock, log, store, draining, keeping, turns }: EngineHost,
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  const records = new CronRecords(store);
  const random = (): number => Math.random();
  const jobs = started.use(new CronJobs({ worker, records, clock, log, random, timezone }));
  started.use(keeping.keep("engine-cron", (signal) => jobs.fireUntil(signal)));
  const stop = (): void => jobs.stop();
  draining.addEventListener("abort", stop, { once: true });
  started.defer(() => draining.removeEventListener("abort", stop));
  registerFunctions(worker, jobs, { clock, turns }, timezone);
  registerTriggerType(worker, jobs);
  records.sweep(clock.wall()).catch((thrown) => {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    log.warn("old records of cron triggers could not be removed", { reason });
  });
  return Promise.resolve(started);
}

function registerFunctions(
  worker: Pick<Worker, "registerFunction">,
  jobs: CronJobs,
  { clock, turns }: Pick<EngineHost, "clock" | "turns">,
  zone: string,
): void {
  worker.registerFunction("engine::cron::list", async (payload: Json) => {
    const { function_id, limit } = fit("engine::cron::list", ListRequest, payload ?? {});
    const live = jobs.live(function_id);
    // Their next times are calculated for those alone that the answer has.
    const shown = await mapInTurns(turns, live.slice(0, limit), (job) => jobs.viewOf(job));
    return { jobs: shown, count: live.length };
  }, {
    description: "Lists cron jobs with their next times and last runs",
    request_format: v.jsonSchema(ListRequest),
  });
  worker.registerFunction("engine::cron::next", (payload: Json): JsonObject => {
    const request = fit("engine::cron::next", NextRequest, payload);
    const { expression, timezone = zone, count } = request;
    const now = clock.wall();
    const times = readExpression(expression, timezone, now).nextTimes(now, count);
    return { expression, timezone, next: times.map(timeText) };
  }, {
    description: "Calculates the next times of a cron expression",
    request_format: v.jsonSchema(NextRequest),
  });
  worker.registerFunction("engine::cron::run", async (payload: Json): Promise<JsonObject> => {
    const { job_id } = fit("engine::cron::run", RunRequest, payload);
    const { job, run } = await jobs.run(job_id);
    const { function_id } = job.identity;
    return { job_id, function_id, ...runView(run) };
  }, {
    description: "Runs a cron job now, in addition to its schedule; job_id may be a function's id",
    request_format: v.jsonSchema(RunRequest),
  });
}

function registerTriggerType(worker: Pick<Worker, "registerTriggerType">, jobs: CronJobs): void {
  worker.registerTriggerType({
    id: "cron",
    description: "Runs a function at the times of a cron expression",
    trigger_request_format: {
      type: "object",
      required: ["expression"],
      properties: {
        expression: {
          type: "string",
          maxLength: EXPRESSION_CHARS_MAX,
          description:
            "Second, minute, hour, day of month, month, day of week, such as 0 0 9 * * MON-FRI",
        },
        timezone: {
          type: "string",
          description: "Time zone, such as Europe/Berlin; default: that of engine-cron",
        },
        catch_up: {
          enum: ["none", "last", "all"],
          description: "Which missed times fire later; default none",
        },
        overlap: {
          enum: ["skip", "queue", "allow"],
          description: "What happens at a time at which the function still runs; default skip",
        },
        jitter_ms: {
          type: "integer",
          description: "Each time fires up to this much later, at random",
        },
        timeout_ms: { type: "integer", description: "Timeout of each call; default 600000" },
        condition_function_id: { type: "string" },
      },
    },
    call_request_format: {
      type: "object",
      properties: {
        trigger: { const: "cron" },
        job_id: { type: "string" },
        scheduled_time: { type: "string" },
        actual_time: { type: "string" },
        manual: { const: true },
      },
    },
  }, {
    registerTrigger: (trigger) => jobs.add(trigger),
    unregisterTrigger: ({ id }) => jobs.remove(id),
  });
}
