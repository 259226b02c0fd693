/**
 * `engine-configuration`: values with a schema, which running workers follow as they change.
 *
 * `functions.ts` has `configuration::*`, `records.ts` the entries on the store, `schema.ts` what a
 * schema says about the parts of a value, `expand.ts` references to variables and files of the
 * engine, `triggers.ts` the trigger type.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { ChangeTriggers } from "../state/triggers.ts";
import { Configurations, registerFunctions } from "./functions.ts";
import { ConfigurationRecords } from "./records.ts";
import {
  CONFIGURATION_CALL_FORMAT,
  CONFIGURATION_TRIGGER_FORMAT,
  CONFIGURATION_TRIGGERS,
  type ConfigurationEvent,
} from "./triggers.ts";

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
export const configuration: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: "engine-configuration",
  summary: "Configurations with schemas, secrets and live changes",
  kept: "configuration::get",
  offers: { functions: ["configuration::*"], triggerTypes: ["configuration"] },
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  start(worker, config, { store, schemas, clock, log, memory, directory, turns }) {
    const started = new AsyncDisposableStack();
    const kind = CONFIGURATION_TRIGGERS;
    const triggers = started.adopt(
      new ChangeTriggers<ConfigurationEvent>({ kind, worker, log, clock, memory }),
      (it) => it.close(),
    );
    const references = {
      environment: config.environment,
      secretsDirectory: config.secrets_directory,
      env: (name: string) => Deno.env.get(name),
      readFile: (path: string) => Deno.readTextFileSync(path),
    };
    registerFunctions(
      worker,
      new Configurations({
        records: new ConfigurationRecords(store),
        schemas,
        turns,
        memory,
        references,
        clock,
        directory,
        changed: (event) => triggers.fire(event, JSON.stringify(event).length),
      }),
    );
    worker.registerTriggerType({
      id: kind.type,
      description: "Runs a function when a configuration is registered or changes",
      trigger_request_format: CONFIGURATION_TRIGGER_FORMAT,
      call_request_format: CONFIGURATION_CALL_FORMAT,
    }, {
      registerTrigger: (trigger) => triggers.add(trigger),
      unregisterTrigger: ({ id }) => triggers.remove(id),
    });
    return Promise.resolve(started);
  },
};
