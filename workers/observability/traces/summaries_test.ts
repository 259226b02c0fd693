/**
 * Lines of traces, those that were asked for.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, NOON } from "../../../tests/fakes/spans.ts";
import type { TraceEntry } from "./index.ts";
import { SummariesRequest, summarize } from "./summaries.ts";

/** Three traces, the newest first. */
const entries: TraceEntry[] = [
  entry(3, { name: "GET /orders", function_ids: ["orders::list"], end_ms: NOON + 3 + 500 }),
  entry(2, { error_count: 1, error_code: "oops", services: ["shop", "stock"] }),
  entry(1, { internal: true }),
];

function entry(n: number, changes: Partial<TraceEntry>): TraceEntry {
  return {
    trace_id: idOf(n, 32),
    name: `f${n}`,
    worker: "shop",
    start_ms: NOON + n,
    end_ms: NOON + n + 10,
    span_count: 1,
    error_count: 0,
    error_code: null,
    services: ["shop"],
    function_ids: [`f${n}`],
    pending: false,
    internal: false,
    ...changes,
  };
}

function names(query: unknown): unknown[] {
  const { traces } = summarize(entries, SummariesRequest.parse(query));
  return (traces as { name: string }[]).map(({ name }) => name);
}

Deno.test("summarize() has all that is known of a trace in one line", () => {
  const { traces, total } = summarize(entries, SummariesRequest.parse(null));

  assert.equal(total, 2);
  assert.deepEqual((traces as unknown[])[1], {
    trace_id: idOf(2, 32),
    name: "f2",
    worker: "shop",
    start_ms: NOON + 2,
    duration_ms: 10,
    span_count: 1,
    error_count: 1,
    error_code: "oops",
    services: ["shop", "stock"],
    pending: false,
  });
});

for (
  const [query, expected] of [
    [{}, ["GET /orders", "f2"]],
    [{ include_internal: true }, ["GET /orders", "f2", "f1"]],
    [{ limit: 1 }, ["GET /orders"]],
    [{ before_ms: NOON + 3 }, ["f2"]],
    [{ since_ms: NOON + 3 }, ["GET /orders"]],
    [{ status: "error" }, ["f2"]],
    [{ status: "ok" }, ["GET /orders"]],
    [{ min_duration_ms: 100 }, ["GET /orders"]],
    [{ function_id: "orders::list" }, ["GET /orders"]],
    [{ worker: "stock" }, ["f2"]],
    [{ text: "ORDERS::" }, ["GET /orders"]],
    [{ text: "OOPS" }, ["f2"]],
    [{ text: idOf(2, 32).slice(-5) }, ["f2"]],
    [{ text: "nothing" }, []],
    [{ worker: null, text: null }, ["GET /orders", "f2"]],
  ] as const
) {
  Deno.test(`summarize() with ${JSON.stringify(query)} finds ${expected.join(", ")}`, () => {
    assert.deepEqual(names(query), expected);
  });
}
