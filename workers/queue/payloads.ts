/**
 * Payloads of `engine::queue::*`: the checks, and the JSON Schemas that are published.
 *
 * @module
 */
import { PRIORITY_MAX } from "../../engine/ports/queue.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { QUEUE_TIME_MS_MAX } from "./settings.ts";

/** Longest id of a job, in characters. */
export const JOB_ID_CHARS_MAX = 200;
const FUNCTION_ID_CHARS_MAX = 1_024;
const TRACEPARENT_CHARS_MAX = 512;
/** Jobs that one call names. */
const IDS_MAX = 1_000;
/** Jobs in one answer. */
const LIMIT_MAX = 1_000;
/** Jobs that an answer may leave out at its beginning. */
const OFFSET_MAX = 100_000;
/** Latest time, in milliseconds since 1970: the year 9999. */
const AT_MS_MAX = 253_402_300_799_999;

const id = v.pipe(
  v.text(1, JOB_ID_CHARS_MAX),
  v.check((text) => text.isWellFormed(), "expected well-formed Unicode"),
);
const ms = v.int(0, QUEUE_TIME_MS_MAX);
const name = v.described("The name of the queue", v.string());
/** A queue, or a topic whose subscribers have the queues. */
const PLACE = {
  queue: v.described("The queue; either this or topic", v.opt(v.string())),
  topic: v.described(
    "The topic, for the queues of its durable subscribers; either this or queue",
    v.opt(v.string()),
  ),
};

/** How a job is kept and begun; for `engine::queue::enqueue` and the enqueue action. */
export const JOB_OPTIONS = {
  id: v.described(
    "A second job with this id within a day is not added; default: a new id",
    v.opt(id),
  ),
  delay_ms: v.described("Delay before the job may begin, in milliseconds", v.opt(ms)),
  run_at_ms: v.described(
    "Time before which the job does not begin, in milliseconds since 1970",
    v.opt(v.int(0, AT_MS_MAX)),
  ),
  priority: v.described(
    "Jobs with a higher priority begin first; not in a fifo queue",
    v.opt(v.int(0, PRIORITY_MAX)),
  ),
  expires_ms: v.described(
    "A job that has not begun by then becomes a dead letter",
    v.opt(v.int(1, QUEUE_TIME_MS_MAX)),
  ),
  timeout_ms: v.described(
    "Timeout of each attempt; default: that of the queue",
    v.opt(v.int(1, 604_800_000)),
  ),
  keep_result_ms: v.described(
    "How long engine::queue::result can return the result; default: not at all",
    v.opt(v.int(1, 604_800_000)),
  ),
};

const ENQUEUE = v.object({
  queue: name,
  function_id: v.described("The function to call", v.text(1, FUNCTION_ID_CHARS_MAX)),
  namespace: v.described("Namespace of the function", v.opt(v.text(1, 200))),
  data: v.described("The payload of the call", v.optional(v.unknown())),
  messageReceiptId: v.described("The id of the receipt; default: a new one", v.opt(id)),
  traceparent: v.described(
    "The trace that the job continues; default: that of this call",
    v.opt(v.text(0, TRACEPARENT_CHARS_MAX)),
  ),
  baggage: v.described("W3C baggage of the call", v.opt(v.text(0, 8_192))),
  ...JOB_OPTIONS,
});

/** For `engine::queue::enqueue`. */
export const EnqueueRequest = v.pipe(
  ENQUEUE,
  v.forward(
    v.check(
      ({ delay_ms, run_at_ms }) => delay_ms === undefined || run_at_ms === undefined,
      "expected delay_ms or run_at_ms, received both",
    ),
    ["delay_ms"],
  ),
);

const ENQUEUE_KEYS: ReadonlySet<string> = new Set(Object.keys(ENQUEUE.entries));

/**
 * A key that is probably a misspelled option, and the one that was meant; `undefined`: there is
 * none. Other unknown keys are ignored, as everywhere: without its delay, a job would run at once.
 */
export function misspelledOption(
  payload: object,
): { readonly key: string; readonly meant: string } | undefined {
  for (const key in payload) {
    if (ENQUEUE_KEYS.has(key)) continue;
    const plain = plainName(key);
    const [meant] = [
      ...[...ENQUEUE_KEYS].filter((known) => plainName(known) === plain),
      ...similarNames(key, ENQUEUE_KEYS),
    ];
    if (meant !== undefined) return { key, meant };
  }
  return undefined;
}

/** A name without unit and style: `delay`, `delayMs` and `delay_ms` are one. */
function plainName(name: string): string {
  return name.slice(0, JOB_ID_CHARS_MAX).toLowerCase().replaceAll("_", "").replace(/ms$/, "");
}

/** A job to enqueue. */
export type EnqueueInput = v.InferOutput<typeof EnqueueRequest>;

