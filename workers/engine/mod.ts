/**
 * `engine`: what the engine tells of itself, and what may be asked of it. Always on.
 *
 * @module
 */
import { z } from "zod";
import type { BuiltinWorker } from "../define.ts";
import { Availability } from "./availability.ts";
import { ENGINE_WORKER_NAME } from "./core_functions.ts";
import { offerDirectory } from "./directory.ts";
import { offerSupervision } from "./supervision.ts";

const Config = z.strictObject({});

/** Discovery, supervision, and triggers for what comes and goes. */
export const engine: BuiltinWorker<z.infer<typeof Config>> = {
  name: ENGINE_WORKER_NAME,
  summary: "Which functions and workers there are; starts and stops workers",
  parse: (raw) => Config.parse(raw ?? {}),
  start(worker, _config, host) {
    offerDirectory(worker, host.directory);
    offerSupervision(worker, host.supervision);
    const availability = new Availability(worker, host.directory, host.clock);
    availability.offer(worker);
    const stack = new AsyncDisposableStack();
    stack.defer(() => availability.stop());
    stack.defer(host.onEvent((event) => availability.hear(event)));
    return Promise.resolve(stack);
  },
};
