import assert from "node:assert/strict";
import { type EngineSample, EngineSamples, meanOf, SampleWindow } from "./samples.ts";

const make = (capacity = 3) => new SampleWindow<"calls" | "ms">(capacity, { calls: 0, ms: null });

Deno.test("SampleWindow keeps the newest samples in order", () => {
  const window = make();
  for (let i = 1; i <= 5; i++) window.add(i * 1_000, [["a", { calls: i, ms: i / 2 }]]);

  assert.deepEqual(window.at_ms, [3_000, 4_000, 5_000]);
  assert.deepEqual(window.series("a", "calls"), [3, 4, 5]);
  assert.deepEqual(window.series("a", "ms", 2), [2, 2.5]);
  assert.equal(window.latest("a", "calls"), 5);
});

Deno.test("SampleWindow uses idle values for a series that a sample does not name", () => {
  const window = make();
  window.add(1, [["a", { calls: 2, ms: 7 }]]);
  window.add(2, []);
  window.add(3, [["b", { calls: 1 }]]);

  assert.deepEqual(window.series("a", "calls"), [2, 0, 0]);
  assert.deepEqual(window.series("a", "ms"), [7, null, null]);
  assert.equal(window.last("a", "ms"), 7);
  assert.equal(window.latest("a", "ms"), null);
  assert.deepEqual(window.series("b", "calls"), [0, 0, 1]);
});

Deno.test("SampleWindow drops a series that was idle in the whole range", () => {
  const window = make();
  window.add(1, [["a", { calls: 1 }]]);
  window.add(2, []);
  window.add(3, []);
  assert.equal(window.has("a"), true);

  window.add(4, []);

  assert.equal(window.has("a"), false);
  assert.deepEqual(window.series("a", "calls"), [0, 0, 0]);
});

Deno.test("SampleWindow.add() ignores a sample that is not newer", () => {
  const window = make();
  assert.equal(window.add(5, [["a", { calls: 1 }]]), true);

  assert.equal(window.add(5, [["a", { calls: 2 }]]), false);
  assert.equal(window.add(4, [["a", { calls: 2 }]]), false);

  assert.deepEqual(window.series("a", "calls"), [1]);
});

Deno.test("SampleWindow keeps null as a gap", () => {
  const window = make();
  window.add(1, [["a", { calls: null, ms: null }]]);

  assert.deepEqual(window.series("a", "calls"), [null]);
});

Deno.test("SampleWindow.largest() compares sums", () => {
  const window = make();
  window.add(1, [["a", { calls: 5 }], ["b", { calls: 1 }], ["c", { calls: 2 }]]);
  window.add(2, [["b", { calls: 9 }], ["c", { calls: 2 }]]);

  assert.deepEqual(window.largest("calls", 2), ["b", "a"]);
});

Deno.test("SampleWindow is empty at first and after clear()", () => {
  const window = make();
  assert.deepEqual([window.at_ms, window.series("a", "calls"), window.latest("a", "ms")], [
    [],
    [],
    null,
  ]);

  window.add(9, [["a", { calls: 1 }]]);
  window.clear();
  assert.deepEqual([window.at_ms, window.keys], [[], []]);
  assert.equal(window.add(1, []), true);
});

function sample(at_ms: number, more: Partial<EngineSample> = {}): EngineSample {
  return { at_ms, engine: { calls_per_s: 1 }, functions: [], workers: [], ...more };
}

const busy = { function_id: "a::b", namespace: "default", calls_per_s: 4, p99_ms: 12, p50_ms: 3 };

Deno.test("EngineSamples joins stored and new samples", () => {
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

Deno.test("EngineSamples.traffic() is that of the last minute, times by their calls", () => {
  const samples = new EngineSamples();
  samples.add(sample(0, { functions: [{ ...busy, calls_per_s: 9_000 }] }));
  for (let i = 1; i < 58; i++) samples.add(sample(i));
  samples.add(sample(58, { functions: [{ ...busy, calls_per_s: 10, errors_per_s: 6 }] }));
  samples.add(sample(59, { functions: [{ ...busy, calls_per_s: 30, p50_ms: 7, p99_ms: 40 }] }));
  samples.add(sample(60));

  // The first sample is older than 60 samples.
  assert.deepEqual(samples.traffic("default/a::b"), {
    calls_per_s: 40 / 60,
    errors_per_s: 0.1,
    p50_ms: 6,
    p99_ms: 33,
  });
  assert.equal(samples.traffic("default/none"), undefined);
});

Deno.test("EngineSamples.traffic() has the times of older calls if the last minute had none", () => {
  const samples = new EngineSamples();
  samples.add(sample(0, { functions: [busy] }));
  for (let i = 1; i <= 100; i++) samples.add(sample(i));

  assert.deepEqual(samples.traffic("default/a::b"), {
    calls_per_s: 0,
    errors_per_s: 0,
    p50_ms: 3,
    p99_ms: 12,
  });
});

Deno.test("EngineSamples.engineMinute() is the mean of what was measured", () => {
  const samples = new EngineSamples();
  assert.equal(samples.engineMinute("calls_per_s"), null);

  samples.add(sample(1, { engine: { calls_per_s: 4 } }));
  samples.add(sample(2, { engine: { calls_per_s: null } }));
  samples.add(sample(3, { engine: { calls_per_s: 8 } }));

  assert.equal(samples.engineMinute("calls_per_s"), 6);
});

Deno.test("meanOf() weighs values, and is null without any", () => {
  assert.equal(meanOf([1, null, 4], [3, 9, 1]), 1.75);
  assert.equal(meanOf([1, 2], [0, 0]), null);
  assert.equal(meanOf([null]), null);
});

Deno.test("EngineSamples stores no function without calls", () => {
  const samples = new EngineSamples();

  samples.add(sample(1_000, {
    functions: [busy, { ...busy, function_id: "idle", calls_per_s: 0 }],
  }));

  assert.deepEqual(samples.functions.keys, ["default/a::b"]);
});

Deno.test("EngineSamples.fill() replaces everything, even if the clock went back", () => {
  const samples = new EngineSamples();
  samples.add(sample(9_000, { functions: [busy] }));

  samples.fill({ at_ms: [1_000], engine: {}, functions: [], workers: [] });

  assert.deepEqual(samples.engine.at_ms, [1_000]);
  assert.deepEqual(samples.functions.keys, []);
});

Deno.test("EngineSamples drops names of workers that left", () => {
  const samples = new EngineSamples();
  const worker = (worker_id: string) => ({ worker_id, name: "shop", memory_bytes: 1 });
  samples.add(sample(0, { workers: [worker("old")] }));

  for (let i = 1; i <= 301; i++) samples.add(sample(i, { workers: [worker("new")] }));

  assert.equal(samples.workerName("old"), "old");
  assert.equal(samples.workerName("new"), "shop");
});
