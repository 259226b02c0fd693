import assert from "node:assert/strict";
import { attributeNumber, durationOf, functionOf, readSpan } from "./trace_span.ts";

const STORED = {
  trace_id: "0af7651916cd43dd8448eb211c80319c",
  span_id: "00f067aa0ba902b7",
  parent_span_id: "b7ad6b7169203331",
  name: "shop::buy",
  start_time_unix_nano: "1700000000000500000",
  end_time_unix_nano: 1700000000002500000,
  status: "error",
  status_description: "No such product",
  service_name: "shop",
  attributes: [["engine.function_id", "shop::buy"], ["engine.kind", "call"], [
    "engine.queued_ms",
    1.5,
  ], ["engine.error_code", "not_found"]],
};

Deno.test("readSpan() reads a stored span, nanoseconds as digits or as a number", () => {
  const span = readSpan(STORED);

  assert.equal(span.id, "00f067aa0ba902b7");
  assert.equal(span.parentId, "b7ad6b7169203331");
  assert.equal(span.startMs, 1700000000000.5);
  assert.equal(durationOf(span, 0), 2);
  assert.equal(span.kind, "call");
  assert.deepEqual([span.failed, span.errorCode, span.errorMessage], [
    true,
    "not_found",
    "No such product",
  ]);
  assert.equal(functionOf(span), "shop::buy");
  assert.equal(attributeNumber(span, "engine.queued_ms"), 1.5);
});

Deno.test("readSpan() takes a span without an end as one that runs", () => {
  for (const end of [undefined, null, 0, "0"]) {
    const span = readSpan({ ...STORED, end_time_unix_nano: end ?? null });
    assert.equal(span.endMs, null);
    assert.equal(durationOf(span, 1700000000010.5), 10);
  }
  assert.equal(readSpan({ ...STORED, pending: true }).endMs, null);
});

Deno.test("readSpan() tells handlers and other work from calls", () => {
  const handler = { ...STORED, name: "execute shop::buy", attributes: [] };
  const work = { ...STORED, name: "SELECT", attributes: [["db.system", "sqlite"]] };

  assert.equal(readSpan(handler).kind, "handler");
  assert.equal(readSpan(work).kind, "work");
});

Deno.test("readSpan() makes something to show of anything", () => {
  const odd = [null, 7, "span", [], {}, {
    name: 5,
    attributes: [null, [], ["a"], [1, 2]],
    status: { code: "ERROR", message: "broken" },
    start_time_unix_nano: "soon",
    end_time_unix_nano: { high: 1 },
  }];

  for (const raw of odd) {
    const span = readSpan(raw);
    assert.equal(typeof span.name, "string");
    assert.ok(Number.isFinite(span.startMs) && Number.isFinite(durationOf(span, 5)));
  }
  assert.equal(readSpan(odd.at(-1)!).errorMessage, "broken");
});

Deno.test("readSpan() never lets a span end before it starts", () => {
  const span = readSpan({ ...STORED, end_time_unix_nano: 1 });

  assert.equal(durationOf(span, 0), 0);
});

Deno.test("attributeNumber() is 0 for what is missing or no number", () => {
  const span = readSpan({ ...STORED, attributes: [["a", "soon"]] });

  assert.equal(attributeNumber(span, "a"), 0);
  assert.equal(attributeNumber(span, "b"), 0);
});
