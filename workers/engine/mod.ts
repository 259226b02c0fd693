/**
 * `engine`: discovery, supervision and configuration as functions and triggers. Always running.
 *
 * @module
 */
import type { BuiltinWorker } from "../kit/define.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { registerChannels } from "./channels.ts";
import { registerDirectory } from "./directory.ts";
import { registerEngines, workersElsewhere } from "./engines.ts";
import { CheckedFunctions } from "./functions.ts";
import { registerStateFile } from "./state_file.ts";
import { registerSettings, registerSupervision } from "./supervision.ts";
import { EngineTriggers } from "./triggers.ts";

const Config = v.strictObject({});

/** Discovery, supervision, and triggers for changes in the engine. */
export const engine: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: "engine",
  runsAlways: true,
  summary: "Which functions and workers there are; starts and stops workers",
  parse: (raw) => fitConfig(Config, raw),
  configSchema: () => v.jsonSchema(Config),
  start(worker, _config, host) {
    const registry = new CheckedFunctions(worker);
    const { directory, engines, supervision } = host;
    registerDirectory(registry, directory, (query) => workersElsewhere(worker, engines, query));
    registerEngines({ worker, registry, directory, engines, supervision });
    registerChannels(registry, host.channels);
    registerSupervision(registry, host);
    registerSettings(registry, host);
    registerStateFile(registry, host);
    const dropped = (): void =>
      host.log.warn("too many changes wait for their triggers; dropped one");
    const triggers = new EngineTriggers(worker, host.directory, host.clock, dropped);
    triggers.register(worker);
    const stack = new AsyncDisposableStack();
    stack.defer(() => triggers.stop());
    stack.defer(host.onEvent((event) => triggers.onEvent(event)));
    return Promise.resolve(stack);
  },
};
