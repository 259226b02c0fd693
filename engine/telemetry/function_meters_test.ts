/**
 * Counts per function.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  BOUNDS_MS,
  bucketOf,
  CountingMeter,
  FunctionMeters,
  METERED_CODE_CHARS_MAX,
  METERED_CODES_MAX,
  METERED_FUNCTIONS_MAX,
  MeteredFunction,
} from "./function_meters.ts";

Deno.test("FunctionMeters.functionOf() is the same for the same name in the same namespace", () => {
  const meters = new FunctionMeters();
  const first = meters.functionOf("default", "f");

  assert.equal(meters.functionOf("default", "f"), first);
  assert.notEqual(meters.functionOf("eu", "f"), first);
  assert.equal([...meters.meters()].length, 2);
});

Deno.test("FunctionMeters.functionOrOther() counts unknown functions together and creates no meters", () => {
  const meters = new FunctionMeters();
  const known = meters.functionOf("default", "f");

  assert.equal(meters.functionOrOther("default", "f"), known);
  const stranger = meters.functionOrOther("default", "x".repeat(5_000));
  assert.equal(stranger.meter, meters.other);
  assert.ok(stranger.function_id.length < 2_000);
  assert.equal([...meters.meters()].length, 1);
  assert.equal(meters.other.function_id, "(other)");
});

Deno.test("FunctionMeters.functionOf() counts functions beyond the limit together", () => {
  const meters = new FunctionMeters();
  for (let i = 0; i < METERED_FUNCTIONS_MAX; i++) meters.functionOf(`n${i % 3}`, `f${i}`);
  const late = meters.functionOf("default", "late");

  assert.equal([...meters.meters()].length, METERED_FUNCTIONS_MAX);
  assert.equal(late.meter, meters.other);
  assert.equal(late.function_id, "late", "its spans still say its name");
});

Deno.test("FunctionMeters.forget() frees the place of a function, unless a call of it runs", () => {
  const meters = new FunctionMeters();
  const running = meters.functionOf("default", "a::running");
  running.meter.in_flight++;
  const first = meters.functionOf("default", "a::b");
  first.meter.calls++;
  for (const id of ["a::running", "a::b", "a::unknown"]) meters.forget("default", id);

  assert.deepEqual([...meters.meters()].map(({ function_id }) => function_id), ["a::running"]);
  assert.equal(meters.functionOf("default", "a::b").meter.calls, 0);
});

Deno.test("a meter without an ended call has a histogram of zeros, of full length", () => {
  const [idle, used] = [new CountingMeter("", "a"), new CountingMeter("", "b")];
  used.in_flight++;
  used.ended(1);
  assert.equal(idle.durations.length, used.durations.length);
  assert.ok([...Array.from(idle.durations)].every((count) => count === 0));
});

Deno.test("the bounds of durations grow by a fifth or less, from 0.01 ms to 100 s", () => {
  assert.equal(BOUNDS_MS[0], 0.01);
  assert.equal(BOUNDS_MS.at(-1), 100_000);
  for (let at = 1; at < BOUNDS_MS.length; at++) {
    const step = BOUNDS_MS[at]! / BOUNDS_MS[at - 1]!;
    assert.ok(step > 1 && step < 1.2, `${step} at ${at}`);
  }
});

Deno.test("bucketOf() finds the first bound that a duration does not exceed", () => {
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
  assert.equal(meter.durations[meter.durations.length - 1], 1);
});

Deno.test("CountingMeter.failed() counts by code, and codes beyond the limit together", () => {
  const meter = new CountingMeter("default", "f");
  for (let i = 0; i < METERED_CODES_MAX + 3; i++) meter.failed(`code_${i}`);
  meter.failed("code_0");

  assert.equal(meter.errors.get("code_0"), 2);
  assert.equal(meter.errors.get("(other)"), 3);
  assert.equal(meter.errors.size, METERED_CODES_MAX + 1);
});

Deno.test("CountingMeter.failed() truncates long codes consistently", () => {
  const meter = new CountingMeter("default", "f");
  meter.failed("x".repeat(1_000));
  meter.failed("x".repeat(2_000));

  const [[code, count]] = [...meter.errors] as [[string, number]];
  assert.equal(code.length, METERED_CODE_CHARS_MAX);
  assert.equal(count, 2);
});

Deno.test("MeteredFunction.bytes grows with the length of its names", () => {
  const meter = new CountingMeter("default", "f");

  const [long, short] = ["x".repeat(100), ""].map((id) =>
    new MeteredFunction("d", id, meter).bytes
  );

  assert.ok(long! >= short! + 100);
});
