/**
 * `engine::log::*` and `engine::logs::*`: saying something, and reading what was said.
 *
 * @module
 */
import * as shape from "../../kit/mod.ts";
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { Log } from "../../../engine/ports/log.ts";
import { LOG_VALUE_CHARS_MAX } from "../../../sdk/typescript/wire/limits.ts";
import {
  LOG_LIST_LIMIT,
  LOG_LIST_LIMIT_MAX,
  TELEMETRY_NAME_CHARS_MAX,
  TELEMETRY_TEXT_CHARS_MAX,
} from "../../limits.ts";
import type { CallContext } from "../../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { readTraceparent } from "../../../sdk/typescript/traceparent.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { fit, opt } from "../../kit/payload.ts";
import { SEVERITIES, type Severity, severityOf, wireLog } from "./record.ts";
import type { LogStore } from "./store.ts";
import type { Redactor } from "../redact.ts";
import { cut } from "../traces/otlp.ts";

/** What the functions work with. */
export interface LogFunctionsSetup {
  readonly store: LogStore;
  readonly clock: Clock;
  readonly directory: Directory;
  readonly redactor: Redactor;
  /** The engine's own log; what is written there is not to come back as a record. */
  readonly log: Log;
  /** The span of whoever made a call; `undefined` when that is not known. */
  parentOf(trace_id: string, span_id: string): string | undefined;
}

/** What is too long for an id is as good as none. */
const id = (digits: number) =>
  shape.string().nullish().transform((text) => text && text.length <= digits ? text : undefined);

const Line = shape.object({
  message: shape.string(),
  data: shape.unknown().optional(),
  trace_id: id(32),
  span_id: id(16),
  service_name: shape.string().nullish().transform((name) =>
    name ? cut(name, TELEMETRY_NAME_CHARS_MAX) : undefined
  ),
});

const ListRequest = shape.preprocess(
  (payload) => payload ?? {},
  shape.object({
    start_time: opt(shape.number()),
    end_time: opt(shape.number()),
    trace_id: opt(shape.string().toLowerCase()),
    span_id: opt(shape.string().toLowerCase()),
    severity_min: opt(shape.number()),
    severity_text: opt(shape.string()),
    offset: opt(shape.int().min(0)),
    limit: opt(shape.int().min(1).max(LOG_LIST_LIMIT_MAX)),
    worker: opt(shape.string()),
    function_id: opt(shape.string()),
    text: opt(shape.string()),
    source: opt(shape.oneOf(["logger", "output", "engine", "function"])),
    after_seq: opt(shape.number()),
    before_seq: opt(shape.number()),
    sort_order: opt(shape.oneOf(["asc", "desc"])),
  }),
);

/** Registers `engine::log::*`; each answers with nothing. */
export function offerLogging(
  worker: Pick<Worker, "registerFunction">,
  setup: LogFunctionsSetup,
): void {
  for (const severity of SEVERITIES) {
    const id = `engine::log::${severity}`;
    worker.registerFunction(id, (payload, _metadata, context) => {
      say(setup, severity, fit(id, Line, payload), context);
    }, { description: `Writes a line of level ${severity} to the engine's log` });
  }
}

/** Registers `engine::logs::{list,clear}`. */
export function offerLogs(
  worker: Pick<Worker, "registerFunction">,
  { store, clock }: LogFunctionsSetup,
): void {
  worker.registerFunction(
    "engine::logs::list",
    (payload) => listLogs(store, fit("engine::logs::list", ListRequest, payload), clock.wall()),
    { description: "Log records of all workers, the newest first" },
  );
  worker.registerFunction("engine::logs::clear", () => {
    const { size } = store.ring;
    store.clear();
    return { success: true, message: `${size} records forgotten` };
  }, { description: "Forgets all log records" });
}

function say(
  { store, clock, directory, redactor, log, parentOf }: LogFunctionsSetup,
  severity: Severity,
  line: shape.Output<typeof Line>,
  { caller, traceparent }: CallContext,
): void {
  const name = nameOf(caller, directory);
  const { trace_id, span_id, service_name } = line;
  const data = dataOf(line.data as Json | undefined, redactor);
  log[severity === "trace" ? "debug" : severity](line.message, {
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
    body: cut(line.message, TELEMETRY_TEXT_CHARS_MAX),
    attributes: data === undefined ? {} : { data },
    trace_id: trace_id ?? call?.trace_id ?? null,
    // The call of this function is a span of its own; who speaks is its parent.
    span_id: span_id ?? (call?.isSampled ? parentOf(call.trace_id, call.span_id) : null) ?? null,
    service_name: service_name ?? name ?? "unknown",
    worker: name ?? null,
    replica: null,
    source: "function",
    function_id: null,
    scope_name: null,
  });
}

/** What is kept of what goes with a line: all of it without secrets, or the beginning as text. */
function dataOf(given: Json | undefined, redactor: Redactor): Json | undefined {
  if (given === undefined || given === null) return undefined;
  const data = redactor.value(given);
  const text = JSON.stringify(data);
  return text.length <= TELEMETRY_TEXT_CHARS_MAX ? data : cut(text, TELEMETRY_TEXT_CHARS_MAX);
}

/** Announced, else what can be known of the connection. */
function nameOf(caller: string | undefined, directory: Directory): string | undefined {
  return caller === undefined ? undefined : directory.worker(caller)?.name ?? caller;
}

function listLogs(
  store: LogStore,
  query: shape.Output<typeof ListRequest>,
  nowMs: number,
): JsonObject {
  const { start_time, end_time, severity_min, severity_text, offset, limit, sort_order } = query;
  const { trace_id, span_id, worker, function_id, text, source, after_seq, before_seq } = query;
  const { records, total } = store.ring.find({
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
  }, { offset: offset ?? 0, limit: limit ?? LOG_LIST_LIMIT, order: sort_order ?? "desc" });
  return { logs: records.map(wireLog), total, timestamp: nowMs };
}

/** The least important severity whose number is not below this one. */
function leastOf(severity_min: number): Severity {
  const at = Math.ceil((severity_min - 1) / 4);
  return SEVERITIES[Math.max(0, Math.min(4, at))]!;
}
