/**
 * @module
 */
import assert from "node:assert/strict";
import { SPARK_POINTS_MAX, SPARK_POINTS_MIN, sparkPath } from "./charts.tsx";

/** A pixel between two points, if there are as few as are spread over the whole width. */
const BOX = { width: SPARK_POINTS_MIN - 1, height: 22 };

Deno.test("sparkPath() ends at the right, with the largest value at the top", () => {
  const { stroke, area } = sparkPath([0, 5, 10], BOX);

  assert.equal(stroke, "M17 21L18 11L19 1");
  assert.equal(area, "M17 22L17 21L18 11L19 1L19 22Z");
});

Deno.test("sparkPath() of enough values begins at the left", () => {
  const { stroke } = sparkPath(Array.from({ length: 2 * BOX.width + 1 }, () => 1), BOX);

  assert.match(stroke, /^M0 1L0\.5 1L1 1/);
  assert.match(stroke, /L19 1$/);
});

Deno.test("sparkPath() starts a new line after a gap", () => {
  const { stroke, area } = sparkPath([1, 1, null, 1], BOX);

  assert.equal(stroke, "M16 1L17 1M19 1");
  assert.equal(area.match(/Z/g)?.length, 2);
});

Deno.test("sparkPath() clamps values above the top and below zero", () => {
  assert.equal(sparkPath([-5, 50], { ...BOX, max: 10 }).stroke, "M18 21L19 1");
});

for (const values of [[], [null], [NaN, Infinity]]) {
  Deno.test(`sparkPath() of ${JSON.stringify(values)} is empty`, () => {
    assert.deepEqual(sparkPath(values, BOX), { stroke: "", area: "" });
  });
}

Deno.test("sparkPath() puts zeros at the bottom", () => {
  assert.equal(sparkPath([0, 0], BOX).stroke, "M18 21L19 21");
});

Deno.test("sparkPath() draws the newest values only", () => {
  const values = Array.from({ length: SPARK_POINTS_MAX + 50 }, () => 1);

  assert.equal(sparkPath(values, BOX).stroke.match(/[ML]/g)?.length, SPARK_POINTS_MAX);
});
