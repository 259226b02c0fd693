import assert from "node:assert/strict";
import { addCounts, extremes, quantile, round, totalOf } from "./samples_quantile.ts";

const BOUNDS = [1, 2, 4, 8];

Deno.test("quantile() of no durations is unknown", () => {
  assert.equal(quantile(BOUNDS, [0, 0, 0, 0, 0], 0.5), null);
  assert.equal(quantile([], [], 0.99), null);
});

Deno.test("quantile() lies in the bucket in which the rank is", () => {
  const counts = [10, 0, 80, 9, 1];

  assert.equal(quantile(BOUNDS, counts, 0.1), 1);
  assert.equal(quantile(BOUNDS, counts, 0.5), 3);
  assert.equal(quantile(BOUNDS, counts, 0.9), 4);
  assert.equal(quantile(BOUNDS, counts, 0.99), 8);
});

Deno.test("quantile() of what lies beyond all bounds is the last bound", () => {
  assert.equal(quantile(BOUNDS, [0, 0, 0, 0, 5], 0.5), 8);
  assert.equal(quantile(BOUNDS, [1, 0, 0, 0, 1], 1), 8);
});

Deno.test("quantile() never falls when the part grows", () => {
  const counts = [3, 0, 7, 1, 2];
  const values = Array.from({ length: 101 }, (_, i) => quantile(BOUNDS, counts, i / 100)!);

  assert.deepEqual(values, values.toSorted((a, b) => a - b));
});

Deno.test("extremes() are the bounds around all durations", () => {
  assert.deepEqual(extremes(BOUNDS, [0, 3, 0, 1, 0]), { min_ms: 1, max_ms: 8 });
  assert.deepEqual(extremes(BOUNDS, [1, 0, 0, 0, 0]), { min_ms: 0, max_ms: 1 });
  assert.deepEqual(extremes(BOUNDS, [0, 0, 0, 0, 1]), { min_ms: 8, max_ms: 8 });
  assert.equal(extremes(BOUNDS, [0, 0, 0, 0, 0]), null);
});

Deno.test("counts are added bucket by bucket", () => {
  const sum = Float64Array.of(1, 2, 3);
  addCounts(sum, [1, 1]);

  assert.deepEqual([...sum], [2, 3, 3]);
  assert.equal(totalOf(sum), 8);
  assert.equal(round(1 / 3), 0.333);
});
