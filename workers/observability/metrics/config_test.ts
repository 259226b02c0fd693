import assert from "node:assert/strict";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { MetricsConfig } from "./config.ts";

Deno.test("Metrics need no configuration", () => {
  assert.deepEqual(MetricsConfig.parse({}), { prometheus: true, alerts: [] });
});

Deno.test("A rule has defaults for all but its name, its value and its threshold", () => {
  const rule = { name: "slow", metric: "p99_ms", threshold: 100 };

  assert.deepEqual(MetricsConfig.parse({ alerts: [rule] }).alerts, [
    { ...rule, operator: ">", for_s: 10 },
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
    assert.equal(MetricsConfig.safeParse(config).success, false);
  });
}
