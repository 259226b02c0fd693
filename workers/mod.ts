/**
 * The list of built-in workers: the only place that knows them all.
 *
 * @module
 */
import type { BuiltinWorker } from "./kit/define.ts";
import { consoleWorker } from "./console/mod.ts";
import { engine } from "./engine/mod.ts";
import { http } from "./http/mod.ts";
import { observability } from "./observability/mod.ts";
import { state } from "./state/mod.ts";

/** Every worker that comes with the engine, `engine` first. */
export const builtinWorkers: readonly BuiltinWorker[] = [
  engine,
  observability,
  state,
  http,
  consoleWorker,
];
