/**
 * Log records: wire form (PROTOCOL 5.8), OTLP frames and printed lines.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, newLog, NOON } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { isAtLeast, logOfPrint, readLogs, severityNumber, severityOf, wireLog } from "./record.ts";

Deno.test("wireLog() adds the engine's attributes", () => {
  const log = newLog({
    attributes: { order: 7 },
    replica: 2,
    function_id: "a::b",
    at_ms: NOON + 0.25,
    severity: "warn",
  });

  assert.deepEqual(wireLog({ ...log, seq: 5 }), {
    seq: 5,
    timestamp_unix_nano: (NOON * 1e3 + 250) * 1e3,
    observed_timestamp_unix_nano: NOON * 1e6,
    severity_number: 13,
    severity_text: "WARN",
    body: "hello",
    attributes: {
      order: 7,
      "engine.worker": "shop",
      "engine.replica": 2,
      "engine.source": "logger",
      "engine.function_id": "a::b",
    },
    trace_id: null,
    span_id: null,
    resource: { "service.name": "shop" },
    service_name: "shop",
    instrumentation_scope_name: null,
    instrumentation_scope_version: null,
  });
});

Deno.test("wireLog() does not let workers set the engine's attributes", () => {
  const log = newLog({ attributes: { "engine.source": "engine", "engine.worker": "x" } });

  const { attributes } = wireLog({ ...log, seq: 1 });

  assert.deepEqual(attributes, { "engine.source": "logger", "engine.worker": "shop" });
});

Deno.test("severityOf() reads names and numbers, and defaults to info", () => {
  const known = ["TRACE", "Debug2", "info", "WARNING", "error", "FATAL", "critical"];
  assert.deepEqual(known.map((text) => severityOf(text)), [
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "error",
    "error",
  ]);
  assert.deepEqual([1, 4, 5, 9, 12, 13, 17, 24, 99].map((n) => severityOf(null, n)), [
    "trace",
    "trace",
    "debug",
    "info",
    "info",
    "warn",
    "error",
    "error",
    "error",
  ]);
  for (const n of [0, -5, NaN, Infinity]) assert.equal(severityOf("loud", n), "info");
});

Deno.test("severityNumber() and isAtLeast() agree on the order", () => {
  assert.deepEqual((["trace", "debug", "info", "warn", "error"] as const).map(severityNumber), [
    1,
    5,
    9,
    13,
    17,
  ]);
  assert.equal(isAtLeast("warn", "info"), true);
  assert.equal(isAtLeast("info", "info"), true);
  assert.equal(isAtLeast("debug", "info"), false);
});

const redactor = new Redactor();
const good = {
  timeUnixNano: `${NOON}500000`,
  severityNumber: 13,
  severityText: "WARN",
  body: { stringValue: "low stock" },
  attributes: [
    { key: "sku", value: { stringValue: "tea" } },
    { key: "data", value: { kvlistValue: { values: [{ key: "token", value: { intValue: 1 } }] } } },
    { key: "engine.source", value: { stringValue: "engine" } },
    { key: "engine.function.id", value: { stringValue: "stock::take" } },
  ],
  traceId: idOf(1, 32).toUpperCase(),
  spanId: idOf(1, 16),
};

const frameOf = (...logRecords: unknown[]) => ({
  resourceLogs: [{
    resource: { attributes: [{ key: "service.name", value: { stringValue: "stock" } }] },
    scopeLogs: [{ scope: { name: "logger" }, logRecords }],
  }],
});

Deno.test("readLogs() reads a record with its trace, and redacts secrets", () => {
  const { items: [log], dropped } = readLogs(frameOf(good), redactor, NOON + 9);

  assert.equal(dropped, 0);
  assert.deepEqual(log, {
    at_ms: NOON + 0.5,
    observed_ms: NOON + 9,
    severity: "warn",
    body: "low stock",
    attributes: { sku: "tea", data: { token: "[redacted]" } },
    trace_id: idOf(1, 32),
    span_id: idOf(1, 16),
    service_name: "stock",
    worker: "stock",
    replica: null,
    source: "logger",
    function_id: "stock::take",
    scope_name: "logger",
  });
});

Deno.test("readLogs() accepts records without time or body, and invalid ids", () => {
  const odd = { body: { kvlistValue: { values: [] } }, traceId: "0".repeat(32), spanId: "zz" };

  const { items } = readLogs(
    frameOf({}, odd, { observedTimeUnixNano: `${NOON}000000` }),
    redactor,
    5,
  );

  assert.deepEqual(items.map(({ at_ms, body, severity }) => [at_ms, body, severity]), [
    [5, "", "info"],
    [5, "{}", "info"],
    [NOON, "", "info"],
  ]);
  assert.deepEqual([items[1]!.trace_id, items[1]!.span_id], [null, null]);
});

Deno.test("readLogs() skips malformed records, cuts long ones and bounds their number", () => {
  const long = { ...good, body: { stringValue: "x".repeat(100_000) } };
  const many = Array.from({ length: 5_010 }, () => long);

  const { items, dropped } = readLogs(
    frameOf(null, 5, { severityNumber: "x" }, { attributes: {} }, ...many),
    redactor,
    NOON,
  );

  assert.deepEqual([items.length, dropped], [5_000, 14]);
  assert.equal(items[0]!.body.length, 32_768);
});

for (const frame of [null, 5, "x", [], {}, { resourceLogs: {} }, { resourceLogs: [5] }]) {
  Deno.test(`readLogs() rejects the frame ${JSON.stringify(frame)}`, () => {
    assert.throws(() => readLogs(frame, redactor, NOON));
  });
}

const printed = {
  worker: "stock",
  replica: 2,
  stream: "stdout" as const,
  text: "hello",
  at_ms: NOON,
  trace: null,
  isLogger: false,
};

Deno.test("logOfPrint() has worker, replica and the call that printed the line", () => {
  const trace = { trace_id: idOf(1, 32), span_id: idOf(1, 16) };

  const log = logOfPrint({ ...printed, trace }, NOON + 1);

  assert.deepEqual([log.worker, log.replica, log.source], ["stock", 2, "output"]);
  assert.deepEqual([log.trace_id, log.span_id], [trace.trace_id, trace.span_id]);
  assert.deepEqual(log.attributes, { stream: "stdout" });
});

for (
  const [text, stream, expected] of [
    ["hello", "stdout", "info"],
    ["hello", "stderr", "warn"],
    ["ERROR [shop] boom", "stdout", "error"],
    ["\u001b[33mWARN \u001b[0m low", "stdout", "warn"],
    ["2026-01-01 12:00:00 [DEBUG] x", "stderr", "debug"],
    ["INFO:     Started", "stderr", "info"],
    ["CRITICAL:root:down", "stderr", "error"],
    ["no error here", "stdout", "info"],
    [`${"x".repeat(80)} ERROR: late`, "stdout", "info"],
  ] as const
) {
  Deno.test(`logOfPrint() rates ${JSON.stringify(text.slice(-40))} on ${stream} as ${expected}`, () => {
    const log = logOfPrint({ ...printed, text, stream }, NOON);

    assert.equal(log.severity, expected);
    assert.ok(!log.body.includes("\u001b"));
  });
}
