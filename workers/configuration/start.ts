/**
 * Runs `engine-configuration`: values with a schema, which running workers follow as they change.
 *
 * `functions.ts` has `configuration::*`, `records.ts` the entries on the store, `schema.ts` what a
 * schema says about the parts of a value, `expand.ts` references to variables and files of the
 * engine, `triggers.ts` the trigger type.
 *
 * @module
 */
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { EngineHost } from "../kit/define.ts";
import { ChangeTriggers } from "../state/triggers.ts";
import { Configurations, registerFunctions } from "./functions.ts";
import { ConfigurationRecords } from "./records.ts";
import {
  CONFIGURATION_CALL_FORMAT,
  CONFIGURATION_TRIGGER_FORMAT,
  CONFIGURATION_TRIGGERS,
  type ConfigurationEvent,
} from "./triggers.ts";

/** Configuration of `engine-configuration` with all defaults. */
export interface ConfigurationConfig {
  /** Names of variables that values may refer to; `*` at an end stands for any. */
  readonly environment: readonly string[];
  /** Where the files are that values may refer to. */
  readonly secrets_directory?: string | undefined;
}

/** Keeps configurations, and sends their changes to workers. */
export function startConfiguration(
  worker: Worker,
  config: ConfigurationConfig,
  { store, schemas, clock, log, memory, directory, turns }: EngineHost,
): Promise<AsyncDisposable> {
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
}
