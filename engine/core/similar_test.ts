/**
 * Ids that look like another.
 *
 * @module
 */
import assert from "node:assert/strict";
import { SIMILAR_SCAN_MAX } from "../../sdk/typescript/wire/limits.ts";
import { similarIds } from "./similar.ts";

Deno.test("similarIds() offers the closest first, three at most", () => {
  const ids = ["math::add", "math::sub", "math::addd", "math::ad", "orders::price"];

  assert.deepEqual(similarIds("math::addx", ids), ["math::add", "math::addd", "math::ad"]);
});

Deno.test("similarIds() does not care about capitals", () => {
  assert.deepEqual(similarIds("Math::Add", ["math::add"]), ["math::add"]);
});

Deno.test("similarIds() offers nothing that is too far off to be meant", () => {
  assert.deepEqual(similarIds("math::add", ["orders::price", "m", ""]), []);
});

Deno.test("similarIds() looks at a bounded number of ids of a bounded length", () => {
  const others = Array.from({ length: SIMILAR_SCAN_MAX }, (_, i) => `other::${i}`);

  assert.deepEqual(similarIds("math::add", [...others, "math::add2"]), []);
  assert.deepEqual(similarIds("x".repeat(5_000), ["x".repeat(5_000)]), []);
});
