/**
 * The budget of memory: taking, returning, waiting for room, and its default size.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget, defaultMemoryMb } from "./memory_budget.ts";

Deno.test("bytes that do not fit are refused, and nothing of them is taken", () => {
  const budget = createMemoryBudget(100);
  assert.equal(budget.take("buffers", 60), true);
  assert.equal(budget.take("bodies", 41), false);
  assert.equal(budget.usedBytes, 60);
  assert.equal(budget.take("bodies", 40), true);
  assert.deepEqual([budget.used("buffers"), budget.used("bodies")], [60, 40]);
  budget.release("buffers", 60);
  assert.deepEqual([budget.usedBytes, budget.used("buffers")], [40, 0]);
});

Deno.test("a budget that falls by much says so, once per fall", () => {
  const MIB = 1024 * 1024;
  let times = 0;
  const budget = createMemoryBudget(1024 * MIB, () => {}, () => void times++);
  budget.take("bodies", 400 * MIB);
  for (let i = 0; i < 100; i++) {
    budget.release("bodies", MIB / 4);
    budget.take("bodies", MIB / 4);
  }
  assert.equal(times, 0);
  budget.release("bodies", 200 * MIB);
  assert.equal(times, 1);
  budget.release("bodies", 20 * MIB);
  assert.equal(times, 1);
  budget.release("bodies", 20 * MIB);
  assert.equal(times, 2);
});

Deno.test("a budget is tight above three quarters", () => {
  const budget = createMemoryBudget(100);
  budget.take("queues", 75);
  assert.equal(budget.isTight, false);
  budget.take("queues", 1);
  assert.equal(budget.isTight, true);
});

Deno.test("parts that wait get room in their order, one per task", () => {
  const tasks: (() => void)[] = [];
  const budget = createMemoryBudget(100, (task) => void tasks.push(task));
  const served: string[] = [];
  budget.take("buffers", 100);
  const wait = (name: string, bytes: number): () => void =>
    budget.whenRoom(bytes, () => {
      served.push(name);
      budget.take("buffers", bytes);
    });
  wait("first", 80);
  wait("second", 20);
  wait("third", 20);
  const run = (): void => {
    while (tasks.length > 0) tasks.shift()!();
  };
  run();
  assert.deepEqual(served, []);
  budget.release("buffers", 50);
  run();
  assert.deepEqual(served, [], "the first one needs more, and is not passed by");
  budget.release("buffers", 50);
  run();
  assert.deepEqual(served, ["first", "second"], "the third one does not fit any more");
});

Deno.test("a part that stops waiting lets those behind it go on", () => {
  const tasks: (() => void)[] = [];
  const budget = createMemoryBudget(100, (task) => void tasks.push(task));
  const served: string[] = [];
  budget.take("buffers", 50);
  const stop = budget.whenRoom(80, () => served.push("large"));
  budget.whenRoom(20, () => served.push("small"));
  while (tasks.length > 0) tasks.shift()!();
  stop();
  while (tasks.length > 0) tasks.shift()!();
  assert.deepEqual(served, ["small"]);
});

Deno.test("a part that wants more than there is waits for an empty budget, not for ever", () => {
  const tasks: (() => void)[] = [];
  const budget = createMemoryBudget(100, (task) => void tasks.push(task));
  let isServed = false;
  budget.whenRoom(1_000, () => isServed = true);
  tasks.shift()!();
  assert.equal(isServed, true);
});

Deno.test("the default is at most half of the machine, and at most 2 GiB", () => {
  const mib = defaultMemoryMb();
  assert.ok(mib >= 1 && mib <= 2048);
  assert.ok(mib * 1024 * 1024 <= Deno.systemMemoryInfo().total / 2);
});
