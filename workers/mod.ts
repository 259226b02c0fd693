/**
 * The list of built-in workers: the only place that knows them all.
 *
 * @module
 */
import type { BuiltinWorker } from "./kit/define.ts";
import { configuration } from "./configuration/mod.ts";
import { consoleWorker } from "./console/mod.ts";
import { cron } from "./cron/mod.ts";
import { engine } from "./engine/mod.ts";
import { http } from "./http/mod.ts";
import { observability } from "./observability/mod.ts";
import { pubsub } from "./pubsub/mod.ts";
import { queue } from "./queue/mod.ts";
import { state } from "./state/mod.ts";
import { stream } from "./stream/mod.ts";

/** Every worker that comes with the engine, `engine` first. */
export const builtinWorkers: readonly BuiltinWorker[] = [
  engine,
  observability,
  state,
  queue,
  http,
  pubsub,
  cron,
  stream,
  configuration,
  consoleWorker,
];
