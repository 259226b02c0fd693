import assert from "node:assert/strict";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import * as v from "../../kit/schema.ts";
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { LogRecord } from "../logs/record.ts";
import { type Alert, AlertRules, Alerts, AlertTriggers } from "./alerts.ts";
import type { EngineSample } from "./sampler.ts";

function setup(rule: object) {
  const lines: LogLine[] = [];
  const notified: [string | undefined, Alert][] = [];
  const value = "log" in rule ? {} : { metric: "p99_ms", threshold: 100 };
  const rules = v.parse(AlertRules, [{ name: "slow", ...value, ...rule }]);
  const alerts = new Alerts(
    rules,
    0,
    recordingLog(lines),
    (alert, id) => notified.push([id, alert]),
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

function record(body: string, more: Partial<LogRecord> = {}): LogRecord {
  return { body, severity: "error", attributes: {}, source: "logger", ...more } as LogRecord;
}

Deno.test("A rule about log records counts those that match within within_s", () => {
  const log = { text: "Refused", min_level: "warn" };
  const it = setup({ log, threshold: 2, within_s: 10 });
  const log3 = [
    record("card refused"),
    record("REFUSED again"),
    record("x", {
      attributes: { why: "refused" },
    }),
  ];
  for (const each of log3) it.alerts.count(each, 1_500);
  it.alerts.count(record("refused, but fine", { severity: "info" }), 1_500);
  it.alerts.count(record("accepted"), 1_500);

  assert.deepEqual(it.see(null, 2_000), ["firing"]);
  const { metric, log: counted, value } = it.alerts.list()[0]!;
  assert.deepEqual([metric, counted, value], [null, { ...log, within_s: 10 }, 3]);
  assert.deepEqual(it.see(null, 10_999), []);
  assert.deepEqual(it.see(null, 11_000), ["ok"]);
  assert.equal(it.alerts.list()[0]!.value, 0);
});

Deno.test("By default one record within a minute fires, and a clock that jumps loses no count", () => {
  const it = setup({ log: {} });
  it.alerts.count(record("a"), 100_000);
  it.alerts.count(record("b"), 40_000); // The clock was set back.

  assert.deepEqual(it.see(null, 40_000), ["firing"]);
  assert.equal(it.alerts.list()[0]!.value, 2);
  assert.deepEqual(it.see(null, 100_000_000), ["ok"]);
});

Deno.test("What this worker logs itself does not count", () => {
  const it = setup({ log: { text: "an alert began" } });

  const own = { source: "engine", attributes: { by: "engine-observability" } } as const;
  it.alerts.count(record("an alert began", own), 0);

  assert.deepEqual(it.see(null, 0), []);
});

for (
  const [rule, problem] of [
    [{}, /either metric or log/],
    [{ metric: "p99_ms", log: {}, threshold: 1 }, /either metric or log/],
    [{ metric: "p99_ms" }, /needs a threshold/],
    [{ metric: "p99_ms", threshold: 1, within_s: 5 }, /within_s belongs to/],
    [{ log: {}, within_s: 0 }, /within_s|>=1|least/i],
    [{ log: { txt: "x" } }, /txt|never/i],
    [{ log: { text: "x".repeat(1_025) } }, /length/i],
  ] as const
) {
  Deno.test(`The rule ${JSON.stringify(rule).slice(0, 60)} is refused`, () => {
    const read = v.safeParse(AlertRules, [{ name: "r", ...rule }]);

    const text = read.issues?.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`).join();
    assert.match(text ?? "accepted", problem);
  });
}

function triggersOf(names: readonly string[]) {
  const fired: unknown[] = [];
  const worker = {
    trigger: ({ function_id, payload }: { function_id: string; payload?: unknown }) => {
      const { name, state } = payload as Alert;
      fired.push([function_id, name, state]);
      return Promise.resolve();
    },
  };
  const rules = v.parse(AlertRules, names.map((name) => ({ name, log: {} })));
  const directory = { trigger: () => undefined, worker: () => undefined };
  const triggers = new AlertTriggers(worker as never, rules, directory as never);
  const trigger = (id: string, config: object): TriggerInstance =>
    ({ id, trigger_type: "alert", function_id: id, config }) as unknown as TriggerInstance;
  const alert = (name: string, state: Alert["state"]) => ({ name, state }) as Alert;
  return { triggers, trigger, alert, fired };
}

Deno.test("Triggers of type alert fire for their rule and state", () => {
  const { triggers, trigger, alert, fired } = triggersOf(["slow", "full"]);
  triggers.add(trigger("all", {}));
  triggers.add(trigger("of slow", { name: "slow" }));
  triggers.add(trigger("ends", { state: "ok" }));
  triggers.add(trigger("gone", {}));
  triggers.remove("gone");

  triggers.fire(alert("slow", "firing"));
  triggers.fire(alert("full", "ok"));

  assert.deepEqual(fired, [
    ["all", "slow", "firing"],
    ["of slow", "slow", "firing"],
    ["all", "full", "ok"],
    ["ends", "full", "ok"],
  ]);
});

Deno.test("A trigger for a rule that there is not is refused with the nearest name", () => {
  const { triggers, trigger } = triggersOf(["slow"]);

  const code = "trigger_registration_failed";
  const near = { code, message: 'There is no alert rule "slwo"; did you mean slow?' };
  assert.throws(() => triggers.add(trigger("a", { name: "slwo" })), near);
  assert.throws(() => triggers.add(trigger("a", { name: "anything" })), { code });
  assert.throws(() => triggers.add(trigger("a", { state: "pending" })), { code });
});
