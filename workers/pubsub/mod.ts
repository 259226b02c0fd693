/**
 * `engine-pubsub`: messages by topic to all functions that are subscribed, at most once.
 *
 * This file declares the worker. What runs it, `start.ts`, is imported when it starts: an engine
 * without it does not load it.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { PubsubConfig } from "./start.ts";

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

/** Publishes messages to subscribed functions. */
export const pubsub: BuiltinWorker<PubsubConfig> = {
  name: "engine-pubsub",
  summary: "Messages by topic to all that are subscribed",
  offers: { functions: ["publish", "engine::pubsub::*"], triggerTypes: ["subscribe"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  async start(worker, config, host) {
    const { startPubsub } = await import("./start.ts");
    return await startPubsub(worker, config, host);
  },
};
