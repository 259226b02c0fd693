/**
 * `engine-queue`: jobs that are kept on disk and given to functions, at least once.
 *
 * This file declares the worker. What runs it, `start.ts`, is imported when it starts: an engine
 * without it does not load it.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { Config, type QueuesConfig } from "./settings.ts";

/** Keeps jobs in the engine's store and gives them to functions. */
export const queue: BuiltinWorker<QueuesConfig> = {
  name: "engine-queue",
  summary: "Background jobs: durable queues with retries",
  kept: "engine::queue::enqueue",
  offers: {
    functions: ["engine::queue::*", "engine::durable::publish"],
    triggerTypes: ["durable:subscriber", "queue"],
  },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  async start(worker, config, host) {
    const { startQueue } = await import("./start.ts");
    return await startQueue(worker, config, host);
  },
};
