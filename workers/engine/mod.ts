/**
 * `engine`: what the engine tells of itself, and what may be asked of it. Always on.
 *
 * @module
 */
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { BuiltinWorker } from "../kit/define.ts";
import { AvailabilityTriggers, ChangeTriggers } from "./triggers.ts";
import { offerDirectory } from "./directory.ts";
import { Offers } from "./functions.ts";
import { offerSettings, offerSupervision } from "./supervision.ts";

const Config = v.strictObject({});

/** Discovery, supervision, and triggers for what comes and goes. */
export const engine: BuiltinWorker<v.InferOutput<typeof Config>> = {
  name: "engine",
  runsAlways: true,
  summary: "Which functions and workers there are; starts and stops workers",
  parse: (raw) => fitConfig(Config, raw),
  start(worker, _config, host) {
    const offers = new Offers(worker);
    offerDirectory(offers, host.directory);
    offerSupervision(offers, host);
    offerSettings(offers, host);
    const availability = new AvailabilityTriggers(worker, host.directory, host.clock);
    availability.offer(worker);
    const changes = new ChangeTriggers(worker, host.clock);
    changes.offer(worker);
    const stack = new AsyncDisposableStack();
    stack.defer(() => availability.stop());
    stack.defer(() => changes.stop());
    stack.defer(host.onEvent((event) => {
      availability.onEvent(event);
      changes.onEvent(event);
    }));
    return Promise.resolve(stack);
  },
};
