/**
 * Spans in OTLP frames are read; a malformed span does not affect the others.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, NOON } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { readSpans } from "./otlp.ts";

const redactor = new Redactor();

const good = {
  traceId: idOf(1, 32).toUpperCase(),
  spanId: idOf(2, 16),
  parentSpanId: idOf(1, 16),
  name: "execute orders::create",
  kind: 2,
  startTimeUnixNano: `${NOON}000000`,
  endTimeUnixNano: `${NOON + 5}500000`,
  attributes: [
    { key: "engine.function.id", value: { stringValue: "orders::create" } },
    { key: "engine.invocation.id", value: { stringValue: "i-1" } },
    { key: "engine.caller", value: { stringValue: "forged" } },
    { key: "db.rows", value: { intValue: "12" } },
    { key: "apiKey", value: { stringValue: "x" } },
  ],
  status: { code: 2, message: "no" },
};

const frameOf = (...spans: unknown[]) => ({
  resourceSpans: [{
    resource: {
      attributes: [
        { key: "service.name", value: { stringValue: "orders" } },
        { key: "service.instance.id", value: { stringValue: "w-2" } },
      ],
    },
    scopeSpans: [{ scope: { name: "engine-sdk", version: "1" }, spans }],
  }],
});

Deno.test("readSpans() reads a handler's span and its call", () => {
  const { items: [span], dropped } = readSpans(frameOf(good), redactor);

  assert.equal(dropped, 0);
  assert.equal(span!.trace_id, idOf(1, 32));
  assert.equal(span!.parent_span_id, idOf(1, 16));
  assert.equal(span!.service_name, "orders");
  assert.deepEqual([span!.start_ms, span!.end_ms], [NOON, NOON + 5.5]);
  assert.deepEqual([span!.status, span!.status_description], ["error", "no"]);
  assert.deepEqual(Object.fromEntries(span!.attributes), {
    "engine.kind": "handler",
    "engine.function_id": "orders::create",
    "engine.invocation_id": "i-1",
    "engine.worker": "orders",
    "engine.worker_id": "w-2",
    "db.rows": 12,
    apiKey: "[redacted]",
  });
});

for (
  const [what, change] of [
    ["a trace id of zeros", { traceId: "0".repeat(32) }],
    ["a short span id", { spanId: "abc" }],
    ["no name", { name: undefined }],
    ["a name that is no text", { name: 5 }],
    ["no start", { startTimeUnixNano: undefined }],
    ["a start that is no time", { startTimeUnixNano: "soon" }],
    ["a start before time began", { startTimeUnixNano: "-5" }],
    ["attributes that are no list", { attributes: {} }],
  ] as const
) {
  Deno.test(`readSpans() skips a span with ${what} and reads the next`, () => {
    const { items, dropped } = readSpans(frameOf({ ...good, ...change }, good), redactor);

    assert.equal(items.length, 1);
    assert.equal(dropped, 1);
  });
}

for (const frame of [null, 5, "x", [], {}, { resourceSpans: {} }, { resourceSpans: [5] }]) {
  Deno.test(`readSpans() rejects the frame ${JSON.stringify(frame)}`, () => {
    assert.throws(() => readSpans(frame, redactor));
  });
}

Deno.test("readSpans() survives invalid list members and cuts long text", () => {
  const span = {
    ...good,
    name: "n".repeat(5_000),
    attributes: [null, 5, { key: 5 }, { key: "" }, { key: "a" }, { key: "b", value: 5 }],
    events: [null, 5, { name: "e", timeUnixNano: "x", attributes: [null] }],
    links: [{ traceId: 5 }],
    status: null,
  };

  const { items: [read] } = readSpans(frameOf(span, null, "x", [span]), redactor);

  assert.equal(read!.name.length, 1_024);
  assert.equal(read!.status, "unset");
  assert.equal(read!.events.length, 3);
});

Deno.test("readSpans() bounds the number of spans", () => {
  const spans = Array.from({ length: 6_000 }, (_, i) => ({ ...good, spanId: idOf(i, 16) }));

  const { items, dropped } = readSpans(frameOf(...spans), redactor);

  assert.deepEqual([items.length, dropped], [5_000, 1_000]);
});

Deno.test("readSpans() bounds the number of malformed spans and the length of ids", () => {
  const ids = ["1".repeat(1_000_000) + "x", "0".repeat(1_000_000), "0".repeat(32)];
  const broken = Array.from({ length: 50_000 }, (_, i) => ({ ...good, traceId: ids[i] ?? 5 }));
  const began = performance.now();

  const { items, dropped } = readSpans(frameOf(...broken, good), redactor);

  assert.deepEqual([items.length, dropped], [0, 50_001]);
  assert.ok(performance.now() - began < 10_000); // Minutes, if all of the ids were looked at.
});

Deno.test("readSpans() bounds the number of groups, empty ones included", () => {
  const [group] = frameOf(good).resourceSpans;
  const empty = Array.from({ length: 6_000 }, () => ({}));

  assert.equal(readSpans({ resourceSpans: [...empty, group] }, redactor).items.length, 0);
  const inner = { scopeSpans: [...empty, ...group!.scopeSpans] };
  assert.equal(readSpans({ resourceSpans: [inner] }, redactor).items.length, 0);
});
