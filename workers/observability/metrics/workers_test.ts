import assert from "node:assert/strict";
import {
  FakeMetrics,
  metricPoint,
  supervisedWorker,
  workerView,
} from "../../../tests/fakes/fake_metrics.ts";
import { SDK_METRICS_STALE_MS } from "./otlp.ts";

function setup() {
  const at = new FakeMetrics();
  at.workers = [workerView("w1", { name: "math" })];
  return at;
}

const SAID = [
  metricPoint("process.memory.usage", 5_000),
  metricPoint("process.cpu.utilization", 0.25),
  metricPoint("engine.event_loop.lag.max", 0.012),
  metricPoint("engine.event_loop.lag.p99", 0.003),
];

Deno.test("A sample has the metrics of the worker's SDK", () => {
  using at = setup();
  at.look.record(SAID);

  assert.deepEqual(at.look.samples(), [{
    worker_id: "w1",
    name: "math",
    in_flight: 0,
    queued_bytes: 0,
    memory_bytes: 5_000,
    cpu_percent: 25,
    event_loop_lag_ms: 12,
  }]);
});

Deno.test("The supervisor's figures take precedence over the SDK's", async () => {
  using at = setup();
  const replica = { worker_ids: ["w1"], memory_bytes: 9_000, cpu_percent: 3 };
  at.supervised = [supervisedWorker("math", {}, replica)];
  at.look.record(SAID);

  await at.look.refresh(0);

  const [sample] = at.look.samples();
  assert.deepEqual([sample!.memory_bytes, sample!.cpu_percent, sample!.event_loop_lag_ms], [
    9_000,
    3,
    12,
  ]);
});

Deno.test("Metrics of a worker that is not connected are ignored", () => {
  using at = setup();
  at.look.record([metricPoint("process.memory.usage", 5, { worker_id: "w2" })]);
  at.look.record([metricPoint("process.memory.usage", 5, { worker_id: null })]);
  at.workers = [workerView("w2")];

  assert.equal(at.look.samples()[0]!.memory_bytes, null);
});

Deno.test("Metrics that are stale or of a closed connection are ignored", () => {
  using at = setup();
  at.look.record(SAID);
  at.clock.tick(SDK_METRICS_STALE_MS + 1);
  assert.equal(at.look.samples()[0]!.memory_bytes, null);

  at.look.record(SAID);
  at.look.leave("w1");
  assert.equal(at.look.samples()[0]!.memory_bytes, null);
});

Deno.test("Clock skew is the worker's time minus the engine's", () => {
  using at = setup();
  const time_ms = at.clock.wall() - 4_000;
  at.look.record([metricPoint("process.memory.usage", 1, { time_ms })]);

  assert.deepEqual([...at.look.skews()], [["w1", -4_000]]);
});

Deno.test("Restarts accumulate across resets of the supervisor's counter", async () => {
  using at = setup();
  for (const restarts of [1, 3, 0, 2]) {
    at.supervised = [supervisedWorker("math", { restarts })];
    await at.look.refresh(0);
  }

  assert.equal(at.look.restarts, 5);
  assert.deepEqual([...at.look.restartsByName], [["math", 5]]);
});

Deno.test("Restarts of a removed worker count in the sum only", async () => {
  using at = setup();
  at.supervised = [supervisedWorker("math", { restarts: 2 })];
  await at.look.refresh(0);
  at.supervised = [];
  await at.look.refresh(0);

  assert.equal(at.look.restarts, 2);
  assert.deepEqual([...at.look.restartsByName], []);
});

Deno.test("The supervisor is asked at a bounded rate, one request at a time", async () => {
  using at = setup();

  await Promise.all([at.look.refresh(2_000), at.look.refresh(2_000)]);
  await at.look.refresh(2_000);
  assert.equal(at.looks, 1);
  at.clock.tick(2_000);
  await at.look.refresh(2_000);
  assert.equal(at.looks, 2);
});

const handlers = (name: string, value: number, function_id?: string) =>
  metricPoint(`engine.handlers.${name}`, value, {
    attributes: function_id === undefined ? {} : { "engine.function.id": function_id },
  });

Deno.test("WorkerMonitor.loads() has threads, waiting calls and late handlers as last reported", () => {
  using at = setup();
  assert.deepEqual(at.look.loads(), []);
  at.look.record(SAID);
  assert.deepEqual(at.look.loads(), []);

  const threads = [handlers("threads.busy", 40), handlers("threads.max", 40)];
  at.look.record([
    handlers("waiting", 12),
    ...threads,
    handlers("overdue", 3, "py::b"),
    handlers("overdue", 35, "py::a"),
    handlers("overdue", 1),
  ]);

  const load = { worker_id: "w1", name: "math", threads_busy: 40, threads_max: 40 };
  assert.deepEqual(at.look.loads(), [{
    ...load,
    calls_waiting: 12,
    overdue: [{ function_id: "py::a", seconds: 35 }, { function_id: "py::b", seconds: 3 }],
  }]);

  at.look.record([handlers("waiting", 0), ...threads]);
  assert.deepEqual(at.look.loads(), [{ ...load, calls_waiting: 0, overdue: [] }]);
});

Deno.test("WorkerMonitor.loads() keeps a bounded number of late functions", () => {
  using at = setup();
  const many = Array.from({ length: 500 }, (_, i) => handlers("overdue", i, `py::f${i}`));

  at.look.record([handlers("waiting", 0), ...many]);

  assert.equal(at.look.loads()[0]!.overdue.length, 50);
});
