/**
 * @module
 */
import assert from "node:assert/strict";
import { bucketed, OTHER, topAndOther } from "./buckets.ts";

Deno.test("bucketed() has the mean of the samples of each part", () => {
  const at_ms = [9_000, 10_000, 19_999, 20_000, 25_000];

  assert.deepEqual(bucketed(at_ms, [5, 2, 4, 9, 7], 10_000, "mean"), {
    at_ms: [0, 10_000, 20_000],
    values: [5, 3, 8],
  });
});

Deno.test("bucketed() leaves out the last part until half of it has passed", () => {
  const at_ms = [10_000, 15_000, 20_000, 24_999];

  assert.deepEqual(bucketed(at_ms, [1, 3, 90, 80], 10_000, "mean"), {
    at_ms: [10_000],
    values: [2],
  });
  assert.deepEqual(bucketed([10_000], [1], 10_000, "mean").values, [1]);
});

Deno.test("bucketed() has the largest sample of each part, and gaps", () => {
  const at_ms = [10_000, 11_000, 20_000, 49_000];

  assert.deepEqual(bucketed(at_ms, [2, 4, null, 1], 10_000, "max"), {
    at_ms: [10_000, 20_000, 40_000],
    values: [4, null, 1],
  });
});

Deno.test("bucketed() leaves gaps out of the mean", () => {
  assert.deepEqual(bucketed([1, 2, 3], [2, null, 4], 10, "mean").values, [3]);
  assert.deepEqual(bucketed([], [], 10, "mean"), { at_ms: [], values: [] });
});

Deno.test("bucketed() keeps the parts where they are while time passes", () => {
  const times = Array.from({ length: 40 }, (_, i) => i * 1_000 + 300);

  const before = bucketed(times.slice(0, 30), times, 10_000, "mean");
  const after = bucketed(times.slice(5, 40), times.slice(5), 10_000, "mean");

  assert.deepEqual(after.at_ms.slice(1, 3), before.at_ms.slice(1, 3));
  assert.deepEqual(after.values[1], before.values[1]);
});

const series = (...sums: number[]) =>
  sums.map((sum, i) => ({ key: `f${i}`, values: [sum, 0, i === 0 ? null : 1] }));

Deno.test("topAndOther() has the largest series, and the sum of the others", () => {
  assert.deepEqual(topAndOther(series(1, 9, 3, 5), 2, "sum"), [
    { key: "f1", values: [9, 0, 1] },
    { key: "f3", values: [5, 0, 1] },
    { key: OTHER, values: [4, 0, 1] },
  ]);
});

Deno.test("topAndOther() has the largest of the others where a sum means nothing", () => {
  assert.deepEqual(topAndOther(series(1, 9, 3, 5), 2, "max").at(-1), {
    key: OTHER,
    values: [3, 0, 1],
  });
});

Deno.test("topAndOther() shows a single other series itself", () => {
  const keys = topAndOther(series(1, 9, 3), 2, "sum").map(({ key }) => key);

  assert.deepEqual(keys, ["f1", "f2", "f0"]);
  assert.deepEqual(topAndOther([], 2, "sum"), []);
});

Deno.test("topAndOther() leaves a gap where all others have one", () => {
  const gaps = ["a", "b", "c", "d"].map((key) => ({ key, values: [null] }));

  assert.deepEqual(topAndOther(gaps, 1, "sum").at(-1), { key: OTHER, values: [null] });
});
