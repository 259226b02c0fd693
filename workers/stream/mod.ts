/**
 * `engine-stream`: items by stream and group, stored, with an event for every change.
 *
 * This file declares the worker. What runs it, `start.ts`, is imported when it starts: an engine
 * without it does not load it.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { parseStreamConfig, type StreamConfig, streamConfigSchema } from "./config.ts";

/** Keeps items, and passes their changes on. */
export const stream: BuiltinWorker<StreamConfig> = {
  name: "engine-stream",
  summary: "Items by stream and group, with live events",
  kept: "stream::get",
  offers: {
    functions: ["stream::*", "engine::stream::stats"],
    triggerTypes: ["stream", "stream:join", "stream:leave"],
  },
  parse: parseStreamConfig,
  configSchema: streamConfigSchema,
  async start(worker, config, host) {
    const { startStream } = await import("./start.ts");
    return await startStream(worker, config, host);
  },
  async startElsewhere(worker, config, host) {
    const { startElsewhere } = await import("./start.ts");
    return await startElsewhere(worker, config, host);
  },
};
