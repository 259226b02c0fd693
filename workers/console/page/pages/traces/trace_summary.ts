/**
 * Traces in a list (`engine::traces::summaries`), and the filter of that list.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { numberOf, objectOf, textOf } from "../../kit/json.ts";

/** Changes of traces arrive in batches of this time. */
export const TRACE_BATCH_MS = 500;

/** A trace in the list. Times are milliseconds since 1970. */
export interface TraceSummary {
  readonly trace_id: string;
  /** The name of its first span. */
  readonly name: string;
  readonly worker: string;
  /** The worker that did the work; `null`: none did. */
  readonly ranBy: string | null;
  /** Status of the response, if it began with an HTTP request. */
  readonly httpStatus: number | null;
  readonly startMs: number;
  /** Of its first span, as `engine why` says it; until now while it is running. */
  readonly durationMs: number;
  /** How long it went on after that, in calls that its first span did not wait for. */
  readonly afterMs: number;
  readonly spans: number;
  readonly errors: number;
  readonly errorCode: string | null;
  readonly services: readonly string[];
  readonly isPending: boolean;
}

/** The filter in the address; an empty text filters nothing. */
export interface TraceFilter {
  readonly text: string;
  readonly function_id: string;
  readonly worker: string;
  readonly status: string;
  /** In milliseconds. */
  readonly min: string;
  /** `1`: includes calls of functions of the engine. */
  readonly internal: string;
  /** The time range in which a trace began, in milliseconds since 1970. */
  readonly from: string;
  readonly to: string;
}

/** Reads a summary; missing members become empty. */
export function readTraceSummary(raw: Json): TraceSummary {
  const trace = objectOf(raw);
  const services = Array.isArray(trace.services) ? trace.services.map(textOf) : [];
  const wholeMs = numberOf(trace.duration_ms);
  const durationMs = numberOf(trace.root_ms, wholeMs);
  return {
    trace_id: textOf(trace.trace_id),
    name: textOf(trace.name) || "(without a name)",
    worker: textOf(trace.worker),
    ranBy: textOf(trace.ran_by) || null,
    httpStatus: typeof trace.http_status === "number" ? trace.http_status : null,
    startMs: numberOf(trace.start_ms),
    durationMs,
    afterMs: Math.max(0, wholeMs - durationMs),
    spans: numberOf(trace.span_count),
    errors: numberOf(trace.error_count),
    errorCode: textOf(trace.error_code) || null,
    services,
    isPending: trace.pending === true,
  };
}

/** The payload that requests the traces of a filter. */
export function summariesPayload(
  filter: TraceFilter,
  limit: number,
  beforeMs?: number,
): JsonObject {
  const to = numberOf(filter.to, Infinity);
  const before = Math.min(beforeMs ?? Infinity, to);
  return { limit, ...conditionsOf(filter), ...before < Infinity && { before_ms: before } };
}

/** The payload that counts the traces of a filter by time. */
export function histogramPayload(filter: TraceFilter): JsonObject {
  const to = numberOf(filter.to, 0);
  return { ...conditionsOf(filter), ...to > 0 && { before_ms: to } };
}

function conditionsOf(filter: TraceFilter): JsonObject {
  const min = numberOf(filter.min, 0);
  const from = numberOf(filter.from, 0);
  return {
    ...filter.text !== "" && { text: filter.text },
    ...filter.function_id !== "" && { function_id: filter.function_id },
    ...filter.worker !== "" && { worker: filter.worker },
    ...(filter.status === "ok" || filter.status === "error") && { status: filter.status },
    ...min > 0 && { min_duration_ms: min },
    ...filter.internal === "1" && { include_internal: true },
    ...from > 0 && { since_ms: from },
  };
}

/** Joins two lists by id, the newest first; an id in both is taken from `newer`. */
export function joinTraces(
  newer: readonly TraceSummary[],
  older: readonly TraceSummary[],
): readonly TraceSummary[] {
  if (older.length === 0) return newer;
  const known = new Set(newer.map(({ trace_id }) => trace_id));
  const rest = older.filter(({ trace_id }) => !known.has(trace_id));
  return [...newer, ...rest].sort((a, b) => b.startMs - a.startMs);
}
