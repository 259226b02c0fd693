/**
 * Counts of one function's calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import { METERED_CODE_CHARS_MAX, METERED_CODES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { BOUNDS_MS, bucketOf, CountingMeter } from "./function_meter.ts";

Deno.test("the bounds of durations rise by a fifth or less, from 0.01 ms to 100 s", () => {
  assert.equal(BOUNDS_MS[0], 0.01);
  assert.equal(BOUNDS_MS.at(-1), 100_000);
  for (let at = 1; at < BOUNDS_MS.length; at++) {
    const step = BOUNDS_MS[at]! / BOUNDS_MS[at - 1]!;
    assert.ok(step > 1 && step < 1.2, `${step} at ${at}`);
  }
});

Deno.test("bucketOf() finds the first bound that a duration does not pass", () => {
  for (let at = 0; at < BOUNDS_MS.length; at++) {
    const bound = BOUNDS_MS[at]!;
    assert.equal(bucketOf(bound), at, `at ${bound}`);
    assert.equal(bucketOf(bound * (1 + 1e-9)), at + 1, `beyond ${bound}`);
    assert.equal(bucketOf(bound * (1 - 1e-9)), at, `before ${bound}`);
  }
});

for (const [ms, place] of [[0, 0], [-1, 0], [NaN, 0], [1e9, BOUNDS_MS.length]] as const) {
  Deno.test(`bucketOf(${ms}) is ${place}`, () => assert.equal(bucketOf(ms), place));
}

Deno.test("CountingMeter.ended() counts a duration and one call less in flight", () => {
  const meter = new CountingMeter("default", "f");
  meter.in_flight = 2;
  meter.ended(3);
  meter.ended(200_000);

  assert.equal(meter.in_flight, 0);
  assert.equal(meter.duration_sum_ms, 200_003);
  assert.equal(meter.durations[bucketOf(3)], 1);
  assert.equal(meter.durations.at(-1), 1);
});

Deno.test("CountingMeter.failed() counts by code, and those beyond the bound together", () => {
  const meter = new CountingMeter("default", "f");
  for (let i = 0; i < METERED_CODES_MAX + 3; i++) meter.failed(`code_${i}`);
  meter.failed("code_0");

  assert.equal(meter.errors.get("code_0"), 2);
  assert.equal(meter.errors.get("(other)"), 3);
  assert.equal(meter.errors.size, METERED_CODES_MAX + 1);
});

Deno.test("CountingMeter.failed() cuts a code that is too long, always in the same way", () => {
  const meter = new CountingMeter("default", "f");
  meter.failed("x".repeat(1_000));
  meter.failed("x".repeat(2_000));

  const [[code, count]] = [...meter.errors] as [[string, number]];
  assert.equal(code.length, METERED_CODE_CHARS_MAX);
  assert.equal(count, 2);
});
