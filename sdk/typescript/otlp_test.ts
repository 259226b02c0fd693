import assert from "node:assert/strict";
import { encodeFrame, encodeGauge, encodeLog, encodeSpan, parseShown } from "./otlp.ts";
import type { Json } from "./wire/protocol.ts";

const AT = Date.UTC(2026, 0, 1) + 0.25;
const NANOS = "1767225600000250000";
const TRACE = { trace_id: "a".repeat(32), span_id: "b".repeat(16), isSampled: true };

Deno.test("encodeLog() contains time, level, text and trace", () => {
  const text = encodeLog({ level: "warn", message: "late", at_ms: AT, trace: TRACE });

  assert.deepEqual(JSON.parse(text), {
    timeUnixNano: NANOS,
    observedTimeUnixNano: NANOS,
    severityNumber: 13,
    severityText: "WARN",
    body: { stringValue: "late" },
    traceId: TRACE.trace_id,
    spanId: TRACE.span_id,
    flags: 1,
  });
});

for (
  const [level, number] of [["trace", 1], ["debug", 5], ["info", 9], ["error", 17]] as const
) {
  Deno.test(`encodeLog() uses the number ${number} for ${level}`, () => {
    const { severityNumber, severityText } = JSON.parse(
      encodeLog({ level, message: "", at_ms: AT }),
    );

    assert.deepEqual([severityNumber, severityText], [number, level.toUpperCase()]);
  });
}

const DATA: [string, Json, Json][] = [
  ["members of an object", { order: 7, sum: 1.5, paid: true, note: null }, [
    { key: "order", value: { intValue: "7" } },
    { key: "sum", value: { doubleValue: 1.5 } },
    { key: "paid", value: { boolValue: true } },
    { key: "note", value: {} },
  ]],
  ["a text", "x", [{ key: "data", value: { stringValue: "x" } }]],
  ["null", null, [{ key: "data", value: {} }]],
  ["a list", [1, "a"], [{
    key: "data",
    value: { arrayValue: { values: [{ intValue: "1" }, { stringValue: "a" }] } },
  }]],
  ["a number that no integer holds", 2 ** 60, [{
    key: "data",
    value: { doubleValue: 2 ** 60 },
  }]],
  ["an object in an object", { a: { b: "c" } }, [{
    key: "a",
    value: { kvlistValue: { values: [{ key: "b", value: { stringValue: "c" } }] } },
  }]],
];
for (const [name, data, attributes] of DATA) {
  Deno.test(`encodeLog() encodes ${name} as attributes`, () => {
    assert.deepEqual(
      JSON.parse(encodeLog({ level: "info", message: "", data, at_ms: AT })).attributes,
      attributes,
    );
  });
}

Deno.test("encodeLog() encodes deeply nested values as JSON text", () => {
  let data: Json = { end: 1 };
  for (let i = 0; i < 100; i++) data = { in: data };

  const text = encodeLog({ level: "info", message: "", data, at_ms: AT });

  assert.match(text, /\{"stringValue":"\{\\"in\\":/);
});

Deno.test("encodeLog() cuts long texts", () => {
  const long = "x".repeat(32 * 1024 + 1);

  const { body, attributes } = JSON.parse(
    encodeLog({ level: "info", message: long, data: { long }, at_ms: AT }),
  );

  const cut = `${long.slice(1)}…`;
  assert.equal(body.stringValue, cut);
  assert.equal(attributes[0].value.stringValue, cut);
});

Deno.test("parseShown() returns the value, or the start of a long text", () => {
  assert.deepEqual(parseShown('{"a":[1]}'), { a: [1] });
  assert.equal(parseShown("[object Object]"), "[object Object]");
  const long = JSON.stringify("x".repeat(32 * 1024));
  assert.equal(parseShown(long), `${long.slice(0, 32 * 1024)}…`);
});

const SPAN = {
  trace_id: TRACE.trace_id,
  span_id: "c".repeat(16),
  parent_span_id: TRACE.span_id,
  name: "execute a::b",
  start_ms: AT,
  end_ms: AT + 2,
  attributes: { "engine.function.id": "a::b", "engine.error_code": undefined },
};

Deno.test("encodeSpan() has kind SERVER and the parent of the engine", () => {
  assert.deepEqual(JSON.parse(encodeSpan({ ...SPAN, error: undefined })), {
    traceId: SPAN.trace_id,
    spanId: SPAN.span_id,
    parentSpanId: SPAN.parent_span_id,
    name: "execute a::b",
    kind: 2,
    startTimeUnixNano: NANOS,
    endTimeUnixNano: "1767225600002250000",
    attributes: [{ key: "engine.function.id", value: { stringValue: "a::b" } }],
    status: { code: 1 },
  });
});

Deno.test("encodeSpan() contains the error message", () => {
  const { status } = JSON.parse(encodeSpan({ ...SPAN, error: "no such order" }));

  assert.deepEqual(status, { code: 2, message: "no such order" });
});

Deno.test("encodeGauge() names the function that a gauge is about", () => {
  const text = encodeGauge({ name: "m", unit: "s", value: 2, functionId: "a::b" }, AT);

  const attributes = [{ key: "engine.function.id", value: { stringValue: "a::b" } }];
  const dataPoints = [{ timeUnixNano: NANOS, asDouble: 2, attributes }];
  assert.deepEqual(JSON.parse(text), { name: "m", unit: "s", gauge: { dataPoints } });
});

Deno.test("encodeFrame() starts with the signal, then the records of each resource", () => {
  const gauge = encodeGauge({ name: "m", unit: "By", value: 5 }, AT);
  const frame = new TextDecoder().decode(
    encodeFrame("MTRC", [{ resource: { "service.name": "größe" }, records: [gauge] }], "1.2"),
  );

  assert.equal(frame.slice(0, 4), "MTRC");
  assert.deepEqual(JSON.parse(frame.slice(4)), {
    resourceMetrics: [{
      resource: { attributes: [{ key: "service.name", value: { stringValue: "größe" } }] },
      scopeMetrics: [{
        scope: { name: "engine-sdk", version: "1.2" },
        metrics: [{
          name: "m",
          unit: "By",
          gauge: { dataPoints: [{ timeUnixNano: NANOS, asDouble: 5 }] },
        }],
      }],
    }],
  });
});

for (
  const [signal, keys] of [
    ["LOGS", ["resourceLogs", "scopeLogs", "logRecords"]],
    ["OTLP", ["resourceSpans", "scopeSpans", "spans"]],
  ] as const
) {
  Deno.test(`encodeFrame() wraps ${signal} in ${keys[0]}`, () => {
    const groups = [{ resource: {}, records: ["1", "2"] }, { resource: {}, records: ["3"] }];

    const text = new TextDecoder().decode(encodeFrame(signal, groups, "1"));

    const [outer, inner, list] = keys;
    const records = JSON.parse(text.slice(4))[outer].map((group: Record<string, never>) =>
      group[inner]![0]![list]
    );
    assert.deepEqual([text.slice(0, 4), records], [signal, [[1, 2], [3]]]);
  });
}
