/**
 * The configuration has defaults for everything, and reports every problem.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { MetricsConfig, parseObservabilityConfig } from "./config.ts";

Deno.test("The defaults record everything in memory and nothing on disk", () => {
  const { traces, logs, redact } = parseObservabilityConfig(undefined);

  assert.deepEqual(traces, {
    enabled: true,
    sampling: 1,
    rules: [],
    memory_mb: 32,
    disk_mb: 0,
    payload_chars: 2_048,
  });
  assert.deepEqual(logs, { memory_mb: 16, disk_mb: 0, level: "debug" });
  assert.deepEqual(redact, []);
});

Deno.test("A section that is given keeps the defaults of the others", () => {
  const { traces, logs } = parseObservabilityConfig({ traces: { sampling: 0.1 }, logs: {} });

  assert.equal(traces.sampling, 0.1);
  assert.equal(traces.memory_mb, 32);
  assert.equal(logs.level, "debug");
});

for (
  const wrong of [
    { traces: { sampling: 2 } },
    { traces: { sampling: "all" } },
    { traces: { memory_mb: 0 } },
    { traces: { disk_mb: -1 } },
    { traces: { payload_chars: 1_000_000 } },
    { traces: { rules: [{ operation: "", rate: 1 }] } },
    { traces: { rules: [{ operation: "a::*", rate: 1.5 }] } },
    { traces: { rules: { operation: "a::*", rate: 1 } } },
    { traces: { samplin: 1 } },
    { logs: { level: "loud" } },
    { redact: "password" },
    { redact: [""] },
    { trace: {} },
    [],
    "on",
  ] as Json[]
) {
  Deno.test(`A configuration ${JSON.stringify(wrong)} is refused`, () => {
    assert.throws(() => parseObservabilityConfig(wrong), { name: "SchemaError" });
  });
}

Deno.test("Every problem is reported at once", () => {
  const wrong = { traces: { sampling: 2, memory_mb: 0 }, logs: { level: "loud" } };

  assert.throws(() => parseObservabilityConfig(wrong), (error: { issues: unknown[] }) => {
    return error.issues.length === 3;
  });
});

Deno.test("Metrics have defaults", () => {
  assert.deepEqual(v.parse(MetricsConfig, {}), { prometheus: true, alerts: [] });
});

Deno.test("A rule about a metric has defaults for all but name and threshold", () => {
  const rule = { name: "slow", metric: "p99_ms", threshold: 100 };

  assert.deepEqual(v.parse(MetricsConfig, { alerts: [rule] }).alerts, [
    { ...rule, operator: ">", for_s: 10, within_s: 60 },
  ]);
});

const RULE = { name: "a", metric: "p99_ms", threshold: 1 };
const WRONG: Json[] = [
  { prometheus: "yes" },
  { unknown: 1 },
  { alerts: [{ ...RULE, metric: "temperature" }] },
  { alerts: [{ ...RULE, operator: "~" }] },
  { alerts: [{ ...RULE, threshold: "high" }] },
  { alerts: [{ ...RULE, for_s: -1 }] },
  { alerts: [{ ...RULE, more: 1 }] },
  { alerts: [RULE, RULE] },
  { alerts: [{ name: "", metric: "p99_ms", threshold: 1 }] },
];
for (const config of WRONG) {
  Deno.test(`Metrics refuse ${JSON.stringify(config)}`, () => {
    assert.equal(v.safeParse(MetricsConfig, config).success, false);
  });
}
