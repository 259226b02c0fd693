/**
 * `engine::traces::summaries`: one line per trace, the newest first.
 *
 * @module
 */
import * as shape from "../../kit/mod.ts";
import { TRACE_LIST_LIMIT, TRACE_LIST_LIMIT_MAX } from "../../limits.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { opt } from "../../kit/payload.ts";
import type { TraceEntry } from "./index.ts";

/** Payload of `engine::traces::summaries`; everything may be left out. */
export const SummariesRequest = shape.preprocess(
  (payload) => payload ?? {},
  shape.object({
    limit: opt(shape.int().min(1).max(TRACE_LIST_LIMIT_MAX)),
    before_ms: opt(shape.number()),
    since_ms: opt(shape.number()),
    text: opt(shape.string()),
    function_id: opt(shape.string()),
    worker: opt(shape.string()),
    status: opt(shape.oneOf(["ok", "error"])),
    min_duration_ms: opt(shape.number()),
    include_internal: opt(shape.boolean()),
  }),
);

/** What `engine::traces::summaries` is asked for. */
export type SummariesQuery = shape.Output<typeof SummariesRequest>;

/** Answers `engine::traces::summaries`; `entries` are the newest first. */
export function summarize(entries: readonly TraceEntry[], query: SummariesQuery): JsonObject {
  const fitting = entries.filter((entry) => fits(entry, query));
  const { limit = TRACE_LIST_LIMIT } = query;
  return { traces: fitting.slice(0, limit).map(summaryOf), total: fitting.length };
}

/** One trace as it travels. */
export function summaryOf(entry: TraceEntry): JsonObject {
  const { trace_id, name, worker, start_ms, span_count, error_count, error_code, pending } = entry;
  return {
    trace_id,
    name,
    worker,
    start_ms,
    duration_ms: durationOf(entry),
    span_count,
    error_count,
    error_code,
    services: [...entry.services],
    pending,
  };
}

function fits(entry: TraceEntry, query: SummariesQuery): boolean {
  const { before_ms, since_ms, text, function_id, worker, status, min_duration_ms } = query;
  return (query.include_internal || !entry.internal) &&
    (before_ms === undefined || entry.start_ms < before_ms) &&
    (since_ms === undefined || entry.start_ms >= since_ms) &&
    (function_id === undefined || entry.function_ids.includes(function_id)) &&
    (worker === undefined || entry.services.includes(worker)) &&
    (status === undefined || (status === "error") === (entry.error_count > 0)) &&
    (min_duration_ms === undefined || durationOf(entry) >= min_duration_ms) &&
    (text === undefined || hasText(entry, text.toLowerCase()));
}

function hasText(
  { trace_id, name, error_code, services, function_ids }: TraceEntry,
  text: string,
): boolean {
  return trace_id.includes(text) ||
    [name, error_code ?? "", ...services, ...function_ids]
      .some((each) => each.toLowerCase().includes(text));
}

function durationOf({ start_ms, end_ms }: TraceEntry): number {
  return Math.max(0, end_ms - start_ms);
}
