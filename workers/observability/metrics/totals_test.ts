import assert from "node:assert/strict";
import { FakeMeters } from "../../../tests/fakes/fake_meters.ts";
import { engineTotals, functionTotals, usedMeters } from "./totals.ts";

Deno.test("functionTotals() has every function that was called, the busiest first", () => {
  const meters = new FakeMeters();
  meters.call("a::b", { ms: 3 });
  meters.call("c::d", { ms: 10, times: 8 });
  meters.call("c::d", { ms: 100, code: "boom", times: 2 });
  meters.call("c::d");

  const [first, second] = functionTotals(meters);

  assert.deepEqual(first, {
    function_id: "c::d",
    namespace: "default",
    calls: 11,
    errors: { boom: 2 },
    in_flight: 1,
    avg_ms: 28,
    p50_ms: 13,
    p90_ms: 96,
    p99_ms: 124.8,
    max_ms: 128,
  });
  assert.equal(second!.function_id, "a::b");
});

Deno.test("functionTotals() knows no durations of a function that never ended", () => {
  const meters = new FakeMeters();
  meters.call("a::b");

  const [{ avg_ms, p50_ms, max_ms }] = functionTotals(meters) as [
    ReturnType<
      typeof functionTotals
    >[number],
  ];
  assert.deepEqual([avg_ms, p50_ms, max_ms], [null, null, null]);
});

Deno.test("usedMeters() has those that share one when there is a call in it", () => {
  const meters = new FakeMeters();
  assert.deepEqual(usedMeters(meters), []);

  Object.assign(meters.other, { calls: 1 });
  assert.deepEqual(usedMeters(meters).map(({ function_id }) => function_id), ["(other)"]);
});

Deno.test("engineTotals() puts all functions together", () => {
  const meters = new FakeMeters();
  meters.call("a::b", { ms: 1, times: 6 });
  meters.call("c::d", { ms: 64, code: "boom", times: 2 });
  meters.call("c::d", { times: 2 });

  const { invocations, performance } = engineTotals(meters);

  assert.deepEqual(invocations, {
    total: 10,
    success: 6,
    error: 2,
    deferred: 0,
    by_function: { "a::b": 6, "c::d": 4 },
  });
  assert.deepEqual(performance, {
    avg_duration_ms: 16.75,
    p50_duration_ms: 0.667,
    p90_duration_ms: 51.2,
    p95_duration_ms: 57.6,
    p99_duration_ms: 62.72,
    min_duration_ms: 0,
    max_duration_ms: 64,
  });
});

Deno.test("engineTotals() of no calls is nothing, not unknown", () => {
  const { performance } = engineTotals(new FakeMeters());

  assert.ok(Object.values(performance).every((value) => value === 0));
});
