import assert from "node:assert/strict";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import * as v from "../../kit/schema.ts";
import { type Alert, AlertRules, Alerts } from "./alerts.ts";
import type { EngineSample } from "./sampler.ts";

function setup(rule: object) {
  const lines: LogLine[] = [];
  const notified: [string, Alert][] = [];
  const rules = v.parse(AlertRules, [{ name: "slow", metric: "p99_ms", threshold: 100, ...rule }]);
  const alerts = new Alerts(
    rules,
    0,
    recordingLog(lines),
    (id, alert) => notified.push([id, alert]),
  );
  const see = (p99_ms: number | null, nowMs: number): (string | undefined)[] =>
    alerts.evaluate({ p99_ms } as EngineSample, nowMs).map(({ state }) => state);
  const state = () => alerts.list()[0]!.state;
  return { alerts, lines, notified, see, state };
}

Deno.test("An alert starts to fire when its rule has held for for_s", () => {
  const it = setup({ for_s: 10 });

  assert.deepEqual(it.see(200, 1_000), []);
  assert.equal(it.state(), "pending");
  assert.deepEqual(it.see(200, 10_999), []);
  assert.deepEqual(it.see(200, 11_000), ["firing"]);
  assert.deepEqual(it.see(300, 12_000), []);
  assert.deepEqual(it.alerts.list(), [{
    name: "slow",
    metric: "p99_ms",
    operator: ">",
    threshold: 100,
    value: 300,
    state: "firing",
    since_ms: 11_000,
  }]);
});

Deno.test("A pending alert starts over when its rule stops holding", () => {
  const it = setup({ for_s: 10 });
  it.see(200, 0);
  it.see(50, 5_000);
  it.see(200, 6_000);

  assert.deepEqual(it.see(200, 15_999), []);
  assert.deepEqual(it.see(200, 16_000), ["firing"]);
});

Deno.test("An alert is logged once when it starts to fire and once when it ends", () => {
  const it = setup({ for_s: 0, function_id: "ops::page" });
  for (const [i, value] of [200, 200, 200, 50, 50].entries()) it.see(value, i * 1_000);

  assert.deepEqual(it.lines.map(({ level, text }) => [level, text]), [
    ["warn", "an alert began"],
    ["info", "an alert ended"],
  ]);
  assert.deepEqual(it.notified.map(([id, { state }]) => [id, state]), [
    ["ops::page", "firing"],
    ["ops::page", "ok"],
  ]);
});

Deno.test("An alert ends when its value becomes unknown", () => {
  const it = setup({ for_s: 0 });
  it.see(200, 0);

  assert.deepEqual(it.see(null, 1_000), ["ok"]);
});

for (
  const [operator, holding, not] of [
    [">", 101, 100],
    [">=", 100, 99],
    ["<", 99, 100],
    ["<=", 100, 101],
  ] as const
) {
  Deno.test(`The rule ${operator} 100 holds for ${holding} and not for ${not}`, () => {
    const it = setup({ operator, for_s: 0 });

    assert.deepEqual(it.see(not, 0), []);
    assert.deepEqual(it.see(holding, 1), ["firing"]);
  });
}
