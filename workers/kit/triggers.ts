/**
 * What the providers of built-in trigger types share: reading a trigger's config, and firing.
 *
 * @module
 */
import type { JsonText } from "../../sdk/typescript/json_text.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { problemsOf } from "./fit.ts";
import * as v from "./schema.ts";

/**
 * Parses the config of a trigger; an absent config counts as an empty one.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function fitTrigger<Output>(
  schema: v.Schema<Output>,
  { config, trigger_type }: TriggerInstance,
): Output {
  const read = v.safeParse(schema, config ?? {});
  if (read.success) return read.output;
  const problems = problemsOf(read.issues, config).join("; ");
  const message = `The config of the ${trigger_type} trigger does not fit: ${problems}`;
  throw new EngineError("trigger_registration_failed", message);
}

/** Calls the functions of triggers with one payload, without waiting for results. */
export function fireTriggers(
  worker: Pick<Worker, "trigger">,
  triggers: Iterable<TriggerInstance>,
  payload: Json | JsonText,
): void {
  const action = TriggerAction.Void();
  for (const { function_id, namespace, metadata } of triggers) {
    worker.trigger({
      function_id,
      payload,
      action,
      ...namespace !== undefined && { namespace },
      ...metadata !== undefined && { metadata },
    }).catch(() => {}); // Fails only while the engine is stopping.
  }
}
