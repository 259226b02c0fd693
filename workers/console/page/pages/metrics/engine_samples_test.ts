import assert from "node:assert/strict";
import { type EngineSample, EngineSamples } from "./engine_samples.ts";

function sample(at_ms: number, more: Partial<EngineSample> = {}): EngineSample {
  return { at_ms, engine: { calls_per_s: 1 }, functions: [], workers: [], ...more };
}

const busy = { function_id: "a::b", namespace: "default", calls_per_s: 4, p99_ms: 12, p50_ms: 3 };

Deno.test("what the engine kept and what it tells from then on are one series", () => {
  const samples = new EngineSamples();

  samples.fill({
    at_ms: [1_000, 2_000],
    engine: { calls_per_s: [5, 6], p99_ms: [null, 8] },
    functions: [{ function_id: "a::b", namespace: "default", calls_per_s: [5, 6] }],
    workers: [{ worker_id: "w1", name: "shop", memory_bytes: [10, 20] }],
  });
  samples.add(sample(2_000, { engine: { calls_per_s: 99 } }));
  samples.add(sample(3_000, { engine: { calls_per_s: 7 } }));

  assert.deepEqual(samples.engine.at_ms, [1_000, 2_000, 3_000]);
  assert.deepEqual(samples.engineSeries("calls_per_s"), [5, 6, 7]);
  assert.deepEqual(samples.engineSeries("p99_ms"), [null, 8, null]);
  assert.deepEqual(samples.functions.series("default/a::b", "calls_per_s"), [5, 6, 0]);
  assert.equal(samples.workerName("w1"), "shop");
});

Deno.test("the traffic of a function is of now, its latency of its last calls", () => {
  const samples = new EngineSamples();
  samples.add(sample(1_000, { functions: [busy] }));
  samples.add(sample(2_000));

  assert.deepEqual(samples.traffic("default/a::b"), {
    calls_per_s: 0,
    errors_per_s: 0,
    p50_ms: 3,
    p99_ms: 12,
  });
  assert.equal(samples.traffic("default/none"), undefined);
});

Deno.test("a function without calls takes no room", () => {
  const samples = new EngineSamples();

  samples.add(sample(1_000, {
    functions: [busy, { ...busy, function_id: "idle", calls_per_s: 0 }],
  }));

  assert.deepEqual(samples.functions.keys, ["default/a::b"]);
  assert.deepEqual(samples.busiest(5), ["default/a::b"]);
});

Deno.test("filled anew, nothing of before is left, also when its clock went back", () => {
  const samples = new EngineSamples();
  samples.add(sample(9_000, { functions: [busy] }));

  samples.fill({ at_ms: [1_000], engine: {}, functions: [], workers: [] });

  assert.deepEqual(samples.engine.at_ms, [1_000]);
  assert.deepEqual(samples.functions.keys, []);
});

Deno.test("names of workers that are gone are forgotten", () => {
  const samples = new EngineSamples();
  const worker = (worker_id: string) => ({ worker_id, name: "shop", memory_bytes: 1 });
  samples.add(sample(0, { workers: [worker("old")] }));

  for (let i = 1; i <= 301; i++) samples.add(sample(i, { workers: [worker("new")] }));

  assert.equal(samples.workerName("old"), "old");
  assert.equal(samples.workerName("new"), "shop");
});
