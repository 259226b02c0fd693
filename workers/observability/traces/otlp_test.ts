/**
 * Spans that workers send as OTLP are read; what is broken in them harms nothing else.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, NOON } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { cut, readAttributes, readNanos, readSpans, readValue } from "./otlp.ts";

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

Deno.test("readSpans() reads a handler's span and what call it belongs to", () => {
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
  Deno.test(`readSpans() leaves out a span with ${what} and keeps the next`, () => {
    const { items, dropped } = readSpans(frameOf({ ...good, ...change }, good), redactor);

    assert.equal(items.length, 1);
    assert.equal(dropped, 1);
  });
}

for (const frame of [null, 5, "x", [], {}, { resourceSpans: {} }, { resourceSpans: [5] }]) {
  Deno.test(`readSpans() refuses a frame ${JSON.stringify(frame)}`, () => {
    assert.throws(() => readSpans(frame, redactor));
  });
}

Deno.test("readSpans() survives junk inside of lists and cuts what is too long", () => {
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

Deno.test("readSpans() takes no more than a bounded number of spans", () => {
  const spans = Array.from({ length: 6_000 }, (_, i) => ({ ...good, spanId: idOf(i, 16) }));

  const { items, dropped } = readSpans(frameOf(...spans), redactor);

  assert.deepEqual([items.length, dropped], [5_000, 1_000]);
});

Deno.test("readSpans() looks at no more broken spans than whole ones, and at no endless id", () => {
  const ids = ["1".repeat(1_000_000) + "x", "0".repeat(1_000_000), "0".repeat(32)];
  const broken = Array.from({ length: 50_000 }, (_, i) => ({ ...good, traceId: ids[i] ?? 5 }));
  const began = performance.now();

  const { items, dropped } = readSpans(frameOf(...broken, good), redactor);

  assert.deepEqual([items.length, dropped], [0, 50_001]);
  assert.ok(performance.now() - began < 10_000); // Minutes, if all of the ids were looked at.
});

Deno.test("readSpans() looks at a bounded number of groups, empty ones too", () => {
  const [group] = frameOf(good).resourceSpans;
  const empty = Array.from({ length: 6_000 }, () => ({}));

  assert.equal(readSpans({ resourceSpans: [...empty, group] }, redactor).items.length, 0);
  const inner = { scopeSpans: [...empty, ...group!.scopeSpans] };
  assert.equal(readSpans({ resourceSpans: [inner] }, redactor).items.length, 0);
});

Deno.test("cut() keeps nothing alive of what a text was cut from", () => {
  const bytes = new Uint8Array(1024 * 1024).fill(0x78);
  const before = Deno.memoryUsage().heapUsed;

  const texts = Array.from({ length: 500 }, () => {
    const large = new TextDecoder().decode(bytes);
    return [cut(large, 100), cut(large.slice(0, 50), 100)];
  });

  assert.ok(Deno.memoryUsage().heapUsed - before < 250 * 1024 * 1024);
  assert.equal(texts.length, 500);
});

Deno.test("readAttributes() keeps a bounded number of names, the last value of each", () => {
  const list = Array.from({ length: 1_000 }, (_, i) => ({
    key: `k${i}`,
    value: { boolValue: true },
  }));

  assert.equal(readAttributes(list, redactor).size, 128);
  assert.deepEqual(
    [...readAttributes([{ key: "a", value: { intValue: 1 } }, {
      key: "a",
      value: { intValue: 2 },
    }], redactor)],
    [["a", 2]],
  );
});

Deno.test("readValue() reads every kind of value, and numbers too large to be exact as text", () => {
  const values = [
    { intValue: "9007199254740993" },
    { intValue: 5 },
    { doubleValue: 1.5 },
    { doubleValue: "NaN" },
    { doubleValue: "2.5" },
    { boolValue: false },
    { bytesValue: "AA==" },
    { arrayValue: { values: [{ stringValue: "a" }, {}] } },
    { kvlistValue: { values: [{ key: "k", value: { intValue: 1 } }, 5] } },
    { stringValue: 5 },
    {},
  ];

  assert.deepEqual(values.map((value) => readValue(value, 0)), [
    "9007199254740993",
    5,
    1.5,
    null,
    2.5,
    false,
    "AA==",
    ["a", null],
    { k: 1 },
    null,
    null,
  ]);
});

Deno.test("readValue() does not follow values that are nested without end", () => {
  let value: unknown = { stringValue: "deep" };
  for (let i = 0; i < 5_000; i++) value = { arrayValue: { values: [value] } };

  assert.doesNotMatch(JSON.stringify(readValue(value, 0)), /deep/);
});

Deno.test("readNanos() knows what is no time", () => {
  assert.equal(readNanos(`${NOON}000000`), NOON);
  for (const none of [null, undefined, "", "x", 0, "0", -1, Infinity]) {
    assert.equal(readNanos(none), undefined);
  }
});
