/**
 * Messages of `engine-pubsub` in a worker.
 *
 * @module
 */
import { checkId } from "../arguments.ts";
import { together } from "../implementation.ts";
import type { Handler, Registration, WorkerCalls } from "../options.ts";
import { newId } from "../platform.ts";

/** `Worker.subscribe()` */
export function subscribeTo<Data>(
  worker: WorkerCalls,
  topic: string,
  handler: Handler<Data>,
): Registration {
  checkId("A topic", topic, "orders.created");
  const function_id = `subscription::${newId()}`;
  const options = { description: `Messages of ${topic}`, metadata: { internal: true } };
  const called = worker.registerFunction(function_id, handler, options);
  const trigger = worker.registerTrigger({ type: "subscribe", function_id, config: { topic } });
  return together(trigger.id, [trigger, called]);
}
