/**
 * `engine-pubsub`: messages by topic to all functions that are subscribed, at most once.
 *
 * This file has the functions and the trigger type; `subscriptions.ts` has the triggers,
 * `local_topics.ts` the way of a message, `topic_tree.ts` the patterns.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { handlerOfText, type MemberText } from "../../sdk/typescript/handlers.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker } from "../kit/define.ts";
import { fit, fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { LocalTopics } from "./local_topics.ts";
import { Subscriptions } from "./subscriptions.ts";
import { topicProblem } from "./topic_tree.ts";

const NAME = "engine-pubsub";
/** Largest message unless the configuration says otherwise. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;
const MESSAGE_BYTES_LEAST = 1_024;
const MESSAGE_BYTES_MOST = 16 * 1024 * 1024;
/** Calls that a subscribed worker may have to answer, unless the configuration says otherwise. */
export const WAITING_CALLS_MAX = 5_000;
const WAITING_CALLS_MOST = 1_000_000;
/** Bytes that a subscribed worker may have to read, unless the configuration says otherwise. */
export const UNSENT_BYTES_MAX = 4 * 1024 * 1024;
const UNSENT_BYTES_MOST = 256 * 1024 * 1024;

const Config = v.strictObject({
  max_message_bytes: v.optional(
    v.int(MESSAGE_BYTES_LEAST, MESSAGE_BYTES_MOST),
    MESSAGE_BYTES_MAX,
  ),
  max_waiting_calls: v.optional(v.int(1, WAITING_CALLS_MOST), WAITING_CALLS_MAX),
  max_unsent_bytes: v.optional(v.int(1, UNSENT_BYTES_MOST), UNSENT_BYTES_MAX),
});

const PublishRequest = v.object({ topic: v.string(), data: v.optional(v.unknown()) });

const PUBLISH_FORMAT = {
  type: "object",
  required: ["topic"],
  properties: {
    topic: { type: "string", description: "The topic, such as orders.created" },
    data: { description: "The message" },
  },
};

const encoder = new TextEncoder();

/** Publishes messages to subscribed functions. */
export const pubsub: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: NAME,
  summary: "Messages by topic to all that are subscribed",
  offers: { functions: ["publish", "engine::pubsub::*"], triggerTypes: ["subscribe"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  start(worker, config, { clock, log, memory, firings }) {
    const started = new AsyncDisposableStack();
    const topics = started.use(new LocalTopics({ clock, memory }));
    const bounds = {
      waitingCalls: config.max_waiting_calls,
      unsentBytes: config.max_unsent_bytes,
    };
    const setup = { name: NAME, worker, topics, firings, bounds, clock, log };
    const subscriptions = started.use(new Subscriptions(setup));
    let published = 0;
    const publish = handlerOfText((payload, textOf, { traceparent }) => {
      const { topic, json } = readMessage(payload, textOf, config.max_message_bytes);
      if (!topics.publish(topic, { json, traceparent })) {
        const message = `${topics.waiting} messages wait for their delivery; publish again later`;
        throw new EngineError("overloaded", message);
      }
      published++;
    });
    worker.registerFunction("publish", publish, {
      description: "Sends a message to all functions that are subscribed to its topic",
      request_format: PUBLISH_FORMAT,
    });
    worker.registerFunction(
      "engine::pubsub::list",
      () => ({ ...subscriptions.list(), published }),
      {
        description: "Lists the subscriptions, with what was sent and dropped",
        request_format: { type: "object", properties: {} },
      },
    );
    registerTriggerType(worker, subscriptions);
    return Promise.resolve(started);
  },
};

/** @throws {EngineError} `topic_not_set`, `deserialization_error`, `VALUE_TOO_LARGE`. */
function readMessage(
  payload: Json,
  textOf: MemberText,
  bytesMax: number,
): { topic: string; json: Uint8Array } {
  const { topic } = fit("publish", PublishRequest, payload);
  if (topic === "") throw new EngineError("topic_not_set", "publish needs a topic");
  const problem = topicProblem(topic);
  if (problem !== undefined) {
    const message = `Failed to deserialize input for publish: topic: ${problem}`;
    throw new EngineError("deserialization_error", message);
  }
  const json = encoder.encode(textOf("data") ?? "null");
  if (json.length <= bytesMax) return { topic, json };
  const message = `A message of ${json.length} bytes is too large; ${bytesMax} are allowed ` +
    `(max_message_bytes of ${NAME})`;
  const details: JsonObject = { bytes: json.length, bytes_max: bytesMax };
  throw new EngineError("VALUE_TOO_LARGE", message, { details });
}

function registerTriggerType(
  worker: Pick<Worker, "registerTriggerType">,
  subscriptions: Subscriptions,
): void {
  worker.registerTriggerType({
    id: "subscribe",
    description: "Runs a function for each message of a topic, or of topics that fit a pattern",
    trigger_request_format: {
      type: "object",
      required: ["topic"],
      properties: {
        topic: {
          type: "string",
          description: "A topic such as orders.created, or a pattern such as orders.* or orders.>",
        },
      },
    },
    call_request_format: { description: "The data that was published" },
  }, {
    registerTrigger: (trigger) => subscriptions.add(trigger),
    unregisterTrigger: ({ id }) => subscriptions.remove(id),
  });
}
