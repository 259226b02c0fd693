/**
 * `engine-cron`: calls functions at times, once per time, also over a restart of the engine.
 *
 * This file declares the worker. What runs it, `start.ts`, is imported when it starts: an engine
 * without it does not load it.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { CronConfig } from "./start.ts";

const Zone = v.pipe(v.string(), v.check(isZone, "expected a zone such as Europe/Berlin"));
const Config = v.strictObject({ timezone: v.optional(Zone, "UTC") });

/** Calls functions at times. */
export const cron: BuiltinWorker<CronConfig> = {
  name: "engine-cron",
  summary: "Functions at times, by cron expressions",
  kept: "engine::cron::list",
  offers: { functions: ["engine::cron::*"], triggerTypes: ["cron"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  async start(worker, config, host) {
    const { startCron } = await import("./start.ts");
    return await startCron(worker, config, host);
  },
};

function isZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}
