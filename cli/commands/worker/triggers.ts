/**
 * Triggers that do not fire: parked ones, whose type no worker provides, and refused ones.
 *
 * Nothing fails when a worker registers such a trigger, so the commands that start a worker or show
 * it name them, with the engine's reason.
 *
 * @module
 */
import type { WorkerStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import { printable } from "../../render.ts";

/** Such a trigger, as `engine::registered-triggers::list` returns it. */
export interface InactiveTrigger {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly worker_name: string;
  readonly worker_id: string;
  readonly status: "parked" | "refused";
  readonly reason: string;
}

/** Triggers that are asked for, of all workers. */
const ASKED_MAX = 1_000;
/** Triggers that are shown of one worker. */
const SHOWN_MAX = 20;

/** The triggers of a worker that do not fire; none from an engine that does not tell. */
export async function readInactiveTriggers(
  engine: EngineConnection,
  { name, kind, replicas }: WorkerStatus,
): Promise<readonly InactiveTrigger[]> {
  const query = { status: "inactive", limit: ASKED_MAX, include_internal: true };
  const answer = await engine.call("engine::registered-triggers::list", query)
    .catch(() => undefined) as { registered_triggers?: InactiveTrigger[] } | undefined;
  const ids = new Set(replicas.flatMap(({ worker_ids }) => worker_ids));
  const isOwn = (trigger: InactiveTrigger): boolean =>
    kind === "builtin" ? trigger.worker_name === name : ids.has(trigger.worker_id);
  return answer?.registered_triggers?.filter(isOwn) ?? [];
}

/** One line for each trigger that differs from the others: replicas register equal ones. */
export function renderInactiveTriggers(triggers: readonly InactiveTrigger[]): string[] {
  const lines = new Set(
    triggers.map(({ trigger_type, function_id, status, reason }) =>
      printable(`trigger ${trigger_type} of ${function_id} is ${status}: ${reason}`)
    ),
  );
  const more = lines.size - SHOWN_MAX;
  const rest = more > 0 ? [`and ${more} more triggers that do not fire; see: engine doctor`] : [];
  return [...[...lines].slice(0, SHOWN_MAX), ...rest];
}
