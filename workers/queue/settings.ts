/**
 * Settings of queues, as they are in config.yaml and in the config of triggers.
 *
 * @module
 */
import type { QueueSettings } from "../../engine/ports/queue.ts";
import * as v from "../kit/schema.ts";

/** Queues of one engine, those of topics included. */
export const QUEUES_MAX = 1_000;
/** Longest name of a queue, in characters. */
export const QUEUE_NAME_CHARS_MAX = 128;
/** Longest time of a setting or an option: a year. */
export const QUEUE_TIME_MS_MAX = 31_536_000_000;
/** Longest timeout of a call: a week. */
const TIMEOUT_MS_MAX = 604_800_000;
const COUNT_MAX = 1_000;

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:-]*$/;

/** Whether a text can be the name of a queue. */
export function isQueueName(name: string): boolean {
  return name.length <= QUEUE_NAME_CHARS_MAX && NAME.test(name);
}

const time = v.int(0, QUEUE_TIME_MS_MAX);

/** The members of a queue's settings. */
export const QUEUE_ENTRIES = {
  /** `fifo`: one job of a group at a time, in their order. */
  type: v.optional(v.picklist(["standard", "fifo"]), "standard"),
  /** The member of the payload that selects the group. */
  message_group_field: v.opt(v.text(1, 200)),
  /** Attempts in all. */
  max_retries: v.optional(v.int(1, COUNT_MAX), 3),
  concurrency: v.optional(v.int(1, COUNT_MAX), 10),
  /** Jobs of one function that each of its workers gets at the same time. */
  concurrency_per_worker: v.opt(v.int(1, COUNT_MAX)),
  backoff_ms: v.optional(time, 1_000),
  backoff_max_ms: v.optional(time, 3_600_000),
  /** Share by which a delay varies. */
  jitter: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 0.1),
  /** How long one attempt may take. */
  timeout_ms: v.opt(v.int(1, TIMEOUT_MS_MAX)),
  /** Before a job whose function is overloaded is tried again. */
  poll_interval_ms: v.optional(v.int(10, 60_000), 100),
  rate: v.opt(v.strictObject({
    jobs: v.int(1, 1_000_000),
    per_ms: v.optional(v.int(1, 86_400_000), 1_000),
  })),
  /** A job that has not begun by then is dead. */
  expires_ms: v.opt(v.int(1, QUEUE_TIME_MS_MAX)),
};

/** Settings of one queue. */
export const QueueConfig = v.pipe(
  v.strictObject(QUEUE_ENTRIES),
  v.forward(
    v.check(
      ({ type, message_group_field }) => type !== "fifo" || message_group_field !== undefined,
      "expected the member of the payload that selects the group of a fifo queue",
    ),
    ["message_group_field"],
  ),
);

/** Settings of one queue, complete. */
export type QueueOptions = v.InferOutput<typeof QueueConfig>;

/** The configuration of engine-queue. */
export const Config = v.strictObject({
  queues: v.optional(
    v.pipe(
      v.record(QueueConfig),
      v.check(
        (queues) => Object.keys(queues).every(isQueueName),
        `expected names of 1 to ${QUEUE_NAME_CHARS_MAX} letters, digits and _ . : -`,
      ),
      v.check(
        (queues) => Object.keys(queues).length < QUEUES_MAX,
        `expected fewer than ${QUEUES_MAX} queues`,
      ),
    ),
    {},
  ),
});

/** Configuration of `engine-queue` with all defaults. */
export type QueuesConfig = v.InferOutput<typeof Config>;

/** How the jobs of a queue with these settings are given out. */
export function settingsOf(options: QueueOptions): QueueSettings {
  const { type, max_retries, concurrency, backoff_ms, backoff_max_ms, jitter, rate } = options;
  return {
    fifo: type === "fifo",
    concurrency,
    max_attempts: max_retries,
    backoff_ms,
    backoff_max_ms: Math.max(backoff_ms, backoff_max_ms),
    jitter,
    rate,
  };
}
