import assert from "node:assert/strict";
import { joinTraces, readTraceSummary, summariesPayload } from "./trace_summary.ts";

const NOTHING = { text: "", function_id: "", worker: "", status: "", min: "", internal: "" };

Deno.test("readTraceSummary() reads a summary", () => {
  const trace = readTraceSummary({
    trace_id: "a",
    name: "shop::buy",
    worker: "shop",
    start_ms: 5,
    duration_ms: 2.5,
    span_count: 3,
    error_count: 1,
    error_code: "no_stock",
    services: ["shop", "stock"],
    pending: true,
  });

  assert.deepEqual(trace, {
    trace_id: "a",
    name: "shop::buy",
    worker: "shop",
    startMs: 5,
    durationMs: 2.5,
    spans: 3,
    errors: 1,
    errorCode: "no_stock",
    services: ["shop", "stock"],
    isPending: true,
  });
});

Deno.test("readTraceSummary() reads any value", () => {
  for (const raw of [null, 5, {}, { services: "x", start_ms: "soon" }]) {
    const trace = readTraceSummary(raw);
    assert.equal(trace.startMs, 0);
    assert.deepEqual(trace.services, []);
  }
});

Deno.test("summariesPayload() contains only the conditions of the filter", () => {
  assert.deepEqual(summariesPayload(NOTHING, 50), { limit: 50 });
  const filter = { ...NOTHING, text: "buy", status: "error", min: "2.5", internal: "1" };
  assert.deepEqual(summariesPayload(filter, 50, 99), {
    limit: 50,
    text: "buy",
    status: "error",
    min_duration_ms: 2.5,
    include_internal: true,
    before_ms: 99,
  });
});

Deno.test("summariesPayload() leaves out invalid conditions", () => {
  assert.deepEqual(summariesPayload({ ...NOTHING, status: "odd", min: "soon" }, 50), { limit: 50 });
  assert.deepEqual(summariesPayload({ ...NOTHING, min: "-1" }, 50), { limit: 50 });
});

Deno.test("joinTraces() has each trace once, the newest first", () => {
  const trace = (trace_id: string, start_ms: number, span_count = 1) =>
    readTraceSummary({ trace_id, start_ms, span_count });

  const joined = joinTraces([trace("c", 3), trace("b", 2, 9)], [trace("b", 2), trace("a", 1)]);

  assert.deepEqual(joined.map(({ trace_id, spans }) => [trace_id, spans]), [["c", 1], ["b", 9], [
    "a",
    1,
  ]]);
});
