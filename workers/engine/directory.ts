/**
 * Registers the discovery functions: functions, trigger types, triggers and workers.
 *
 * Every answer is read from the engine's directory at the time of the call; nothing is cached here.
 *
 * @module
 */
import {
  type Directory,
  type FunctionView,
  SIMILAR_IDS_MAX,
  type TriggerTypeView,
  type TriggerView,
  type WorkerView,
} from "../../engine/ports/directory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import type { CheckedFunctions } from "./functions.ts";

/** Ids in one `engine::functions::info`. */
const INFO_IDS_MAX = 32;
/** Characters of `config_summary`. */
const SUMMARY_CHARS_MAX = 80;

/** Engine functions that listings include by default. */
const LISTED_PREFIXES = ["engine::queue::", "engine::durable::"];

const Text = v.nullish(v.string());
const ListTypes = v.object({
  search: Text,
  prefix: Text,
  worker: Text,
  include_internal: v.nullish(v.boolean()),
});
const ListFunctions = v.object({
  ...ListTypes.entries,
  workers: v.nullish(v.array(v.string())),
  include_replicas: v.nullish(v.boolean()),
});
const FunctionInfo = v.object({
  function_id: Text,
  function_ids: v.nullish(v.array(v.string())),
  namespace: Text,
  include_replicas: v.nullish(v.boolean()),
});
const TypeInfo = v.object({ id: v.text(1), namespace: Text });
const ListTriggers = v.object({
  search: Text,
  trigger_type: Text,
  function_id: Text,
  worker: Text,
  include_internal: v.nullish(v.boolean()),
});
const TriggerInfo = v.object({ id: v.text(1) });
const ListWorkers = v.object({ search: Text, runtime: Text, status: Text });
const WorkerInfo = v.object({ name: v.text(1), namespace: Text });

/** Registers the discovery functions. */
export function registerDirectory(registry: CheckedFunctions, directory: Directory): void {
  registerFunctionQueries(registry, directory);
  registry.add("engine::triggers::list", "Available trigger types", ListTypes, (query) => {
    return { triggers: listTypes(directory, query).map(typeSummary) };
  });
  registry.add("engine::triggers::info", "Schemas of a trigger type", TypeInfo, (query) => {
    const view = directory.triggerType(query.namespace ?? DEFAULT_NAMESPACE, query.id);
    const ids = () => directory.triggerTypes().map(({ id }) => id);
    return typeDetail(view ?? notFound("Trigger type", query.id, ids()));
  });
  const registered = "engine::registered-triggers";
  registry.add(`${registered}::list`, "Registered triggers", ListTriggers, (query) => {
    return { registered_triggers: listTriggers(directory, query) };
  });
  registry.add(`${registered}::info`, "A trigger, its type and function", TriggerInfo, ({ id }) => {
    return describeTrigger(directory, id, registry);
  });
  registry.add("engine::workers::list", "Connected workers", ListWorkers, (query) => {
    return { workers: listWorkers(directory, query) };
  });
  registry.add("engine::workers::info", "A worker and what it offers", WorkerInfo, (query) => {
    return describeWorker(directory, query.name, query.namespace ?? undefined);
  });
}

function registerFunctionQueries(registry: CheckedFunctions, directory: Directory): void {
  const list = "Available functions, sorted by id";
  registry.add("engine::functions::list", list, ListFunctions, (query) => {
    const views = listFunctions(directory, query);
    if (!query.include_replicas) return { functions: views.map(functionSummary) };
    return {
      functions: views.map((view) => ({ ...functionSummary(view), ...replicaCount(view) })),
    };
  });
  const info = "Schemas and triggers of functions";
  registry.add("engine::functions::info", info, FunctionInfo, (query) => {
    return describeFunctions(directory, query, registry);
  });
}

/** The functions that match a query, sorted by id, then namespace. */
export function listFunctions(
  directory: Directory,
  query: v.InferOutput<typeof ListFunctions>,
): FunctionView[] {
  const { search, prefix, worker, workers, include_internal } = query;
  const names = workers ?? (worker === undefined || worker === null ? undefined : [worker]);
  return directory.functions()
    .filter((view) =>
      (include_internal || !isHidden(view)) &&
      (!prefix || view.function_id.startsWith(prefix)) &&
      (!names || names.includes(view.worker_name)) &&
      contains(search, view.function_id, view.description)
    )
    .sort((a, b) => compare(a.function_id, b.function_id) || compare(a.namespace, b.namespace));
}

