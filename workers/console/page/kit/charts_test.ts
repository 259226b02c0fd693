/**
 * @module
 */
import assert from "node:assert/strict";
import { SPARK_POINTS_MAX, sparkPath } from "./charts.tsx";

const BOX = { width: 100, height: 22 };

Deno.test("sparkPath() runs from left to right, with the largest value at the top", () => {
  const { stroke, area } = sparkPath([0, 5, 10], BOX);

  assert.equal(stroke, "M0 21L50 11L100 1");
  assert.equal(area, "M0 22L0 21L50 11L100 1L100 22Z");
});

Deno.test("sparkPath() starts a new line after a gap", () => {
  const { stroke, area } = sparkPath([1, 1, null, 1], BOX);

  assert.equal(stroke, "M0 1L33.3 1M100 1");
  assert.equal(area.match(/Z/g)?.length, 2);
});

Deno.test("sparkPath() clamps values above the top and below zero", () => {
  assert.equal(sparkPath([-5, 50], { ...BOX, max: 10 }).stroke, "M0 21L100 1");
});

for (const values of [[], [null], [NaN, Infinity]]) {
  Deno.test(`sparkPath() of ${JSON.stringify(values)} is empty`, () => {
    assert.deepEqual(sparkPath(values, BOX), { stroke: "", area: "" });
  });
}

Deno.test("sparkPath() puts zeros at the bottom", () => {
  assert.equal(sparkPath([0, 0], BOX).stroke, "M0 21L100 21");
});

Deno.test("sparkPath() draws the newest values only", () => {
  const values = Array.from({ length: SPARK_POINTS_MAX + 50 }, () => 1);

  assert.equal(sparkPath(values, BOX).stroke.match(/[ML]/g)?.length, SPARK_POINTS_MAX);
});
