import assert from "node:assert/strict";
import { METRICS_SAMPLES_MAX } from "../../limits.ts";
import { FakeMetrics, workerView } from "../../../tests/fakes/fake_metrics.ts";
import { SeriesBook } from "./samples_series.ts";

function setup() {
  const at = new FakeMetrics();
  const book = new SeriesBook(at.meters);
  at.sampler.listen((second, sample) => book.add(second, sample));
  const read = (more: object = {}) => book.read({ seconds: 300, top: 50, ...more });
  return { at, book, read, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("SeriesBook has a value of every second for the engine and its functions", () => {
  using it = setup();
  it.at.clock.tick(1_000);
  it.at.meters.call("a::b", { ms: 3, times: 4 });
  it.at.clock.tick(1_000);
  it.at.clock.tick(1_000);

  const answer = it.read();

  assert.equal(answer.step_ms, 1_000);
  assert.deepEqual(answer.at_ms.map((ms) => ms - it.at.clock.wall()), [-2_000, -1_000, 0]);
  assert.deepEqual(answer.engine.calls_per_s, [0, 4, 0]);
  assert.deepEqual(answer.functions, [{
    function_id: "a::b",
    namespace: "default",
    calls_per_s: [null, 4, 0],
    errors_per_s: [null, 0, 0],
    p99_ms: [null, 3.98, null],
  }]);
});

Deno.test("SeriesBook keeps 15 minutes", () => {
  using it = setup();
  it.at.clock.tick((METRICS_SAMPLES_MAX + 100) * 1_000);

  const { at_ms, engine } = it.read({ seconds: METRICS_SAMPLES_MAX });

  assert.equal(at_ms.length, METRICS_SAMPLES_MAX);
  assert.equal(engine.calls_per_s.length, METRICS_SAMPLES_MAX);
  assert.equal(it.book.engine(60).lines.length, 60);
});

Deno.test("SeriesBook answers with the busiest functions of the time", () => {
  using it = setup();
  it.at.meters.call("busy::long_ago", { ms: 1, times: 100 });
  it.at.clock.tick(1_000);
  for (let i = 0; i < 5; i++) it.at.meters.call(`f::${i}`, { ms: 1, times: i + 1 });
  it.at.clock.tick(1_000);

  const ids = (more: object) => it.read(more).functions.map(({ function_id }) => function_id);
  assert.deepEqual(ids({ top: 2 }), ["busy::long_ago", "f::4"]);
  assert.deepEqual(ids({ top: 2, seconds: 1 }), ["f::4", "f::3"]);
  assert.deepEqual(ids({ top: 0 }), []);
  assert.deepEqual(ids({ function_id: "f::0" }), ["f::0"]);
  assert.deepEqual(ids({ function_id: "nobody" }), []);
});

Deno.test("SeriesBook does not know what a worker did before it came and after it left", () => {
  using it = setup();
  it.at.clock.tick(1_000);
  it.at.workers = [workerView("w1", { name: "math", active_invocations: 7 })];
  it.at.clock.tick(1_000);
  it.at.workers = [];
  it.at.clock.tick(1_000);

  assert.deepEqual(it.read({ worker_id: "w1" }).workers, [{
    worker_id: "w1",
    name: "math",
    memory_bytes: [null, null, null],
    cpu_percent: [null, null, null],
    in_flight: [null, 7, null],
    event_loop_lag_ms: [null, null, null],
  }]);
  assert.deepEqual(it.read({ worker_id: "w2" }).workers, []);
});
