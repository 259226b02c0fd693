/**
 * Jobs and subscriptions as the engine lists them, and which of them belongs to a trigger.
 *
 * Equal triggers of several workers are one job, which has the id of one of them; so a job is found
 * by what it does.
 *
 * @module
 */
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { TriggerItem } from "./trigger_rows.ts";

/** A run as `engine::cron::list` returns it. */
export interface CronRun {
  readonly scheduled_time: string;
  readonly started_time: string;
  readonly duration_ms?: number;
  readonly outcome: string;
  readonly error?: string;
  readonly manual?: boolean;
}

/** A job as `engine::cron::list` returns it. */
export interface CronJob {
  readonly job_id: string;
  readonly function_id: string;
  readonly expression: string;
  readonly timezone: string;
  readonly running: number;
  readonly skipped: number;
  readonly missed: number;
  readonly next: readonly string[];
  readonly last: readonly CronRun[];
}

/** A subscription as `engine::pubsub::list` returns it. */
export interface Subscription {
  readonly trigger_id: string;
  readonly topic: string;
  readonly function_id: string;
  readonly sent: number;
  readonly dropped: number;
  readonly dropped_at_ms?: number;
}

/** Whether a job is that of a trigger. */
export function isJobOf(job: CronJob, item: TriggerItem): boolean {
  if (job.job_id === item.id) return true;
  const { expression, timezone } = configOf(item);
  if (job.function_id !== item.function_id || typeof expression !== "string") return false;
  const isSame = expression.trim().split(/\s+/).join(" ") === job.expression;
  return isSame && (typeof timezone !== "string" || timezone === job.timezone);
}

/** Whether a subscription is that of a trigger. */
export function isSubscriptionOf(found: Subscription, item: TriggerItem): boolean {
  if (found.trigger_id === item.id) return true;
  return found.function_id === item.function_id && found.topic === configOf(item).topic;
}

/** The colour of a run's outcome. */
export function toneOf({ outcome }: CronRun): "ok" | "bad" | "warn" | undefined {
  switch (outcome) {
    case "ok":
      return "ok";
    case "failed":
      return "bad";
    case "interrupted":
      return "warn";
    default:
      return undefined;
  }
}

function configOf({ config }: TriggerItem): JsonObject {
  return config !== null && typeof config === "object" && !Array.isArray(config) ? config : {};
}
