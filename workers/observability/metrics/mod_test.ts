/**
 * Metrics of a real router with real workers.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { PageAnswer } from "../../../engine/ports/connection.ts";
import type { EngineInfo, Supervision, WorkerStatus } from "../../../engine/ports/supervision.ts";
import { MemoryStore } from "../../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { supervisedWorker } from "../../../tests/fakes/fake_metrics.ts";
import { LocalEngine } from "../../../tests/fakes/local_engine.ts";
import type { BuiltinWorker } from "../../kit/define.ts";
import * as v from "../../kit/schema.ts";
import { MetricsConfig } from "../config.ts";
import { startMetrics } from "./mod.ts";
import type { MetricsSample } from "./sampler.ts";

// deno-lint-ignore no-explicit-any -- Deep looks into a JSON text.
type Loose = Record<string, any>;

async function setup(config: Json = {}, supervised: WorkerStatus[] = []) {
  const clock = new FakeClock();
  const descriptors = { open: 1, limit: 2 };
  const info = () => ({ version: "1.2.3", started_at_ms: clock.wall(), descriptors }) as EngineInfo;
  const supervision = { list: () => Promise.resolve(supervised), info } as unknown as Supervision;
  const local = new LocalEngine({ clock, store: new MemoryStore(), supervision });
  const metrics: BuiltinWorker<Json> = {
    name: "engine-observability",
    summary: "",
    parse: (raw) => raw as Json,
    start: (worker, _, host) => {
      const quiet = { listen: () => () => {} };
      const parts = { spans: quiet, logs: quiet, env: {} };
      const read = v.parse(MetricsConfig, config);
      return Promise.resolve(startMetrics({ worker, host, config: read, ...parts }));
    },
  };
  const stop = await local.start(metrics);
  const worker = await local.connect("math");
  worker.registerFunction("math::add", (payload) => payload);
  worker.registerFunction("math::fail", () => {
    throw Object.assign(new Error("no"), { code: "boom" });
  });
  await local.settle();
  const call = async (function_id: string, payload: Json = {}) =>
    await worker.trigger<Json, Loose>({ function_id, payload });
  const second = async () => {
    clock.tick(1_000);
    await local.settle();
  };
  const page = async (path: string): Promise<PageAnswer> => {
    const request = { path, query: new URLSearchParams(), headers: new Headers() };
    return await local.pages.get(path)!.answer(request);
  };
  return {
    local,
    clock,
    worker,
    call,
    second,
    page,
    stop,
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

Deno.test("A sample counts the calls of the last second", async () => {
  await using it = await setup();
  for (let i = 0; i < 5; i++) await it.call("math::add", { i });
  await it.call("math::fail").catch(() => {});
  await it.second();

  const { engine, functions, workers } = await it.call("engine::metrics::sample");

  assert.deepEqual([engine.calls_per_s, engine.errors_per_s], [6, 1]);
  assert.ok(engine.p99_ms !== null && engine.lines >= 2 && engine.memory_bytes > 0);
  const own = functions.filter((each: Loose) => each.function_id.startsWith("math::"));
  assert.deepEqual(own.map((each: Loose) => [each.function_id, each.calls_per_s]), [
    ["math::add", 5],
    ["math::fail", 1],
  ]);
  assert.ok(workers.some(({ name }: Loose) => name === "math"));
});

Deno.test("A trigger of type engine::metrics-sampled gets samples", async () => {
  await using it = await setup();
  const samples: MetricsSample[] = [];
  it.worker.registerFunction("watch::sampled", (payload) => {
    samples.push(payload as unknown as MetricsSample);
  }, { metadata: { internal: true } });
  it.worker.registerTrigger({ type: "engine::metrics-sampled", function_id: "watch::sampled" });
  await it.local.settle();
  await it.call("math::add");
  await it.second();
  await it.second();

  assert.deepEqual(samples.map(({ engine }) => engine.calls_per_s), [1, 0]);
  assert.deepEqual(samples[1]!.functions, []);
});

Deno.test("engine::metrics::series and ::functions report the same calls", async () => {
  await using it = await setup();
  await it.call("math::add");
  await it.call("math::fail").catch(() => {});
  await it.second();

  const series = await it.call("engine::metrics::series", { function_id: "math::fail" });
  assert.deepEqual(series.functions.map((each: Loose) => [each.calls_per_s, each.errors_per_s]), [
    [[1], [1]],
  ]);
  const { functions } = await it.call("engine::metrics::functions");
  const fail = functions.find(({ function_id }: Loose) => function_id === "math::fail");
  assert.deepEqual([fail.calls, fail.errors, fail.in_flight], [1, { boom: 1 }, 0]);
});

Deno.test("engine::metrics::list has counts, SDK metrics, and means on request", async () => {
  await using it = await setup();
  await it.call("math::add");
  const dataPoints = [{ timeUnixNano: "1000000", asDouble: 5 }];
  const metrics = [{ name: "process.memory.usage", unit: "By", gauge: { dataPoints } }];
  const text = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
  const bytes = new TextEncoder().encode(text);
  it.local.deliver({ kind: "MTRC", bytes, worker_id: null, address: null });
  await it.second();

  const list = await it.call("engine::metrics::list", { aggregate_interval: 60 });

  const { invocations, workers, performance } = list.engine_metrics;
  assert.ok(invocations.total >= 1 && invocations.by_function["math::add"] === 1);
  assert.ok(workers.spawns >= 1 && workers.active >= 2);
  assert.equal(typeof performance.p95_duration_ms, "number");
  assert.deepEqual(list.sdk_metrics.map(({ name, value }: Loose) => [name, value]), [
    ["process.memory.usage", 5],
  ]);
  assert.equal(list.aggregated_metrics[0].metrics["engine.calls_per_s"], 1);
  const none = await it.call("engine::metrics::list", { metric_name: "missing" });
  assert.deepEqual(none.sdk_metrics, []);
  assert.equal("aggregated_metrics" in none, false);
});

Deno.test("engine::rollups::list includes the current minute", async () => {
  await using it = await setup();
  await it.call("math::add");
  await it.second();

  const { rollups, histogram_rollups, level } = await it.call("engine::rollups::list");

  assert.equal(level, 0);
  const calls = rollups.find((each: Loose) => each.metric_name === "engine.calls_per_s");
  assert.equal(calls.sum, 1);
  assert.equal(histogram_rollups[0].count, 1);
});

Deno.test("A firing alert is listed, and its function is called", async () => {
  const rule = { name: "busy", metric: "calls_per_s", threshold: 2, for_s: 0 };
  await using it = await setup({ alerts: [{ ...rule, function_id: "ops::page" }] });
  const notified: JsonObject[] = [];
  it.worker.registerFunction("ops::page", (payload) => void notified.push(payload as JsonObject));
  const triggered: unknown[] = [];
  it.worker.registerFunction("ops::note", (payload) => {
    triggered.push((payload as JsonObject).state);
  });
  it.worker.registerTrigger({ type: "alert", function_id: "ops::note", config: { name: "busy" } });
  await it.local.settle();
  for (let i = 0; i < 5; i++) await it.call("math::add");
  await it.second();

  const { alerts, rules, firing_count } = await it.call("engine::alerts::list");
  assert.deepEqual([alerts.length, rules.length, firing_count], [1, 1, 1]);
  assert.equal(notified[0]!.state, "firing");
  assert.deepEqual(triggered, ["firing"]);
  await it.second();
  const evaluated = await it.call("engine::alerts::evaluate");
  assert.deepEqual([evaluated.evaluated, evaluated.triggered_alerts], [1, []]);
  assert.equal(notified.length, 2);
});

Deno.test("Without rules engine::alerts::list says where to add them", async () => {
  await using it = await setup();

  assert.match((await it.call("engine::alerts::list")).message, /metrics\.alerts/);
});

Deno.test("/metrics needs the token, /healthz and /readyz do not", async () => {
  await using it = await setup();
  await it.call("math::add");

  const open = [...it.local.pages].map(([path, { open }]) => [path, open]);
  assert.deepEqual(open, [["/metrics", false], ["/healthz", true], ["/readyz", true]]);
  const metrics = await it.page("/metrics");
  assert.match(metrics.contentType, /^text\/plain; version=0\.0\.4/);
  assert.match(
    String(metrics.body),
    /engine_calls_total\{function="math::add",namespace="default"\} 1\n/,
  );
  assert.equal((await it.page("/healthz")).body, '{"status":"ok"}\n');
  const ready = await it.page("/readyz");
  assert.deepEqual([ready.status, ready.body], [200, '{"ready":true,"reasons":[]}\n']);
});

Deno.test("/readyz answers 503 while a worker has failed", async () => {
  await using it = await setup({}, [supervisedWorker("math", { state: "failed" })]);

  const { status, body } = await it.page("/readyz");
  assert.equal(status, 503);
  assert.match(String(body), /worker math has failed/);
});

Deno.test("/metrics can be turned off", async () => {
  await using it = await setup({ prometheus: false });

  assert.deepEqual([...it.local.pages.keys()], ["/healthz", "/readyz"]);
});

Deno.test("engine::health::check names all components", async () => {
  await using it = await setup();

  const { status, components, version } = await it.call("engine::health::check");
  assert.deepEqual([status, version], ["healthy", "1.2.3"]);
  assert.deepEqual(Object.keys(components), [
    "otel",
    "metrics",
    "logs",
    "spans",
    "data_directory",
  ]);
  assert.equal(components.otel.status, "disabled");
});

Deno.test("engine::health::measure reuses a recent measurement", async () => {
  await using it = await setup();

  const first = await it.call("engine::health::measure");
  assert.ok(first.checks.length >= 10);
  const again = await it.call("engine::health::measure");
  assert.deepEqual(again.checks, first.checks);
});

for (
  const [id, payload] of [
    ["engine::metrics::series", { seconds: 901 }],
    ["engine::metrics::series", { seconds: 0 }],
    ["engine::metrics::series", { top: -1 }],
    ["engine::metrics::series", { function_id: 5 }],
    ["engine::metrics::list", { aggregate_interval: 0 }],
    ["engine::metrics::list", { start_time: "yesterday" }],
    ["engine::rollups::list", { level: 3 }],
    ["engine::alerts::list", "text"],
    ["engine::health::check", []],
    ["engine::health::measure", 5],
    ["engine::metrics::sample", "now"],
  ] as const
) {
  Deno.test(`${id} refuses ${JSON.stringify(payload)}`, async () => {
    await using it = await setup();

    await assert.rejects(it.call(id, payload as Json), { code: "deserialization_error" });
  });
}

Deno.test("Disposing removes all pages", async () => {
  await using it = await setup();
  await it.stop();

  assert.deepEqual([...it.local.pages.keys()], []);
});
