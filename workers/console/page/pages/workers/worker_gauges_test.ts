/**
 * @module
 */
import assert from "node:assert/strict";
import { WorkerGauges, type WorkerSample } from "./worker_gauges.ts";

function sample(worker_id: string, memory_bytes: number | null, more: Partial<WorkerSample> = {}) {
  const rest = { name: worker_id, in_flight: 1, cpu_percent: null, event_loop_lag_ms: null };
  return { worker_id, memory_bytes, ...rest, ...more };
}

Deno.test("WorkerGauges keeps the newest samples, the oldest first", () => {
  const gauges = new WorkerGauges(3);

  for (let i = 1; i <= 5; i++) gauges.add(i, [sample("a", i * 10)]);

  assert.deepEqual(gauges.at_ms, [3, 4, 5]);
  assert.deepEqual(gauges.history(["a"], "memory_bytes"), [30, 40, 50]);
  assert.equal(gauges.now(["a"], "memory_bytes"), 50);
});

Deno.test("WorkerGauges has gaps before a worker joined, and drops one that left", () => {
  const gauges = new WorkerGauges();

  gauges.add(1, [sample("a", 1)]);
  gauges.add(2, [sample("b", 2)]);

  assert.deepEqual(gauges.history(["b"], "memory_bytes"), [null, 2]);
  assert.deepEqual(gauges.history(["a"], "memory_bytes"), [null, null]);
  assert.equal(gauges.now(["a"], "memory_bytes"), null);
});

Deno.test("WorkerGauges adds up the connections of a worker, and takes the longest delay", () => {
  const gauges = new WorkerGauges();

  gauges.add(1, [
    sample("a", 10, { event_loop_lag_ms: 3 }),
    sample("b", 5, { event_loop_lag_ms: 9 }),
    sample("c", null),
  ]);

  assert.equal(gauges.now(["a", "b", "c"], "memory_bytes"), 15);
  assert.equal(gauges.now(["a", "b"], "event_loop_lag_ms"), 9);
  assert.equal(gauges.now(["c"], "memory_bytes"), null);
  assert.equal(gauges.now([], "memory_bytes"), null);
});

Deno.test("WorkerGauges.addPast() adds earlier samples without changing later ones", () => {
  const gauges = new WorkerGauges();
  gauges.add(30, [sample("a", 3)]);

  gauges.addPast([10, 20, 30], [{ worker_id: "a", name: "a", memory_bytes: [1, null, 99] }]);
  gauges.add(40, [sample("a", 4)]);

  assert.deepEqual(gauges.at_ms, [10, 20, 30, 40]);
  assert.deepEqual(gauges.history(["a"], "memory_bytes"), [1, null, 3, 4]);
  assert.deepEqual(gauges.history(["a"], "in_flight"), [null, null, 1, 1]);
});

Deno.test("WorkerGauges.addPast() of one worker leaves gaps for the others", () => {
  const gauges = new WorkerGauges(4);
  gauges.add(40, [sample("a", 4), sample("b", 40)]);
  gauges.addPast([30], [{ worker_id: "b", name: "b", memory_bytes: [30] }]);

  gauges.addPast([10, 20, 30], [{ worker_id: "a", name: "a", memory_bytes: [1, 2, 3] }]);

  assert.deepEqual(gauges.history(["a"], "memory_bytes"), [1, 2, 3, 4]);
  assert.deepEqual(gauges.history(["b"], "memory_bytes"), [null, null, 30, 40]);
});

Deno.test("WorkerGauges.addPast() keeps the bound", () => {
  const gauges = new WorkerGauges(2);

  gauges.addPast([1, 2, 3], [{ worker_id: "a", name: "a", memory_bytes: [1, 2, 3] }]);

  assert.deepEqual(gauges.at_ms, [2, 3]);
  assert.deepEqual(gauges.history(["a"], "memory_bytes"), [2, 3]);
});
