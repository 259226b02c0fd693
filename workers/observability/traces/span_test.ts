/**
 * Spans: wire form (PROTOCOL 5.8), summaries, and spans of calls and built-in workers.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callSpan, idOf, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { bytesOf } from "./ring.ts";
import {
  attributeOf,
  attributeText,
  durationOf,
  spanOfCall,
  spanOfWork,
  type StoredSpan,
  summaryOfCall,
  summaryOfSpan,
  wireSpan,
} from "./span.ts";

Deno.test("wireSpan() writes times as nanoseconds and attributes as pairs", () => {
  const span = storedSpan({ start_ms: NOON + 0.5 }, { a: 1 });

  const wire = wireSpan(span, false);

  assert.equal(wire.start_time_unix_nano, (NOON * 1e3 + 500) * 1e3);
  assert.deepEqual(wire.attributes, [["a", 1]]);
  assert.equal(wire.status, "ok");
  assert.equal("pending" in wire, false);
  assert.equal("status_description" in wire, false);
});

Deno.test("wireSpan() marks running spans as pending", () => {
  const wire = wireSpan(storedSpan({ end_ms: null, status: "unset" }), false);

  assert.equal(wire.end_time_unix_nano, null);
  assert.equal(wire.pending, true);
});

Deno.test("wireSpan() includes payloads only on request", () => {
  const span = storedSpan({}, { "engine.request": "1", "engine.response": "2", b: 3 });

  assert.deepEqual(wireSpan(span, false).attributes, [["b", 3]]);
  assert.equal((wireSpan(span, true).attributes as unknown[]).length, 3);
});

Deno.test("durationOf() of a running span is the time until now, never negative", () => {
  assert.equal(durationOf(storedSpan(), NOON + 99), 10);
  assert.equal(durationOf(storedSpan({ end_ms: null }), NOON + 99), 99);
  assert.equal(durationOf(storedSpan({ end_ms: NOON - 5 }), NOON), 0);
});

Deno.test("attributeText() returns text only", () => {
  const span = storedSpan({}, { a: 1, b: "x" });

  assert.equal(attributeOf(span, "a"), 1);
  assert.equal(attributeText(span, "a"), undefined);
  assert.equal(attributeText(span, "b"), "x");
  assert.equal(attributeText(span, "c"), undefined);
});

for (
  const [what, changes] of [
    ["succeeded", {}],
    ["failed", { error_code: "oops", namespace: "eu" }],
    ["no worker ran", { callee: null, error_code: "function_not_found" }],
    ["still runs", { end_ms: null }],
  ] as const
) {
  Deno.test(`A call that ${what} has the same summary from its record and from its span`, () => {
    const call = callSpan(changes);

    assert.deepEqual(summaryOfCall(call), summaryOfSpan(spanOfCall(call, null)));
  });
}

Deno.test("summaryOfSpan() has defaults for missing attributes", () => {
  const { kind, error_code, function_id, namespace, caller, worker, start_ms } = summaryOfSpan(
    storedSpan({ status: "error" }, { "engine.function_id": 5 }),
  );

  assert.deepEqual([kind, error_code, function_id, namespace, caller, worker, start_ms], [
    "work",
    "error",
    null,
    "default",
    null,
    null,
    NOON,
  ]);
});

const redactor = new Redactor();
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID = "b7ad6b7169203331";

Deno.test("spanOfCall() has caller, callee and queueing time", () => {
  const { attributes, ...span } = spanOfCall(callSpan(), null);

  assert.equal(span.name, "orders::create");
  assert.equal(span.service_name, "orders");
  assert.equal(span.status, "ok");
  assert.deepEqual(Object.fromEntries(attributes), {
    "engine.kind": "call",
    "engine.function_id": "orders::create",
    "engine.namespace": "default",
    "engine.invocation_id": "i-1",
    "engine.caller_invocation_id": "c-1",
    "engine.caller": "shop",
    "engine.caller_id": "w-1",
    "engine.worker": "orders",
    "engine.worker_id": "w-2",
    "engine.queued_ms": 1,
    "engine.timeout_ms": 30_000,
    "engine.request_chars": 7,
    "engine.response_chars": 8,
  });
});

Deno.test("spanOfCall() omits absent members, and names the engine if no worker ran the call", () => {
  const call = callSpan({
    callee: null,
    sent_ms: null,
    invocation_id: "",
    error_code: "function_not_found",
    error_message: "Function x not found",
    ended_by: "no worker offers it",
  });

  const span = spanOfCall(call, redactor);

  const names = span.attributes.map(([name]) => name);
  assert.equal(span.service_name, "engine");
  assert.equal(span.status, "error");
  assert.equal(span.status_description, "Function x not found");
  assert.ok(names.includes("engine.error_code") && names.includes("engine.ended_by"));
  for (const absent of ["engine.worker", "engine.queued_ms", "engine.invocation_id"]) {
    assert.ok(!names.includes(absent), absent);
  }
});

Deno.test("spanOfCall() has redacted payloads if given a redactor", () => {
  const call = callSpan({ request: '{"password":"x","b":2}', response: null });

  const { attributes } = spanOfCall(call, redactor);

  const found = Object.fromEntries(attributes);
  assert.equal(found["engine.request"], '{"password":"[redacted]","b":2}');
  assert.equal("engine.response" in found, false);
});

Deno.test("spanOfCall() lists the candidate replicas", () => {
  const candidates = [{ worker_id: "w-2", name: "orders", in_flight: 3, passed_over: null }];

  const { attributes } = spanOfCall(callSpan({ candidates }), null);

  assert.deepEqual(Object.fromEntries(attributes)["engine.replicas"], candidates);
});

Deno.test("The status of a running call is unset", () => {
  const span = spanOfCall(callSpan({ end_ms: null }), null);

  assert.equal(span.status, "unset");
  assert.equal(span.end_ms, null);
});

const ended = {
  traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`,
  parent: null,
  name: "GET /orders/:id",
  service: "engine-http",
  start_ms: NOON,
  end_ms: NOON + 5,
  error: null,
  attributes: { "engine.kind": "http", token: "x" },
};

Deno.test("spanOfWork() takes its ids from the traceparent and redacts secrets", () => {
  const span = spanOfWork(ended, redactor)!;

  assert.deepEqual([span.trace_id, span.span_id, span.parent_span_id], [TRACE_ID, SPAN_ID, null]);
  assert.deepEqual(Object.fromEntries(span.attributes), {
    "engine.kind": "http",
    token: "[redacted]",
    "engine.worker": "engine-http",
  });
});

Deno.test("spanOfWork() has the caller's span as parent if it is of the same trace", () => {
  const parent = `00-${TRACE_ID}-${idOf(4, 16)}-01`;
  const other = `00-${idOf(9, 32)}-${idOf(4, 16)}-01`;

  assert.equal(spanOfWork({ ...ended, parent }, redactor)!.parent_span_id, idOf(4, 16));
  assert.equal(spanOfWork({ ...ended, parent: other }, redactor)!.parent_span_id, null);
  assert.equal(spanOfWork({ ...ended, parent: "nonsense" }, redactor)!.parent_span_id, null);
  assert.equal(spanOfWork({ ...ended, error: "HTTP 500" }, redactor)!.status, "error");
});

Deno.test("spanOfWork() serializes like a plain span, with the same size, and computes attributes once", () => {
  let looks = 0;
  const counting = new Redactor();
  counting.hits = (name) => (looks++, name === "token");
  const span = spanOfWork(ended, counting)!;

  assert.equal(looks, 0);
  const plain = JSON.parse(JSON.stringify(span)) as StoredSpan;

  assert.deepEqual(plain, {
    trace_id: TRACE_ID,
    span_id: SPAN_ID,
    parent_span_id: null,
    name: "GET /orders/:id",
    service_name: "engine-http",
    start_ms: NOON,
    end_ms: NOON + 5,
    status: "ok",
    status_description: null,
    attributes: [["engine.kind", "http"], ["token", "[redacted]"], [
      "engine.worker",
      "engine-http",
    ]],
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
  });
  assert.equal(span.attributes, span.attributes);
  assert.equal(looks, 2);
  const written = { ...plain, attributes: [...plain.attributes.with(1, ["token", "x"])] };
  assert.equal(bytesOf(span), bytesOf(written));
});

for (
  const text of [
    "",
    "00",
    `00-${TRACE_ID}-${SPAN_ID}`,
    `00-${TRACE_ID}-${SPAN_ID}-01-more`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${"0".repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${"0".repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    `00-${TRACE_ID}x${SPAN_ID}-01`,
  ]
) {
  Deno.test(`spanOfWork() rejects ${text}`, () => {
    assert.equal(spanOfWork({ ...ended, traceparent: text }, redactor), undefined);
  });
}
