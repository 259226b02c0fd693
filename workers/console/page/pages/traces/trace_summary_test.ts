import assert from "node:assert/strict";
import {
  histogramPayload,
  joinTraces,
  readTraceSummary,
  summariesPayload,
} from "./trace_summary.ts";

const NOTHING = {
  text: "",
  function_id: "",
  worker: "",
  status: "",
  min: "",
  internal: "",
  from: "",
  to: "",
};

Deno.test("readTraceSummary() reads a summary", () => {
  const trace = readTraceSummary({
    trace_id: "a",
    name: "shop::buy",
    worker: "engine-http",
    ran_by: "shop",
    http_status: 404,
    start_ms: 5,
    duration_ms: 4,
    root_ms: 2.5,
    span_count: 3,
    error_count: 1,
    error_code: "no_stock",
    services: ["shop", "stock"],
    pending: true,
  });

  assert.deepEqual(trace, {
    trace_id: "a",
    name: "shop::buy",
    worker: "engine-http",
    ranBy: "shop",
    httpStatus: 404,
    startMs: 5,
    durationMs: 2.5,
    afterMs: 1.5,
    spans: 3,
    errors: 1,
    errorCode: "no_stock",
    services: ["shop", "stock"],
    isPending: true,
  });
});

Deno.test("readTraceSummary() of an earlier engine has the duration of the whole trace", () => {
  const { durationMs, afterMs, ranBy, httpStatus } = readTraceSummary({ duration_ms: 4 });

  assert.deepEqual([durationMs, afterMs, ranBy, httpStatus], [4, 0, null, null]);
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

Deno.test("summariesPayload() and histogramPayload() have the time range of the filter", () => {
  const filter = { ...NOTHING, from: "10", to: "20", worker: "shop" };

  assert.deepEqual(histogramPayload(filter), { worker: "shop", since_ms: 10, before_ms: 20 });
  assert.deepEqual(summariesPayload(filter, 5), { limit: 5, ...histogramPayload(filter) });
  // Older ones of a page begin before its last trace, and never after the range.
  assert.equal(summariesPayload(filter, 5, 15).before_ms, 15);
  assert.equal(summariesPayload(filter, 5, 25).before_ms, 20);
  assert.deepEqual(histogramPayload({ ...NOTHING, from: "soon" }), {});
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
