/**
 * Log records travel as PROTOCOL 5.8 has them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newLog, NOON } from "../../../tests/fakes/spans.ts";
import { isAtLeast, severityNumber, severityOf, wireLog } from "./record.ts";

Deno.test("wireLog() has what is known of the line under the engine's own attributes", () => {
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

Deno.test("wireLog() lets no attribute of a stranger pass for the engine's", () => {
  const log = newLog({ attributes: { "engine.source": "engine", "engine.worker": "x" } });

  const { attributes } = wireLog({ ...log, seq: 1 });

  assert.deepEqual(attributes, { "engine.source": "logger", "engine.worker": "shop" });
});

Deno.test("severityOf() reads names and numbers, and takes the rest for info", () => {
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
