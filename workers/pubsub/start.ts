/**
 * Runs `engine-pubsub`: messages by topic to all functions that are subscribed, at most once.
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
import type { EngineHost } from "../kit/define.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { LocalTopics } from "./local_topics.ts";
import { Subscriptions } from "./subscriptions.ts";
import { topicProblem } from "./topic_tree.ts";

const NAME = "engine-pubsub";

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

/** Configuration of `engine-pubsub` with all defaults. */
export interface PubsubConfig {
  readonly max_message_bytes: number;
  /** Calls that a subscribed worker may have to answer. */
  readonly max_waiting_calls: number;
  /** Bytes that a subscribed worker may have to read. */
  readonly max_unsent_bytes: number;
}

/** Publishes messages to subscribed functions. */
export function startPubsub(
  worker: Worker,
  config: PubsubConfig,
  { clock, log, memory, firings }: EngineHost,
): Promise<AsyncDisposable> {
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
}

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
