/**
 * Registers the discovery functions: functions, trigger types, triggers and workers.
 *
 * Every answer is read from the engine's directory at the time of the call; nothing is cached here.
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
import { SIMILAR_NAMES_MAX } from "../../sdk/typescript/wire/similar.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import type { CheckedFunctions } from "./functions.ts";
import {
  charsOf,
  compare,
  DESCRIPTION_CHARS_MAX,
  FILTER_VALUES_MAX,
  keysOf,
  type Page,
  pageAnswer,
  type PageBounds,
  PageFields,
  pageOf,
  pageOfSorted,
  SEARCH_CHARS_MAX,
  VALUE_CHARS_MAX,
} from "./pages.ts";
import { invocationShown, isOperator, servedBy } from "./served_by.ts";

/** Ids in one `engine::functions::info`. */
const INFO_IDS_MAX = 32;
/** Ids of a group, and of all, among which one like an unknown id is searched. */
const SIMILAR_SEARCHED_MAX = 1_000;
/** Characters of `config_summary`. */
const SUMMARY_CHARS_MAX = 80;
/** Of the triggers in the description of a function. */
const DETAIL_BOUNDS: PageBounds = { entries: 1_000, chars: 256 * 1024 };
/** Digits of a time in milliseconds since 1970. */
const TIME_DIGITS = 16;

/** Engine functions that listings include by default. */
const LISTED_PREFIXES = ["engine::queue::", "engine::durable::"];

/** A text that may be left out, with what it is. */
const text = (meaning: string) => v.described(meaning, v.nullish(v.string()));
/** The same for a boolean, whose default is `false`. */
const flag = (meaning: string) => v.described(`${meaning}. Default: false`, v.nullish(v.boolean()));
const SEARCHED = `at most ${SEARCH_CHARS_MAX} characters, case is ignored`;
const IDS_AND_DESCRIPTIONS = text(
  `Entries whose id or description contains this text; ${SEARCHED}. Default: all`,
);
const PREFIX = text("Entries whose id begins with this text. Default: all");
const OF_WORKER = text("Entries of the worker with this name. Default: of all workers");
const NAMESPACE = text("Namespace of the id. Default: default");

const ListTypes = v.object({
  ...PageFields,
  search: IDS_AND_DESCRIPTIONS,
  prefix: PREFIX,
  worker: OF_WORKER,
  include_internal: flag("Includes functions of the engine itself, and those marked internal"),
});
const ListFunctions = v.object({
  ...ListTypes.entries,
  workers: v.described(
    `Functions of any of these workers, ${FILTER_VALUES_MAX} at most. Default: of all workers`,
    v.nullish(v.array(v.string())),
  ),
  include_replicas: flag("Also how many workers offer each function, in replicas"),
});
const FunctionInfo = v.object({
  function_id: text("The function; either this or function_ids"),
  function_ids: v.described(
    `Several functions, ${INFO_IDS_MAX} at most; the answer is then in functions`,
    v.nullish(v.array(v.string())),
  ),
  namespace: NAMESPACE,
  include_replicas: flag("Also the workers that offer the function, in replicas"),
});
const TypeInfo = v.object({
  id: v.described("The trigger type, such as http", v.text(1)),
  namespace: NAMESPACE,
});
const ListTriggers = v.object({
  ...PageFields,
  search: text(`Triggers whose id, type or function contains this text; ${SEARCHED}. Default: all`),
  trigger_type: text("Triggers of this type, such as http. Default: of all types"),
  function_id: text("Triggers of this function. Default: of all functions"),
  worker: text("Triggers that the worker with this name registered. Default: of all workers"),
  status: v.described(
    "active: it fires; parked: no worker provides its type; refused: its provider refused it; " +
      "inactive: parked or refused. Default: all",
    v.nullish(v.picklist(["active", "parked", "refused", "inactive"])),
  ),
  include_internal: flag("Also triggers of functions that are internal"),
});
const TriggerInfo = v.object({ id: v.described("Id of the trigger", v.text(1)) });
const ListWorkers = v.object({
  ...PageFields,
  search: text(`Workers whose name or description contains this text; ${SEARCHED}. Default: all`),
  runtime: text("Workers of this runtime, such as node or python. Default: of all"),
  status: text("connected, draining, or suspect: those that do not answer pings. Default: all"),
  local: flag("Only the workers of this engine, not those of the others of its cluster"),
});
const WorkerInfo = v.object({
  name: v.described(
    "Name of the worker; of several connections the newest is described",
    v.text(1),
  ),
  namespace: text("Namespace that the worker is in. Default: every namespace"),
});

