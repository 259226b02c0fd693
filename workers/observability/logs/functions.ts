/**
 * `engine::log::*` writes log records, `engine::logs::{list,clear}` reads and removes them.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import { type Log, LOG_VALUE_CHARS_MAX } from "../../../engine/ports/log.ts";
import type { CallContext } from "../../../sdk/typescript/options.ts";
import { readTraceparent } from "../../../sdk/typescript/trace_context.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineAnswer } from "../../kit/engines.ts";
import { fit } from "../../kit/fit.ts";
import * as v from "../../kit/schema.ts";
import { cut, TELEMETRY_NAME_CHARS_MAX, TELEMETRY_TEXT_CHARS_MAX } from "../intake.ts";
import type { Redactor } from "../redact.ts";
import { checkOperator } from "../retained.ts";
import type { Search, SearchTurns, Turn } from "../turns.ts";
import { SEVERITIES, type Severity, severityOf, wireLog } from "./record.ts";
import { LOG_PAGE_BYTES_MAX, type LogPage, type LogRange, type LogStore } from "./store.ts";

/** Default number of log records in one answer. */
const LOG_LIST_LIMIT = 100;
/** Longest text that a list is searched for. */
const LOG_SEARCH_CHARS_MAX = 1_024;
/** Log records in one answer. */
const LOG_LIST_LIMIT_MAX = 1_000;

/** The answer of `engine::logs::list`. */
type LogAnswer = {
  readonly logs: JsonObject[];
  readonly total: number;
  /** Whether it ends early, because it would become too large. */
  readonly is_cut?: true;
};

/** Dependencies of the functions. */
export interface LogFunctionsSetup {
  readonly store: LogStore;
  readonly clock: Clock;
  readonly turns: SearchTurns;
  readonly directory: Directory;
  readonly redactor: Redactor;
  /** The engine's log; lines written here must not be recorded a second time. */
  readonly log: Log;
  /** Whether the caller, given by its connection, may remove records. */
  isOperator(caller: string | undefined): boolean;
  /** Asks the other engines of the cluster; `undefined`: there are none. */
  readonly ask?: ((function_id: string, payload: Json) => Promise<EngineAnswer[]>) | undefined;
  /** The parent of a running call's span, if known. */
  parentOf(trace_id: string, span_id: string): string | undefined;
}

/** An id; ignored when too long. */
const id = (digits: number) =>
  v.pipe(
    v.nullish(v.string()),
    v.transform((text) => text && text.length <= digits ? text : undefined),
  );

const LogRequest = v.object({
  message: v.string(),
  data: v.optional(v.unknown()),
  trace_id: id(32),
  span_id: id(16),
  service_name: v.pipe(
    v.nullish(v.string()),
    v.transform((name) => name ? cut(name, TELEMETRY_NAME_CHARS_MAX) : undefined),
  ),
});

const ListRequest = v.nullish(
  v.object({
    start_time: v.opt(v.number()),
    end_time: v.opt(v.number()),
    trace_id: v.opt(v.pipe(v.string(), v.toLowerCase())),
    span_id: v.opt(v.pipe(v.string(), v.toLowerCase())),
    severity_min: v.opt(v.number()),
    severity_text: v.opt(v.string()),
    offset: v.opt(v.int(0)),
    limit: v.opt(v.int(1, LOG_LIST_LIMIT_MAX)),
    worker: v.opt(v.string()),
    function_id: v.opt(v.string()),
    text: v.opt(v.text(0, LOG_SEARCH_CHARS_MAX)),
    source: v.opt(v.picklist(["logger", "output", "engine", "function"])),
    after_seq: v.opt(v.number()),
    before_seq: v.opt(v.number()),
    sort_order: v.opt(v.picklist(["asc", "desc"])),
    local: v.opt(v.boolean()),
  }),
  {},
);

/** Registers all functions; those of `engine::log::*` return nothing. */
export function registerLogFunctions(
  worker: Pick<Worker, "registerFunction">,
  setup: LogFunctionsSetup,
): void {
  for (const severity of SEVERITIES) {
    const id = `engine::log::${severity}`;
    worker.registerFunction(id, (payload, _metadata, context) => {
      writeLog(setup, severity, fit(id, LogRequest, payload), context);
    }, { description: `Writes a line of level ${severity} to the engine's log` });
  }
  const { store, clock, turns } = setup;
  worker.registerFunction(
    "engine::logs::list",
    async (payload, _metadata, { caller, function_id }) => {
      const query = fit(function_id, ListRequest, payload);
      const own = await listLogs(store, query, clock, (search) => turns.take(caller, search));
      if (!setup.ask || query.local || isOfOneEngine(query)) return own;
      return joinLogs(own, await setup.ask(function_id, payload ?? {}), query);
    },
    { description: "Log records of all workers, the newest first" },
  );
  worker.registerFunction("engine::logs::clear", (_payload, _metadata, { caller, function_id }) => {
    checkOperator(setup.isOperator(caller), function_id);
    const { size } = store.ring;
    store.clear();
    return { success: true, message: `${size} records removed` };
  }, { description: "Removes all log records" });
}

