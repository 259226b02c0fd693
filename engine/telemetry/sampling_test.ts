/**
 * Which new traces are recorded.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fits, rateOf } from "./sampling.ts";

for (
  const [text, pattern, expected] of [
    ["orders::price", "orders::price", true],
    ["orders::price", "orders::*", true],
    ["orders::price", "*::price", true],
    ["orders::price", "*", true],
    ["orders::price", "o*s::*e", true],
    ["orders::price", "orders::pri", false],
    ["orders::price", "rders::price", false],
    ["orders::price", "orders::price*", true],
    ["orders::price", "", false],
    ["", "", true],
    ["", "*", true],
    ["a.c", "a?c", false],
    ["a(c", "a(c", true],
    ["ab", "*a", false],
  ] as const
) {
  Deno.test(`fits() says ${expected} of "${text}" and "${pattern}"`, () => {
    assert.equal(fits(text, pattern), expected);
  });
}

Deno.test("fits() takes no longer for a pattern that is made to be slow", () => {
  const started = performance.now();

  assert.equal(fits("a".repeat(1_024), "*a".repeat(400) + "*b"), false);
  assert.ok(performance.now() - started < 2_000);
});

Deno.test("rateOf() takes the first rule that fits, else the ratio", () => {
  const rules = [{ operation: "a::*", rate: 0 }, { operation: "a::b", rate: 1 }];

  assert.equal(rateOf("a::b", rules, 0.5), 0);
  assert.equal(rateOf("c", rules, 0.5), 0.5);
});
