import assert from "node:assert/strict";
import type { Handler } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import { Alerts } from "./alerts.ts";
import { registerMetricsFunctions } from "./functions.ts";
import { SdkMetrics } from "./otlp.ts";
import { Rollups } from "./rollups.ts";
import { SeriesStore } from "./series.ts";

// deno-lint-ignore no-explicit-any -- Deep looks into a JSON text.
type Loose = Record<string, any>;

function setup() {
  const at = new FakeMetrics();
  const series = new SeriesStore(at.meters);
  const rollups = new Rollups(at.meters);
  at.sampler.listen((interval, sample) => {
    series.add(interval, sample);
    rollups.add(interval, sample);
  });
  const handlers = new Map<string, Handler>();
  const lines: LogLine[] = [];
  registerMetricsFunctions({
    registerFunction: (id: string, handler: Handler) => {
      handlers.set(id, handler);
      return { id, unregister() {} };
    },
  } as never, {
    clock: at.clock,
    meters: at.meters,
    directory: at.directory,
    sampler: at.sampler,
    series,
    rollups,
    alerts: new Alerts([], 0, recordingLog(lines), () => {}),
    sdk: new SdkMetrics(at.clock),
    workers: at.look,
    workerCounts: { spawns: 3, deaths: 1 },
  });
  const call = (id: string, payload: Json = {}) =>
    handlers.get(id)!(payload, undefined, undefined as never) as Loose;
  return { at, handlers, call, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("registerMetricsFunctions() registers every function", () => {
  using it = setup();

  assert.deepEqual([...it.handlers.keys()].sort(), [
    "engine::alerts::evaluate",
    "engine::alerts::list",
    "engine::metrics::functions",
    "engine::metrics::handlers",
    "engine::metrics::list",
    "engine::metrics::sample",
    "engine::metrics::series",
    "engine::rollups::list",
  ]);
});

Deno.test("An empty payload and null members mean the defaults", () => {
  using it = setup();
  it.at.clock.tick(400_000);

  assert.equal(it.call("engine::metrics::series", null).at_ms.length, 300);
  assert.equal(it.call("engine::metrics::series", { function_id: null }).step_ms, 1_000);
  assert.equal(it.call("engine::rollups::list", { metric_name: null }).level, 0);
});

Deno.test("Means cover intervals of the requested length", () => {
  using it = setup();
  const begin = it.at.clock.wall();
  for (let i = 1; i <= 20; i++) {
    it.at.meters.call("a::b", { ms: 1, times: i });
    it.at.clock.tick(1_000);
  }

  const query = { aggregate_interval: 10, metric_name: "engine.calls_per_s" };
  const { aggregated_metrics } = it.call("engine::metrics::list", query);

  assert.deepEqual(aggregated_metrics.map((each: Loose) => [each.start_time - begin, each.count]), [
    [0, 9],
    [10_000, 10],
    [20_000, 1],
  ]);
  assert.deepEqual(aggregated_metrics[1].metrics, { "engine.calls_per_s": 14.5 });
  assert.equal(aggregated_metrics[1].end_time - begin, 20_000);
});

Deno.test("Means cover the requested time range", () => {
  using it = setup();
  it.at.clock.tick(20_000);
  const since = { start_time: it.at.clock.wall() - 4_500, aggregate_interval: 1 };

  assert.equal(it.call("engine::metrics::list", since).aggregated_metrics.length, 5);
});

Deno.test("The mean of unknown values is null", () => {
  using it = setup();
  it.at.clock.tick(2_000);

  const { aggregated_metrics } = it.call("engine::metrics::list", { aggregate_interval: 60 });
  assert.equal(aggregated_metrics[0].metrics["engine.p99_ms"], null);
});

Deno.test("engine::metrics::list counts workers that connected and disconnected", () => {
  using it = setup();

  const { workers } = it.call("engine::metrics::list").engine_metrics;
  assert.deepEqual(workers, { spawns: 3, deaths: 1, active: 0 });
});

Deno.test("Every call marks the metrics as read, which samples processes more often", async () => {
  using it = setup();
  it.call("engine::metrics::sample");
  for (let i = 0; i < 10; i++) {
    it.at.clock.tick(1_000);
    await it.at.settle();
  }

  assert.equal(it.at.looks, 5);
});
