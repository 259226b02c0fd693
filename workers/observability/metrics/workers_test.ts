import assert from "node:assert/strict";
import { SDK_METRICS_STALE_MS } from "../../limits.ts";
import {
  FakeMetrics,
  metricPoint,
  supervisedWorker,
  workerView,
} from "../../../tests/fakes/fake_metrics.ts";

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

Deno.test("A worker is known by what its SDK says", () => {
  using at = setup();
  at.look.hear(SAID);

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

Deno.test("The supervisor knows better what a process uses", async () => {
  using at = setup();
  const replica = { worker_ids: ["w1"], memory_bytes: 9_000, cpu_percent: 3 };
  at.supervised = [supervisedWorker("math", {}, replica)];
  at.look.hear(SAID);

  await at.look.refresh(0);

  const [sample] = at.look.samples();
  assert.deepEqual([sample!.memory_bytes, sample!.cpu_percent, sample!.event_loop_lag_ms], [
    9_000,
    3,
    12,
  ]);
});

Deno.test("What an SDK says of a line that is not there is not kept", () => {
  using at = setup();
  at.look.hear([metricPoint("process.memory.usage", 5, { worker_id: "w2" })]);
  at.look.hear([metricPoint("process.memory.usage", 5, { worker_id: null })]);
  at.workers = [workerView("w2")];

  assert.equal(at.look.samples()[0]!.memory_bytes, null);
});

Deno.test("What an SDK said long ago, or before its line left, counts no more", () => {
  using at = setup();
  at.look.hear(SAID);
  at.clock.tick(SDK_METRICS_STALE_MS + 1);
  assert.equal(at.look.samples()[0]!.memory_bytes, null);

  at.look.hear(SAID);
  at.look.leave("w1");
  assert.equal(at.look.samples()[0]!.memory_bytes, null);
});

Deno.test("The skew of a clock is its time minus the engine's", () => {
  using at = setup();
  const time_ms = at.clock.wall() - 4_000;
  at.look.hear([metricPoint("process.memory.usage", 1, { time_ms })]);

  assert.deepEqual([...at.look.skews()], [["w1", -4_000]]);
});

Deno.test("Restarts are counted on when the supervisor begins to count anew", async () => {
  using at = setup();
  for (const restarts of [1, 3, 0, 2]) {
    at.supervised = [supervisedWorker("math", { restarts })];
    await at.look.refresh(0);
  }

  assert.equal(at.look.restarts, 5);
  assert.deepEqual([...at.look.restartsByName], [["math", 5]]);
});

Deno.test("Restarts of a worker that was removed stay in the sum alone", async () => {
  using at = setup();
  at.supervised = [supervisedWorker("math", { restarts: 2 })];
  await at.look.refresh(0);
  at.supervised = [];
  await at.look.refresh(0);

  assert.equal(at.look.restarts, 2);
  assert.deepEqual([...at.look.restartsByName], []);
});

Deno.test("The supervisor is asked once at a time and not too often", async () => {
  using at = setup();

  await Promise.all([at.look.refresh(2_000), at.look.refresh(2_000)]);
  await at.look.refresh(2_000);
  assert.equal(at.looks, 1);
  at.clock.tick(2_000);
  await at.look.refresh(2_000);
  assert.equal(at.looks, 2);
});
