/**
 * @module
 */
import assert from "node:assert/strict";
import { axisWidth, isWithin, linePaths, nearestIndex, ticksTo, timeTicks } from "./chart_scale.ts";

for (
  const [max, count, counted, ticks] of [
    [10, 5, "any", [0, 2, 4, 6, 8, 10]],
    [0.3, 3, "any", [0, 0.1, 0.2, 0.3]],
    [47, 5, "any", [0, 10, 20, 30, 40]],
    [1_204, 4, "any", [0, 500, 1_000]],
    [92, 4, "any", [0, 25, 50, 75]],
    [9, 4, "whole", [0, 5]],
    [1, 4, "whole", [0, 1]],
    [3, 4, "whole", [0, 1, 2, 3]],
    [400 * 1_048_576, 4, "bytes", [0, 134_217_728, 268_435_456, 402_653_184]],
    [3, 4, "bytes", [0, 1, 2, 3]],
    [0, 4, "any", [0]],
    [NaN, 4, "any", [0]],
    [Infinity, 4, "any", [0]],
  ] as const
) {
  Deno.test(`ticksTo(${max}, ${count}, ${counted}) are ${ticks.join(", ")}`, () => {
    assert.deepEqual(ticksTo(max, count, counted), ticks);
  });
}

Deno.test("ticksTo() never has more steps than asked for", () => {
  for (let max = 1e-3; max < 1e9; max *= 1.37) {
    for (const counted of ["any", "whole", "bytes"] as const) {
      assert.ok(ticksTo(max, 4, counted).length <= 5, `${max} ${counted}`);
    }
  }
});

Deno.test("timeTicks() are whole steps within the range", () => {
  assert.deepEqual(timeTicks(61_000, 300_000, 5), [120_000, 180_000, 240_000, 300_000]);
  assert.deepEqual(timeTicks(500, 3_200, 3), [1_000, 2_000, 3_000]);
  assert.deepEqual(timeTicks(5, 5, 3), []);
  assert.deepEqual(timeTicks(0, 1_000, 0), []);
  assert.ok(timeTicks(0, 1e12, 4).length <= 5);
});

Deno.test("axisWidth() has space for the longest label", () => {
  assert.ok(axisWidth(["0 B", "1,024 MiB"]) > axisWidth(["0 B", "64 MiB"]));
  assert.equal(axisWidth([]), 12);
});

Deno.test("isWithin() leaves out a label that an end of the axis would cut", () => {
  const fits = [0, 20, 30, 200, 375, 380, 400].map((at) => isWithin(at, 400, "14:03:27"));

  assert.deepEqual(fits, [false, false, true, true, false, false, false]);
});

Deno.test("nearestIndex() finds the nearest time", () => {
  const times = [10, 20, 40];

  assert.deepEqual([0, 14, 15, 16, 29, 31, 99].map((ms) => nearestIndex(times, ms)), [
    0,
    0,
    0,
    1,
    1,
    2,
    2,
  ]);
  assert.equal(nearestIndex([], 5), -1);
  assert.equal(nearestIndex([7], 5), 0);
});

Deno.test("linePaths() has a line and an area for each part between gaps", () => {
  const point = (x: number, y: number) => ({ x, y });

  const { stroke, area } = linePaths([point(0, 5), point(1.04, 2), null, point(3, 1)], 9);

  assert.equal(stroke, "M0 5L1 2M3 1");
  assert.equal(area, "M0 9L0 5L1 2L1 9ZM3 9L3 1L3 9Z");
  assert.deepEqual(linePaths([null, null], 9), { stroke: "", area: "" });
});