/**
 * The payload of `engine::queue::enqueue`. Most jobs have texts beside their data and no option,
 * which costs less to see than to walk through the schema.
 *
 * @throws {EngineError} `deserialization_error`
 */
export function readEnqueue(payload: Json): EnqueueInput {
  if (isUsual(payload)) return payload;
  const function_id = "engine::queue::enqueue";
  const input = fit(function_id, EnqueueRequest, payload);
  const misspelled = misspelledOption(payload as JsonObject);
  if (!misspelled) return input;
  const { key, meant } = misspelled;
  const message = `Failed to deserialize input for ${function_id}: ` +
    `${JSON.stringify(key)} is not an option of a job; did you mean ${meant}?`;
  throw new EngineError("deserialization_error", message);
}

/** Texts of usual jobs with their greatest length. */
const USUAL_TEXTS: ReadonlyMap<string, number> = new Map([
  ["queue", Infinity],
  ["function_id", FUNCTION_ID_CHARS_MAX],
  ["messageReceiptId", JOB_ID_CHARS_MAX],
  ["traceparent", TRACEPARENT_CHARS_MAX],
]);

function isUsual(payload: Json): payload is JsonObject & EnqueueInput {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return false;
  for (const key in payload) {
    if (key === "data") continue;
    const text = payload[key];
    const lengthMax = USUAL_TEXTS.get(key);
    if (lengthMax === undefined || typeof text !== "string" || text.length > lengthMax) {
      return false;
    }
  }
  const { queue, function_id, messageReceiptId } = payload as {
    [Name in keyof EnqueueInput]: Json;
  };
  return typeof queue === "string" && typeof function_id === "string" && function_id !== "" &&
    (messageReceiptId === undefined || messageReceiptId !== "" &&
        (messageReceiptId as string).isWellFormed());
}

/** For functions of one queue. */
export const QueueRequest = v.object({ queue: name });

/** For functions of one dead job. */
export const MessageRequest = v.object({
  ...PLACE,
  message_id: v.described("The id of the dead letter", id),
  data: v.described(
    "Only for redrive_message: replaces the payload that failed",
    v.optional(v.unknown()),
  ),
});

/** For functions of several dead jobs. */
export const MessagesRequest = v.object({
  ...PLACE,
  message_ids: v.described("Ids of dead letters; default: all", v.opt(v.list(id, IDS_MAX))),
});

/** For `engine::queue::peek`. */
export const PeekRequest = v.object({
  queue: name,
  limit: v.described("Maximum number of entries", v.optional(v.int(1, LIMIT_MAX), 20)),
});

/** For `engine::queue::dlq_messages`. */
export const DeadRequest = v.object({
  ...PLACE,
  offset: v.described("Number of entries to skip", v.optional(v.int(0, OFFSET_MAX), 0)),
  limit: v.described("Maximum number of entries", v.optional(v.int(1, LIMIT_MAX), 50)),
});

/** For `engine::durable::publish`. */
export const PublishRequest = v.object({
  topic: v.described("The topic, such as orders.created", v.text(1, 400)),
  data: v.described("The message", v.optional(v.unknown())),
});

/** For `engine::queue::topic_stats`. */
export const TopicRequest = v.object({
  topic: v.described("A topic that has durable subscribers", v.text(1, 400)),
});

/** For `engine::queue::result`. */
export const ResultRequest = v.object({ id: v.described("The id on the receipt of the job", id) });

/** Description and schema of one function. */
export interface QueueFormat {
  readonly description: string;
  readonly request_format: JsonObject;
}

const object = (description: string, schema: v.Schema): QueueFormat => {
  return { description, request_format: v.jsonSchema(schema) };
};

/** Formats by the name after `engine::queue::`. */
export const FORMATS = {
  enqueue: object("Enqueues a job: a call of a function, made later", EnqueueRequest),
  list: object("All queues with their counts", v.object({})),
  stats: object("Counts and settings of one queue", QueueRequest),
  peek: object("Waiting jobs of a queue, the next ones first", PeekRequest),
  pause: object("Pauses a queue: no more jobs start until it is resumed", QueueRequest),
  resume: object("Resumes a paused queue", QueueRequest),
  purge: object("Deletes all waiting jobs of a queue", QueueRequest),
  redrive: object("Retries dead letters", MessagesRequest),
  redrive_message: object("Retries one dead letter", MessageRequest),
  discard: object("Deletes dead letters", MessagesRequest),
  discard_message: object("Deletes one dead letter", MessageRequest),
  list_topics: object("Topics with durable subscribers", v.object({})),
  topic_stats: object("Counts of the queues of a topic's subscribers", TopicRequest),
  dlq_topics: object("Numbers of dead letters by queue", v.object({})),
  dlq_messages: object("Dead letters of a queue, the oldest first", DeadRequest),
  result: object("The outcome of a job whose result is kept", ResultRequest),
} as const;
