import assert from "node:assert/strict";
import type { CallRequest, TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import { FakeDirectory } from "../../../tests/fakes/fake_supervision.ts";
import type { MetricsSample } from "./sampler.ts";
import { TELEMETRY_TRIGGERS_MAX } from "../trigger_quota.ts";
import { MetricsTriggers, type MetricsTriggersSetup } from "./triggers.ts";

function setup() {
  const at = new FakeMetrics();
  const calls: CallRequest[] = [];
  /** Time of each firing, and of all so far; no timer ends meanwhile. */
  const cost = { each: 0, ms: 0 };
  const worker = {
    trigger: (request: CallRequest) => {
      calls.push(request);
      cost.ms += cost.each;
      return Promise.reject(new Error("stopping"));
    },
  } as unknown as MetricsTriggersSetup["worker"];
  const { sampler } = at;
  const now = (): number => at.clock.now() + cost.ms;
  const clock = {
    now,
    wall: now,
    after: (ms: number, task: () => void) => at.clock.after(ms, task),
  };
  const directory = new FakeDirectory();
  const triggers = new MetricsTriggers({ worker, sampler, clock, directory });
  const add = (id: string, config: Json = {}, more: Partial<TriggerInstance> = {}): void =>
    triggers.add({
      id,
      trigger_type: "engine::metrics-sampled",
      function_id: `f::${id}`,
      config,
      metadata: undefined,
      namespace: undefined,
      ...more,
    });
  const fired = (id: string): MetricsSample[] =>
    calls.filter(({ function_id }) => function_id === `f::${id}`)
      .map(({ payload }) => payload as unknown as MetricsSample);
  return { at, calls, cost, triggers, add, fired, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("A trigger fires each second by default", () => {
  using it = setup();
  it.add("t");
  it.at.meters.call("a::b", { ms: 1, times: 5 });
  it.at.clock.tick(3_000);

  const samples = it.fired("t");
  assert.deepEqual(samples.map(({ engine }) => engine.calls_per_s), [5, 0, 0]);
  assert.deepEqual(samples[0], { ...samples[0], interval_ms: 1_000 });
  assert.deepEqual(it.calls[0]!.action, { type: "void" });
});

Deno.test("A trigger receives the sum over its interval", () => {
  using it = setup();
  it.add("t", { interval_ms: 5_000 });
  for (let i = 0; i < 10; i++) {
    it.at.meters.call("a::b", { ms: 1, times: i });
    it.at.clock.tick(1_000);
  }

  assert.deepEqual(
    it.fired("t").map(({ engine, interval_ms }) => [engine.calls_per_s, interval_ms]),
    [
      [2, 5_000],
      [7, 5_000],
    ],
  );
});

Deno.test("Intervals are rounded up to whole seconds", () => {
  using it = setup();
  it.add("t", { interval_ms: 1_001 });
  it.at.clock.tick(6_000);

  assert.equal(it.fired("t").length, 3);
});

Deno.test("Calls carry the trigger's namespace and metadata", () => {
  using it = setup();
  it.add("t", {}, { namespace: "eu", metadata: { a: 1 } });
  it.at.clock.tick(1_000);

  const { namespace, metadata } = it.calls[0]!;
  assert.deepEqual({ namespace, metadata }, { namespace: "eu", metadata: { a: 1 } });
});

Deno.test("A removed or replaced trigger no longer fires", () => {
  using it = setup();
  it.add("gone");
  it.add("moved");
  it.triggers.remove("gone");
  it.triggers.remove("missing");
  it.add("moved", { interval_ms: 2_000 });
  it.at.clock.tick(4_000);

  assert.equal(it.fired("gone").length, 0);
  assert.equal(it.fired("moved").length, 2);
});

Deno.test("A disposed MetricsTriggers fires nothing", () => {
  using it = setup();
  it.add("t");
  it.triggers[Symbol.dispose]();
  it.at.clock.tick(2_000);

  assert.deepEqual(it.calls, []);
});

for (const interval_ms of [999, 60_001, -1, "1000", null]) {
  Deno.test(`A trigger with interval_ms ${JSON.stringify(interval_ms)} is refused`, () => {
    using it = setup();

    assert.throws(() => it.add("t", { interval_ms }), {
      code: "trigger_registration_failed",
      message: /interval_ms/,
    });
  });
}

Deno.test("1,000 triggers fire in slices, those that are removed meanwhile not at all", () => {
  using it = setup();
  for (let i = 0; i < TELEMETRY_TRIGGERS_MAX; i++) it.add(`t${i}`);
  it.cost.each = 1 / 16;
  it.at.clock.tick(1_000);
  assert.ok(it.calls.length < 100, `${it.calls.length} firings at once`);
  it.triggers.remove("t999");

  for (let ticks = 0; ticks < 100; ticks++) {
    const before = it.calls.length;
    it.at.clock.tick(1);
    assert.ok(it.calls.length - before < 100, `${it.calls.length - before} firings at once`);
  }
  assert.equal(new Set(it.calls.map(({ function_id }) => function_id)).size, 999);
  assert.equal(it.calls.length, 999);
});

Deno.test("The number of triggers is bounded", () => {
  using it = setup();
  for (let i = 0; i < TELEMETRY_TRIGGERS_MAX; i++) it.add(`t${i}`);

  assert.throws(() => it.add("one more"), { code: "trigger_registration_failed" });
  it.add("t0", { interval_ms: 2_000 });
});

Deno.test("The trigger type publishes its config schema", () => {
  using it = setup();
  const types: unknown[] = [];
  const registerTriggerType = (type: unknown) => {
    types.push(type);
    return { id: "", unregister() {} };
  };
  it.triggers.register({ registerTriggerType } as never);

  const [{ id, trigger_request_format }] = types as [{
    id: string;
    trigger_request_format: { properties: { interval_ms: { minimum: number } } };
  }];
  assert.equal(id, "engine::metrics-sampled");
  assert.equal(trigger_request_format.properties.interval_ms.minimum, 1_000);
});