/** Lists the workers of other engines; those that do not answer are left out. */
export type WorkersElsewhere = (query: JsonObject) => Promise<JsonObject[]>;

/** Registers the discovery functions; `elsewhere`: see {@linkcode WorkersElsewhere}. */
export function registerDirectory(
  registry: CheckedFunctions,
  all: Directory,
  elsewhere: WorkersElsewhere = () => Promise.resolve([]),
): void {
  registerFunctionQueries(registry, all);
  const types = "Available trigger types, in pages";
  registry.addQuery("engine::triggers::list", types, ListTypes, (query) => {
    return pageAnswer("triggers", listTypes(all, query));
  });
  registry.addQuery("engine::triggers::info", "Schemas of a trigger type", TypeInfo, (query) => {
    const view = all.triggerType(query.namespace ?? DEFAULT_NAMESPACE, query.id);
    const ids = () => all.triggerTypes().map(({ id }) => id);
    return typeDetail(view ?? notFound("Trigger type", query.id, ids()));
  });
  const registered = "engine::registered-triggers";
  const triggers = "Registered triggers, in pages";
  registry.addQuery(`${registered}::list`, triggers, ListTriggers, (query, { caller }) => {
    return pageAnswer("registered_triggers", listTriggers(seenBy(all, caller), query));
  });
  const trigger = "A trigger, its type and function";
  registry.addQuery(`${registered}::info`, trigger, TriggerInfo, ({ id }, { caller }) => {
    return describeTrigger(seenBy(all, caller), id, registry);
  });
  const workers = "Connected workers, in pages";
  registry.addQuery("engine::workers::list", workers, ListWorkers, async (query) => {
    const page = listWorkers(all, query);
    const { local, cursor, search, runtime, status } = query;
    // Those of other engines come with the first page, behind its own.
    const filter = { search, runtime, status } as JsonObject;
    const others = local || cursor ? [] : await elsewhere(filter);
    return pageAnswer("workers", { ...page, entries: [...page.entries, ...others] });
  });
  registry.addQuery(
    "engine::workers::info",
    "A worker and what it offers",
    WorkerInfo,
    (query, { caller }) => {
      const directory = seenBy(all, caller);
      return describeWorker(directory, query.name, query.namespace ?? undefined);
    },
  );
}

function registerFunctionQueries(registry: CheckedFunctions, all: Directory): void {
  const list = "Available functions, sorted by id, in pages";
  registry.addQuery("engine::functions::list", list, ListFunctions, (query, { caller }) => {
    return pageAnswer("functions", listFunctions(seenBy(all, caller), query));
  });
  const info = "Schemas and triggers of functions";
  registry.addQuery("engine::functions::info", info, FunctionInfo, (query, { caller }) => {
    const seen = seenBy(all, caller);
    return describeFunctions(seen, query, registry, isOperator(all, caller));
  });
}

/** What a caller may see: functions that it may call, and the triggers of those. */
function seenBy(all: Directory, caller: string | undefined): Directory {
  const isVisible = all.visibleTo(caller);
  if (!isVisible) return all;
  const isSeen = (view: FunctionView | TriggerView): boolean =>
    isVisible(view.function_id, view.namespace);
  return {
    functions: () => all.functions().filter(isSeen),
    builtinFunctions: () => all.builtinFunctions().filter(isSeen),
    functionsAfter: (id, namespace) =>
      Iterator.from(all.functionsAfter(id, namespace)).filter(isSeen),
    functionsMark: () => all.functionsMark(),
    function: (namespace, id) => isVisible(id, namespace) ? all.function(namespace, id) : undefined,
    isInternal: (namespace, id) => all.isInternal(namespace, id),
    visibleTo: () => isVisible,
    functionsOf: (worker_id) => all.functionsOf(worker_id).filter(isSeen),
    triggerTypes: () => all.triggerTypes(),
    triggerType: (namespace, id) => all.triggerType(namespace, id),
    triggers: () => all.triggers().filter(isSeen),
    trigger: (id) => [all.trigger(id)].find((view) => view && isSeen(view)),
    workers: () => all.workers(),
    worker: (worker_id) => all.worker(worker_id),
  };
}