function describeFunctions(
  directory: Directory,
  query: v.InferOutput<typeof FunctionInfo>,
  registry: CheckedFunctions,
): Json {
  const { function_id, function_ids, include_replicas } = query;
  const about = (view: FunctionView): JsonObject => ({
    ...detail(view, directory, registry),
    ...include_replicas && replicaList(view, directory),
  });
  const namespace = query.namespace ?? DEFAULT_NAMESPACE;
  if (function_id && function_ids) throw invalid("Give function_id or function_ids, not both");
  if (function_id) {
    const view = directory.function(namespace, function_id);
    const ids = () => directory.functions().map((each) => each.function_id);
    return about(view ?? notFound("Function", function_id, ids()));
  }
  if (!function_ids) throw invalid("Give function_id or function_ids");
  if (function_ids.length > INFO_IDS_MAX) {
    throw invalid(`function_ids has ${function_ids.length} ids, at most ${INFO_IDS_MAX} are taken`);
  }
  const functions = function_ids.map((id): JsonObject => {
    const view = directory.function(namespace, id);
    if (view) return about(view);
    return { function_id: id, error: { code: "not_found", message: `Function ${id} not found` } };
  });
  return { functions };
}

/** Adds the schema of functions of this worker, which do not register one. */
function detail(view: FunctionView, directory: Directory, registry: CheckedFunctions): JsonObject {
  const request_schema = view.builtin ? registry.schemaOf(view.function_id) : undefined;
  return functionDetail(request_schema ? { ...view, request_schema } : view, directory);
}

function listTypes(
  directory: Directory,
  query: v.InferOutput<typeof ListTypes>,
): TriggerTypeView[] {
  const { search, prefix, worker, include_internal } = query;
  return directory.triggerTypes()
    .filter((view) =>
      (include_internal || !isEngines(view.id)) &&
      (!prefix || view.id.startsWith(prefix)) &&
      (!worker || view.worker_name === worker) &&
      contains(search, view.id, view.description)
    )
    .sort((a, b) => compare(a.id, b.id) || compare(a.namespace, b.namespace));
}

function listTriggers(
  directory: Directory,
  query: v.InferOutput<typeof ListTriggers>,
): JsonObject[] {
  const { search, trigger_type, function_id, worker, include_internal } = query;
  return directory.triggers()
    .filter((view) =>
      (include_internal || !runsHidden(directory, view.namespace, view.function_id)) &&
      (!trigger_type || view.trigger_type === trigger_type) &&
      (!function_id || view.function_id === function_id) &&
      (!worker || view.worker_name === worker) &&
      contains(search, view.id, view.trigger_type, view.function_id)
    )
    .sort((a, b) => compare(a.trigger_type, b.trigger_type) || compare(a.id, b.id))
    .map(triggerSummary);
}

function describeTrigger(directory: Directory, id: string, registry: CheckedFunctions): JsonObject {
  const view = directory.trigger(id) ?? notFound("Trigger", id, []);
  const type = directory.triggerType(view.trigger_namespace, view.trigger_type);
  const target = directory.function(view.namespace, view.function_id);
  return {
    ...triggerSummary(view),
    ...view.metadata !== undefined && { metadata: view.metadata },
    trigger: type ? typeDetail(type) : null,
    function: target ? detail(target, directory, registry) : null,
  };
}

function listWorkers(directory: Directory, query: v.InferOutput<typeof ListWorkers>): JsonObject[] {
  const { search, runtime, status } = query;
  return directory.workers()
    .filter((view) =>
      (view.announced || view.builtin) &&
      (!runtime || view.runtime === runtime) &&
      (!status || view.status === status) &&
      contains(search, view.name, view.description)
    )
    .sort((a, b) =>
      compare(a.name ?? "", b.name ?? "") || a.connected_at_ms - b.connected_at_ms ||
      compare(a.id, b.id)
    )
    .map(workerSummary);
}