function writeLog(
  { store, clock, directory, redactor, log, parentOf }: LogFunctionsSetup,
  severity: Severity,
  request: v.InferOutput<typeof LogRequest>,
  { caller, traceparent }: CallContext,
): void {
  const name = nameOf(caller, directory);
  const { message, trace_id, span_id, service_name } = request;
  const data = dataOf(request.data as Json | undefined, redactor);
  log[severity === "trace" ? "debug" : severity](message, {
    worker: name,
    service: service_name === name ? undefined : service_name,
    data: data === undefined ? undefined : cut(JSON.stringify(data), LOG_VALUE_CHARS_MAX + 1),
    trace_id,
    span_id,
  });
  const call = trace_id ? undefined : readTraceparent(traceparent);
  const now = clock.wall();
  store.add({
    at_ms: now,
    observed_ms: now,
    severity,
    body: cut(message, TELEMETRY_TEXT_CHARS_MAX),
    attributes: data === undefined ? {} : { data },
    trace_id: trace_id ?? call?.trace_id ?? null,
    // The call of engine::log::* is a span itself; the logging function is its parent.
    span_id: span_id ?? (call?.isSampled ? parentOf(call.trace_id, call.span_id) : null) ?? null,
    service_name: service_name ?? name ?? "unknown",
    worker: name ?? null,
    replica: null,
    source: "function",
    function_id: null,
    scope_name: null,
  });
}

/** The redacted data of a record; beyond the bound, the start of its JSON. */
function dataOf(given: Json | undefined, redactor: Redactor): Json | undefined {
  if (given === undefined || given === null) return undefined;
  const data = redactor.value(given);
  const text = JSON.stringify(data);
  return text.length <= TELEMETRY_TEXT_CHARS_MAX ? data : cut(text, TELEMETRY_TEXT_CHARS_MAX);
}

/** The worker's announced name, or else the id of its connection. */
function nameOf(caller: string | undefined, directory: Directory): string | undefined {
  return caller === undefined ? undefined : directory.worker(caller)?.name ?? caller;
}

/** Without a filter, nothing is searched: the page is read at once. */
function listLogs(
  { ring }: LogStore,
  query: v.InferOutput<typeof ListRequest>,
  clock: Clock,
  take: (search: (turn: Turn) => Search<JsonObject>) => JsonObject | Promise<JsonObject>,
): JsonObject | Promise<JsonObject> {
  const { start_time, end_time, severity_min, severity_text, offset, limit, sort_order } = query;
  const { trace_id, span_id, worker, function_id, text, source, after_seq, before_seq } = query;
  const filter = {
    since_ms: start_time,
    until_ms: end_time,
    trace_id,
    span_id,
    least: severity_min === undefined ? undefined : leastOf(severity_min),
    severity: severity_text === undefined ? undefined : severityOf(severity_text),
    worker,
    function_id,
    text,
    source,
    after_seq,
    before_seq,
  };
  const range: LogRange = {
    offset: offset ?? 0,
    limit: limit ?? LOG_LIST_LIMIT,
    order: sort_order ?? "desc",
  };
  const answer = ({ records, total, isCut }: LogPage): JsonObject => ({
    logs: records.map((record) => wireLog(record)),
    total,
    ...isCut && { is_cut: true },
    timestamp: clock.wall(),
  });
  return Object.values(filter).every((member) => member === undefined)
    ? answer(ring.page(range))
    : take(function* (turn) {
      return answer(yield* ring.search(filter, range, turn));
    });
}

/** Numbers of records, and places in a list, are those of one engine. */
function isOfOneEngine({ offset, after_seq, before_seq }: v.InferOutput<typeof ListRequest>) {
  return (offset ?? 0) > 0 || after_seq !== undefined || before_seq !== undefined;
}

/** A list with the records of other engines, each with the name of its engine. */
function joinLogs(
  own: JsonObject,
  answers: readonly EngineAnswer[],
  { limit, sort_order }: v.InferOutput<typeof ListRequest>,
): JsonObject {
  const logs = [...own.logs as JsonObject[]];
  let total = own.total as number;
  let isCut = own.is_cut === true;
  for (const { engine, life: engine_life, result } of answers) {
    const { logs: others, total: more, is_cut } = result as Partial<LogAnswer>;
    if (!Array.isArray(others)) continue;
    isCut ||= is_cut === true;
    logs.push(...others.map((log) => ({ ...log, engine, engine_life })));
    total += more ?? 0;
  }
  const timeOf = ({ timestamp_unix_nano }: JsonObject): number => Number(timestamp_unix_nano);
  const direction = sort_order === "asc" ? 1 : -1;
  logs.sort((one, other) => direction * (timeOf(one) - timeOf(other)));
  const wanted = logs.slice(0, limit ?? LOG_LIST_LIMIT);
  let chars = 0;
  const over = wanted.findIndex((log) =>
    (chars += JSON.stringify(log).length) > LOG_PAGE_BYTES_MAX
  );
  const shown = over > 0 ? wanted.slice(0, over) : wanted;
  isCut ||= shown.length < wanted.length;
  return { ...own, logs: shown, total, ...isCut && { is_cut: true } };
}

/** The lowest severity whose number is at least `severity_min`. */
function leastOf(severity_min: number): Severity {
  const at = Math.ceil((severity_min - 1) / 4);
  return SEVERITIES[Math.max(0, Math.min(4, at))]!;
}