/** The functions that match a query, sorted by id, then namespace. */
export function listFunctions(
  directory: Directory,
  query: v.InferOutput<typeof ListFunctions>,
  bounds?: PageBounds,
): Page {
  const { search, prefix, worker, workers, include_internal, include_replicas } = query;
  const names = workers ?? (worker === undefined || worker === null ? undefined : [worker]);
  const hasText = searchFor(search);
  const isListed = (view: FunctionView): boolean =>
    (include_internal || !isHidden(view)) &&
    (!prefix || view.function_id.startsWith(prefix)) &&
    (!names || names.includes(view.worker_name)) &&
    hasText(view.function_id, view.description);
  const [after = "", afterNamespace = ""] = keysOf(query);
  const views = Iterator.from(directory.functionsAfter(after, afterNamespace)).filter(isListed);
  const entryOf = (view: FunctionView): JsonObject => ({
    ...functionSummary(view),
    ...contendersOf(view, directory),
    ...servedBy(view, directory),
    ...include_replicas && replicaCount(view),
  });
  return pageOfSorted(views, functionKeys, entryOf, query, bounds);
}

function functionKeys({ function_id, namespace }: FunctionView): string[] {
  return [function_id, namespace];
}

function describeFunctions(
  directory: Directory,
  query: v.InferOutput<typeof FunctionInfo>,
  registry: CheckedFunctions,
  showsUrls: boolean,
): Json {
  const { function_id, function_ids, include_replicas } = query;
  const wanted = new Set(function_ids ?? [function_id]);
  const triggers = directory.triggers().filter((trigger) => wanted.has(trigger.function_id));
  const about = (view: FunctionView): JsonObject => ({
    ...detail(view, triggers, registry),
    ...contendersOf(view, directory),
    ...servedBy(view, directory),
    ...showsUrls && invocationShown(view),
    ...include_replicas && replicaList(view, directory),
  });
  const namespace = query.namespace ?? DEFAULT_NAMESPACE;
  if (function_id && function_ids) throw invalid("Give function_id or function_ids, not both");
  if (function_id) {
    const view = directory.function(namespace, function_id);
    return about(view ?? notFound("Function", function_id, idsNear(directory, function_id)));
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

/** Ids of the same group, and the first of all: a question for what is not there costs little. */
function idsNear(directory: Directory, function_id: string): string[] {
  const group = function_id.slice(0, function_id.lastIndexOf("::") + 1);
  return [group, ""].flatMap((after) =>
    Array.from(
      Iterator.from(directory.functionsAfter(after, "")).take(SIMILAR_SEARCHED_MAX),
      (view) => view.function_id,
    )
  );
}

/** Adds the schema of functions of this worker, which do not register one. */
function detail(
  view: FunctionView,
  triggers: readonly TriggerView[],
  registry: CheckedFunctions,
): JsonObject {
  const request_schema = view.builtin ? registry.schemaOf(view.function_id) : undefined;
  return functionDetail(request_schema ? { ...view, request_schema } : view, triggers);
}

function listTypes(
  directory: Directory,
  query: v.InferOutput<typeof ListTypes>,
): Page {
  const { search, prefix, worker, include_internal } = query;
  const hasText = searchFor(search);
  const views = directory.triggerTypes().filter((view) =>
    (include_internal || !isEngines(view.id)) &&
    (!prefix || view.id.startsWith(prefix)) &&
    (!worker || view.worker_name === worker) &&
    hasText(view.id, view.description)
  );
  return pageOf(views, typeKeys, typeSummary, query);
}

function typeKeys({ id, namespace }: TriggerTypeView): string[] {
  return [id, namespace];
}

function listTriggers(
  directory: Directory,
  query: v.InferOutput<typeof ListTriggers>,
): Page {
  const { search, trigger_type, function_id, worker, status, include_internal } = query;
  const hasText = searchFor(search);
  const views = directory.triggers().filter((view) =>
    (!trigger_type || view.trigger_type === trigger_type) &&
    (!function_id || view.function_id === function_id) &&
    (!worker || view.worker_name === worker) &&
    (!status || statusOf(view) === status || (status === "inactive" && view.reason !== null)) &&
    hasText(view.id, view.trigger_type, view.function_id) &&
    (include_internal || !runsHidden(directory, view.namespace, view.function_id))
  );
  return pageOf(views, triggerKeys, triggerSummary, query);
}

function statusOf({ state }: TriggerView): "active" | "parked" | "refused" {
  return state === "offered" ? "active" : state;
}

function triggerKeys({ trigger_type, id }: TriggerView): string[] {
  return [trigger_type, id];
}

function describeTrigger(directory: Directory, id: string, registry: CheckedFunctions): JsonObject {
  const view = directory.trigger(id) ?? notFound("Trigger", id, []);
  const type = directory.triggerType(view.trigger_namespace, view.trigger_type);
  const target = directory.function(view.namespace, view.function_id);
  return {
    ...triggerSummary(view),
    ...view.metadata !== undefined && { metadata: view.metadata },
    trigger: type ? typeDetail(type) : null,
    function: target ? detail(target, directory.triggers(), registry) : null,
  };
}

function listWorkers(directory: Directory, query: v.InferOutput<typeof ListWorkers>): Page {
  const { search, runtime, status } = query;
  const hasText = searchFor(search);
  const views = directory.workers().filter((view) =>
    (view.announced || view.builtin) && view.engine === undefined &&
    (!runtime || view.runtime === runtime) &&
    (!status || view.status === status || (status === "suspect" && view.suspect)) &&
    hasText(view.name, view.description)
  );
  return pageOf(views, workerKeys, workerSummary, query);
}

function workerKeys({ name, connected_at_ms, id }: WorkerView): string[] {
  return [name ?? "", String(connected_at_ms).padStart(TIME_DIGITS, "0"), id];
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
  const entryOf = (each: FunctionView): JsonObject => ({
    ...functionSummary(each),
    ...contendersOf(each, directory),
  });
  return {
    worker: {
      ...workerSummary(view),
      ...view.pid !== null && { pid: view.pid },
      internal: view.builtin,
    },
    functions: pageOf(directory.functionsOf(id), functionKeys, entryOf).entries,
    trigger_types: pageOf(
      directory.triggerTypes().filter(({ worker_id }) => worker_id === id),
      typeKeys,
      typeSummary,
    ).entries,
    registered_triggers: pageOf(
      directory.triggers().filter(({ worker_id }) => worker_id === id),
      (view) => [view.id],
      triggerSummary,
    ).entries,
  };
}

function isHidden(view: FunctionView): boolean {
  return view.internal || isEngines(view.function_id);
}

function runsHidden(directory: Directory, namespace: string, function_id: string): boolean {
  return isEngines(function_id) || directory.isInternal(namespace, function_id);
}

function isEngines(id: string): boolean {
  return id.startsWith("engine::") && !LISTED_PREFIXES.some((prefix) => id.startsWith(prefix));
}

/** Whether one of some texts contains the searched one, ignoring case. */
type HasText = (...texts: (string | null | undefined)[]) => boolean;

/** Searches ids whole, and as much of a description as a list shows. */
function searchFor(search: string | null | undefined): HasText {
  if (!search) return () => true;
  const wanted = search.toLowerCase();
  return (...texts) =>
    texts.some((text) => text?.slice(0, DESCRIPTION_CHARS_MAX).toLowerCase().includes(wanted));
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
  }).sort(compare).slice(0, SIMILAR_NAMES_MAX);
}

