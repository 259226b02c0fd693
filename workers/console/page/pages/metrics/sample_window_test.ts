import assert from "node:assert/strict";
import { SampleWindow } from "./sample_window.ts";

const make = (capacity = 3) => new SampleWindow<"calls" | "ms">(capacity, { calls: 0, ms: null });

Deno.test("samples come out in the order of time, the oldest made room", () => {
  const window = make();
  for (let i = 1; i <= 5; i++) window.add(i * 1_000, [["a", { calls: i, ms: i / 2 }]]);

  assert.deepEqual(window.at_ms, [3_000, 4_000, 5_000]);
  assert.deepEqual(window.series("a", "calls"), [3, 4, 5]);
  assert.deepEqual(window.series("a", "ms", 2), [2, 2.5]);
  assert.equal(window.latest("a", "calls"), 5);
});

Deno.test("a thing that a sample does not name was idle", () => {
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

Deno.test("a thing that was idle for the whole window is forgotten", () => {
  const window = make();
  window.add(1, [["a", { calls: 1 }]]);
  window.add(2, []);
  window.add(3, []);
  assert.equal(window.has("a"), true);

  window.add(4, []);

  assert.equal(window.has("a"), false);
  assert.deepEqual(window.series("a", "calls"), [0, 0, 0]);
});

Deno.test("a sample that is not newer than the last is left out", () => {
  const window = make();
  assert.equal(window.add(5, [["a", { calls: 1 }]]), true);

  assert.equal(window.add(5, [["a", { calls: 2 }]]), false);
  assert.equal(window.add(4, [["a", { calls: 2 }]]), false);

  assert.deepEqual(window.series("a", "calls"), [1]);
});

Deno.test("a measure that is null is a gap, also where idle is a number", () => {
  const window = make();
  window.add(1, [["a", { calls: null, ms: null }]]);

  assert.deepEqual(window.series("a", "calls"), [null]);
});

Deno.test("the largest are those with the largest sum", () => {
  const window = make();
  window.add(1, [["a", { calls: 5 }], ["b", { calls: 1 }], ["c", { calls: 2 }]]);
  window.add(2, [["b", { calls: 9 }], ["c", { calls: 2 }]]);

  assert.deepEqual(window.largest("calls", 2), ["b", "a"]);
});

Deno.test("an empty window has nothing to tell, and so has a cleared one", () => {
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