function describeWorker(
  directory: Directory,
  name: string,
  namespace: string | undefined,
): JsonObject {
  const all = directory.workers().filter((view) => view.announced || view.builtin);
  const view = all
    .filter((each) => each.name === name && (!namespace || each.namespace === namespace))
    .reduce<(typeof all)[number] | undefined>((last, each) => {
      return last && last.connected_at_ms > each.connected_at_ms ? last : each;
    }, undefined) ?? notFound("Worker", name, all.map((each) => each.name ?? ""));
  const { id } = view;
  return {
    worker: {
      ...workerSummary(view),
      ...view.pid !== null && { pid: view.pid },
      internal: view.builtin,
    },
    functions: directory.functions().filter(({ worker_ids }) => worker_ids.includes(id))
      .sort((a, b) => compare(a.function_id, b.function_id)).map(functionSummary),
    trigger_types: directory.triggerTypes().filter(({ worker_id }) => worker_id === id)
      .sort((a, b) => compare(a.id, b.id)).map(typeSummary),
    registered_triggers: directory.triggers().filter(({ worker_id }) => worker_id === id)
      .sort((a, b) => compare(a.id, b.id)).map(triggerSummary),
  };
}

function isHidden(view: FunctionView): boolean {
  return view.internal || isEngines(view.function_id);
}

function runsHidden(directory: Directory, namespace: string, function_id: string): boolean {
  return isEngines(function_id) || directory.function(namespace, function_id)?.internal === true;
}

function isEngines(id: string): boolean {
  return id.startsWith("engine::") && !LISTED_PREFIXES.some((prefix) => id.startsWith(prefix));
}

/** Whether one of the texts contains the searched one, ignoring case. */
function contains(
  search: string | null | undefined,
  ...texts: (string | null | undefined)[]
): boolean {
  if (!search) return true;
  const wanted = search.toLowerCase();
  return texts.some((text) => text?.toLowerCase().includes(wanted));
}

/** @throws {EngineError} `NOT_FOUND`, with similar ids. */
function notFound(kind: string, id: string, known: readonly string[]): never {
  const similar = similarTo(id, known);
  const options = similar.length > 0 ? { details: { similar } } : {};
  throw new EngineError("NOT_FOUND", `${kind} ${id} not found`, options);
}

/** Ids that share their last segment or a part of it. */
function similarTo(id: string, known: readonly string[]): string[] {
  const wanted = id.toLowerCase();
  const last = wanted.split("::").at(-1)!;
  return [...new Set(known)].filter((each) => {
    const other = each.toLowerCase();
    if (other === "") return false;
    return other.includes(last) || wanted.includes(other.split("::").at(-1)!);
  }).sort(compare).slice(0, SIMILAR_IDS_MAX);
}

function invalid(message: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", message);
}

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

/** Number of replicas of a function; 1 for the engine's own. */
function replicaCount({ worker_ids }: FunctionView): JsonObject {
  return { replicas: Math.max(1, worker_ids.length) };
}

/** The connections that offer a function, the newest last. */
function replicaList({ worker_ids }: FunctionView, directory: Directory): JsonObject {
  return {
    workers: worker_ids.map((worker_id) => ({
      worker_id,
      name: directory.worker(worker_id)?.name ?? null,
    })),
  };
}

/** A function with its schemas and the triggers that run it. */
function functionDetail(view: FunctionView, directory: Directory): JsonObject {
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
function typeSummary(view: TriggerTypeView): JsonObject {
  const { id, namespace, worker_name, description } = view;
  return { id, namespace, worker_name, description };
}

/** A trigger type with its schemas, `null` where it has none. */
function typeDetail(view: TriggerTypeView): JsonObject {
  return {
    ...typeSummary(view),
    configuration_schema: view.configuration_schema ?? null,
    request_schema: view.request_schema ?? null,
    response_schema: null, // The wire has no field for one.
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

/** A worker in a list; unknown members are `null`. */
function workerSummary(view: WorkerView): JsonObject {
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

/** Compares by code units, independent of the locale. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The start of a configuration as text. */
function summarize(config: Json): string {
  const characters = [...JSON.stringify(config).slice(0, 2 * SUMMARY_CHARS_MAX + 2)];
  if (characters.length <= SUMMARY_CHARS_MAX) return characters.join("");
  return characters.slice(0, SUMMARY_CHARS_MAX).join("") + "…";
}