function invalid(message: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", message);
}

/** The other engine of a row; nothing for one of this engine. */
function engineOf({ engine }: { readonly engine?: string }): JsonObject {
  return engine === undefined ? {} : { engine };
}

/** A function in a list. */
export function functionSummary(view: FunctionView): JsonObject {
  const { function_id, namespace, worker_name, description, metadata } = view;
  return {
    function_id,
    namespace,
    worker_name,
    ...engineOf(view),
    ...description !== undefined && { description },
    ...metadata !== undefined && { metadata },
  };
}

/** The names under which a function is offered, if they differ; access rules hide workers. */
function contendersOf({ contenders = [] }: FunctionView, directory: Directory): JsonObject {
  if (contenders.length === 0 || isLimited(directory)) return {};
  return { contenders: [...contenders] };
}

/** Whether access rules limit what the caller sees; `directory` is what it sees. */
function isLimited(directory: Directory): boolean {
  return directory.visibleTo(undefined) !== undefined;
}

/** Number of replicas of a function; 1 for the engine's own. */
function replicaCount({ worker_ids }: FunctionView): JsonObject {
  return { replicas: Math.max(1, worker_ids.length) };
}

/** The connections that offer a function, the newest last; access rules hide them. */
function replicaList(view: FunctionView, directory: Directory): JsonObject {
  if (isLimited(directory)) return replicaCount(view);
  const { worker_ids } = view;
  return {
    workers: worker_ids.map((worker_id) => ({
      worker_id,
      name: directory.worker(worker_id)?.name ?? null,
    })),
  };
}

