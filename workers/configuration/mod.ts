/**
 * `engine-configuration`: values with a schema, which running workers follow as they change.
 *
 * This file declares the worker. What runs it, `start.ts`, is imported when it starts: an engine
 * without it does not load it.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { ConfigurationConfig } from "./start.ts";

/** Patterns of variables in the configuration. */
const PATTERNS_MAX = 100;
const Pattern = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/, "expected the name of a variable, with * at its end"),
);
const Config = v.strictObject({
  environment: v.optional(v.list(Pattern, PATTERNS_MAX), []),
  secrets_directory: v.opt(v.text(1)),
});

/** Keeps configurations, and tells workers of their changes. */
export const configuration: BuiltinWorker<ConfigurationConfig> = {
  name: "engine-configuration",
  summary: "Configurations with schemas, secrets and live changes",
  kept: "configuration::get",
  offers: { functions: ["configuration::*"], triggerTypes: ["configuration"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  async start(worker, config, host) {
    const { startConfiguration } = await import("./start.ts");
    return await startConfiguration(worker, config, host);
  },
};
