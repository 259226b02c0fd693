/**
 * How functions, triggers and workers look to those who ask: the directory's views as wire JSON.
 *
 * Only shapes; who is found and who is hidden is decided in the listings.
 *
 * @module
 */
import type {
  Directory,
  FunctionView,
  TriggerTypeView,
  TriggerView,
  WorkerView,
} from "../../engine/ports/directory.ts";
import { SUMMARY_CHARS_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** A function in a list. */
export function functionSummary(view: FunctionView): JsonObject {
  const { function_id, namespace, worker_name, description, metadata } = view;
  return {
    function_id,
    namespace,
    worker_name,
    ...description !== undefined && { description },
    ...metadata !== undefined && { metadata },
  };
}

/** How many connections offer a function; the engine's own has no other than itself. */
export function replicaCount({ worker_ids }: FunctionView): JsonObject {
  return { replicas: Math.max(1, worker_ids.length) };
}

/** Which connections offer a function, the newest last. */
export function replicaList({ worker_ids }: FunctionView, directory: Directory): JsonObject {
  return {
    workers: worker_ids.map((worker_id) => ({
      worker_id,
      name: directory.worker(worker_id)?.name ?? null,
    })),
  };
}

/** A function with its schemas and the triggers that run it. */
export function functionDetail(view: FunctionView, directory: Directory): JsonObject {
  const { request_schema, response_schema } = view;
  const registered_triggers = directory.triggers()
    .filter((trigger) =>
      trigger.function_id === view.function_id && trigger.namespace === view.namespace
    )
    .sort((a, b) => compare(a.id, b.id))
    .map(({ id, trigger_type, config }) => ({ id, trigger_type, config }));
  return {
    ...functionSummary(view),
    ...request_schema !== undefined && { request_schema },
    ...response_schema !== undefined && { response_schema },
    registered_triggers,
  };
}

/** A trigger type in a list: no schemas. */
export function typeSummary(view: TriggerTypeView): JsonObject {
  const { id, namespace, worker_name, description } = view;
  return { id, namespace, worker_name, description };
}

/** A trigger type with its schemas, `null` where it has none. */
export function typeDetail(view: TriggerTypeView): JsonObject {
  return {
    ...typeSummary(view),
    configuration_schema: view.configuration_schema ?? null,
    request_schema: view.request_schema ?? null,
    response_schema: null, // Nobody can register one.
    instance_count: view.instance_count,
  };
}

/** A trigger in a list. */
export function triggerSummary(view: TriggerView): JsonObject {
  const { id, trigger_type, function_id, worker_name, config } = view;
  return {
    id,
    trigger_type,
    function_id,
    worker_name,
    config,
    config_summary: summarize(config),
  };
}

/** A worker in a list; what is not known is `null`. */
export function workerSummary(view: WorkerView): JsonObject {
  return {
    name: view.name,
    description: view.description,
    version: view.version,
    id: view.id,
    namespace: view.namespace,
    runtime: view.runtime,
    os: view.os,
    status: view.status,
    function_count: view.function_count,
    connected_at_ms: view.connected_at_ms,
    active_invocations: view.active_invocations,
    isolation: view.isolation,
    ip_address: view.ip_address,
  };
}

/** Orders texts the same way on every machine. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The start of a configuration as text. */
function summarize(config: Json): string {
  const characters = [...JSON.stringify(config).slice(0, 2 * SUMMARY_CHARS_MAX + 2)];
  if (characters.length <= SUMMARY_CHARS_MAX) return characters.join("");
  return characters.slice(0, SUMMARY_CHARS_MAX).join("") + "…";
}