/** A function with its schemas and the triggers that run it. */
function functionDetail(view: FunctionView, triggers: readonly TriggerView[]): JsonObject {
  const { request_schema, response_schema } = view;
  const own = triggers.filter(({ function_id, namespace }) =>
    function_id === view.function_id && namespace === view.namespace
  );
  const entryOf = (view: TriggerView) => {
    const { id, trigger_type, reason } = view;
    const config = withoutSecrets(view.config);
    return { id, trigger_type, config, status: statusOf(view), ...reason !== null && { reason } };
  };
  const page = pageOf(own, ({ id }) => [id], entryOf, {}, DETAIL_BOUNDS);
  const registered_triggers = page.entries;
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
  return { id, namespace, worker_name, ...engineOf(view), description };
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
  const { id, trigger_type, function_id, worker_name, worker_id, reason } = view;
  const config = withoutSecrets(view.config);
  return {
    id,
    trigger_type,
    function_id,
    worker_name,
    worker_id,
    ...engineOf(view),
    status: statusOf(view),
    ...reason !== null && { reason },
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
    suspect: view.suspect,
    function_count: view.function_count,
    connected_at_ms: view.connected_at_ms,
    active_invocations: view.active_invocations,
    isolation: view.isolation,
    ip_address: view.ip_address,
    ...view.builtin && { internal: true },
  };
}

/** Names of members whose text may be a secret, such as the `auth_token` of an HTTP route. */
const SECRET_NAME = /token|secret|passw|credential|api_?key|private_?key/i;

/** A trigger's configuration for lists: of a secret, the first four characters at most. */
function withoutSecrets(config: Json): Json {
  if (config === null || typeof config !== "object" || Array.isArray(config)) return config;
  const entries = Object.entries(config);
  const isSecret = ([name, value]: [string, Json]): boolean => {
    return typeof value === "string" && SECRET_NAME.test(name);
  };
  if (!entries.some(isSecret)) return config;
  return Object.fromEntries(entries.map(([name, value]) => {
    if (!isSecret([name, value])) return [name, value];
    const text = value as string;
    return [name, `${text.slice(0, Math.min(4, Math.floor(text.length / 4)))}…`];
  }));
}

/** The start of a configuration as text. */
function summarize(config: Json): string {
  if (charsOf(config, VALUE_CHARS_MAX) > VALUE_CHARS_MAX) return "too large to be listed";
  const characters = [...JSON.stringify(config).slice(0, 2 * SUMMARY_CHARS_MAX + 2)];
  if (characters.length <= SUMMARY_CHARS_MAX) return characters.join("");
  return characters.slice(0, SUMMARY_CHARS_MAX).join("") + "…";
}
