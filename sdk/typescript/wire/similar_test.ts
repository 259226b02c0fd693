import assert from "node:assert/strict";
import { NAMES_COMPARED_MAX, similarNames } from "./similar.ts";

Deno.test("similarNames() returns the most similar first, three at most", () => {
  const names = ["math::add", "math::sub", "math::addd", "math::ad", "orders::price"];

  assert.deepEqual(similarNames("math::addx", names), ["math::add", "math::addd", "math::ad"]);
});

Deno.test("similarNames() ignores case", () => {
  assert.deepEqual(similarNames("Math::Add", ["math::add"]), ["math::add"]);
});

Deno.test("similarNames() omits names that differ too much", () => {
  assert.deepEqual(similarNames("math::add", ["orders::price", "m", ""]), []);
});

Deno.test("similarNames() compares a limited number of names of limited length", () => {
  const others = Array.from({ length: NAMES_COMPARED_MAX }, (_, i) => `other::${i}`);

  assert.deepEqual(similarNames("math::add", [...others, "math::add2"]), []);
  assert.deepEqual(similarNames("x".repeat(5_000), ["x".repeat(5_000)]), []);
});
