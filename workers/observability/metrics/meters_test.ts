import assert from "node:assert/strict";
import type { FunctionView } from "../../../engine/ports/directory.ts";
import { FakeMeters, FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import {
  addCounts,
  CountReader,
  DeltaSum,
  engineTotals,
  extremes,
  FORGOTTEN_READINGS,
  type FunctionDelta,
  functionTotals,
  quantile,
  RecentDeltas,
  round,
  SUMMED_FUNCTIONS_MAX,
  totalOf,
  usedMeters,
} from "./meters.ts";

/** Internal functions are those whose id begins with `hidden`. */
const directory = {
  function: (_: string, id: string) =>
    id.startsWith("gone") ? undefined : { internal: id.startsWith("hidden") } as FunctionView,
};

Deno.test("CountReader returns what happened since the last read, once", () => {
  const meters = new FakeMeters();
  meters.call("a::before", { ms: 1 });
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 3, times: 5 });
  meters.call("a::b", { ms: 3, code: "boom", times: 2 });

  const [delta, ...others] = reader.read();

  assert.deepEqual(others, []);
  const { durations, ...rest } = delta!;
  assert.deepEqual(rest, {
    function_id: "a::b",
    namespace: "default",
    calls: 7,
    errors: 2,
    in_flight: 0,
    kind: "user",
  });
  assert.equal(durations[2], 7);
  assert.deepEqual(reader.read(), []);
});

Deno.test("CountReader removes the meters of functions that left, after 5 minutes without a call", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  for (const id of ["gone::idle", "gone::busy", "here::idle", "engine::x"]) {
    meters.call(id, { ms: 1 });
  }
  meters.call("gone::running");
  const ids = (): string[] => [...meters.functions()].map(({ function_id }) => function_id);

  for (let second = 1; second < FORGOTTEN_READINGS; second++) {
    if (second % 100 === 0) meters.call("gone::busy", { ms: 1 });
    reader.read();
  }
  assert.equal(ids().length, 5);
  for (let second = 0; second < 120; second++) reader.read();
  assert.deepEqual(ids(), ["gone::busy", "here::idle", "engine::x", "gone::running"]);

  meters.call("gone::idle", { ms: 1 });
  const [first] = reader.read();
  assert.deepEqual([first!.function_id, first!.calls], ["gone::running", 0]);
  assert.equal(reader.read().length, 1, "a function that came back counts from zero, once");
});

Deno.test("CountReader returns a running call at each read and its end once", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b");

  assert.deepEqual([reader.read(), reader.read()].map(([d]) => [d!.calls, d!.in_flight]), [
    [1, 1],
    [0, 1],
  ]);
  meters.end("a::b", 500, "timeout");
  const [ended] = reader.read();
  assert.deepEqual([ended!.calls, ended!.errors, ended!.in_flight, ended!.durations[8]], [
    0,
    1,
    0,
    1,
  ]);
  assert.deepEqual(reader.read(), []);
});

Deno.test("CountReader separates equal ids of two namespaces", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1, namespace: "one" });
  meters.call("a::b", { ms: 1, namespace: "two", times: 2 });

  assert.deepEqual(reader.read().map(({ namespace, calls }) => [namespace, calls]), [
    ["one", 1],
    ["two", 2],
  ]);
});

Deno.test("CountReader classifies functions", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  for (const id of ["engine::x", "hidden::y", "a::b", "gone::z"]) meters.call(id, { ms: 1 });

  assert.deepEqual(reader.read().map(({ kind }) => kind), ["engine", "hidden", "user", "user"]);
});

Deno.test("CountReader starts over with a meter that was removed and recreated", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1, times: 9 });
  reader.read();
  meters.forget("default", "a::b");
  reader.read();
  meters.call("a::b", { ms: 1, times: 2 });

  assert.equal(reader.read()[0]!.calls, 2);
});

Deno.test("DeltaSum merges the functions with fewest calls when there are too many", () => {
  const sum = new DeltaSum();
  const delta = (function_id: string, calls: number): FunctionDelta => ({
    function_id,
    namespace: "default",
    calls,
    errors: 1,
    in_flight: 1,
    durations: Float64Array.of(calls, 0),
    kind: "user",
  });
  for (let at = 0; at <= 4 * SUMMED_FUNCTIONS_MAX; at++) {
    sum.add([delta(`f${at}`, 1), delta("often", 2)]);
  }
  const { functions } = sum;
  const total = functions.reduce((calls, one) => calls + one.calls, 0);
  assert.ok(functions.length <= 2 * SUMMED_FUNCTIONS_MAX + 1);
  assert.equal(total, 3 * (4 * SUMMED_FUNCTIONS_MAX + 1));
  assert.equal(
    totalOf(functions.find((one) => one.function_id === "(other)")!.durations) > 0,
    true,
  );
  const often = functions.find(({ function_id }) => function_id === "often")!;
  assert.deepEqual([often.calls, often.in_flight], [2 * (4 * SUMMED_FUNCTIONS_MAX + 1), 1]);
});

Deno.test("DeltaSum adds up deltas and keeps the latest number of running calls", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  const sum = new DeltaSum();
  meters.call("a::b");
  meters.call("c::d", { ms: 1 });
  sum.add(reader.read());
  meters.end("a::b", 3, "boom");
  meters.call("a::b", { ms: 3 });
  sum.add(reader.read());

  const found = sum.functions.map((each) => [each.function_id, each.calls, each.errors]);
  assert.deepEqual(found, [["a::b", 2, 1], ["c::d", 1, 0]]);
  assert.deepEqual(sum.functions.map(({ in_flight }) => in_flight), [0, 0]);
  assert.equal(sum.functions[0]!.durations[2], 2);
  sum.clear();
  assert.deepEqual(sum.functions, []);
});

Deno.test("DeltaSum does not modify its input", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1 });
  const deltas = reader.read();
  const sum = new DeltaSum();
  sum.add(deltas);
  sum.add(deltas);

  assert.equal(deltas[0]!.durations[0], 1);
  assert.equal(deltas[0]!.calls, 1);
});

const BOUNDS = [1, 2, 4, 8];

Deno.test("quantile() of no durations is null", () => {
  assert.equal(quantile(BOUNDS, [0, 0, 0, 0, 0], 0.5), null);
  assert.equal(quantile([], [], 0.99), null);
});

Deno.test("quantile() lies in the bucket of its rank", () => {
  const counts = [10, 0, 80, 9, 1];

  assert.equal(quantile(BOUNDS, counts, 0.1), 1);
  assert.equal(quantile(BOUNDS, counts, 0.5), 3);
  assert.equal(quantile(BOUNDS, counts, 0.9), 4);
  assert.equal(quantile(BOUNDS, counts, 0.99), 8);
});

Deno.test("quantile() of durations beyond all bounds is the last bound", () => {
  assert.equal(quantile(BOUNDS, [0, 0, 0, 0, 5], 0.5), 8);
  assert.equal(quantile(BOUNDS, [1, 0, 0, 0, 1], 1), 8);
});

Deno.test("quantile() is monotonic", () => {
  const counts = [3, 0, 7, 1, 2];
  const values = Array.from({ length: 101 }, (_, i) => quantile(BOUNDS, counts, i / 100)!);

  assert.deepEqual(values, values.toSorted((a, b) => a - b));
});

Deno.test("extremes() returns the bounds around all durations", () => {
  assert.deepEqual(extremes(BOUNDS, [0, 3, 0, 1, 0]), { min_ms: 1, max_ms: 8 });
  assert.deepEqual(extremes(BOUNDS, [1, 0, 0, 0, 0]), { min_ms: 0, max_ms: 1 });
  assert.deepEqual(extremes(BOUNDS, [0, 0, 0, 0, 1]), { min_ms: 8, max_ms: 8 });
  assert.equal(extremes(BOUNDS, [0, 0, 0, 0, 0]), null);
});

Deno.test("addCounts() adds bucket by bucket", () => {
  const sum = Float64Array.of(1, 2, 3);
  addCounts(sum, [1, 1]);

  assert.deepEqual([...sum], [2, 3, 3]);
  assert.equal(totalOf(sum), 8);
  assert.equal(round(1 / 3), 0.333);
});

Deno.test("functionTotals() lists every called function, the busiest first", () => {
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

Deno.test("functionTotals() has no durations for a function without an ended call", () => {
  const meters = new FakeMeters();
  meters.call("a::b");

  const [{ avg_ms, p50_ms, max_ms }] = functionTotals(meters) as [
    ReturnType<
      typeof functionTotals
    >[number],
  ];
  assert.deepEqual([avg_ms, p50_ms, max_ms], [null, null, null]);
});

Deno.test("usedMeters() includes the shared meter once it has counted a call", () => {
  const meters = new FakeMeters();
  assert.deepEqual(usedMeters(meters), []);

  Object.assign(meters.other, { calls: 1 });
  assert.deepEqual(usedMeters(meters).map(({ function_id }) => function_id), ["(other)"]);
});

Deno.test("engineTotals() sums all functions", () => {
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

Deno.test("engineTotals() of no calls is zero, not null", () => {
  const { performance } = engineTotals(new FakeMeters());

  assert.ok(Object.values(performance).every((value) => value === 0));
});

Deno.test("RecentDeltas covers the last minutes only", () => {
  using at = new FakeMetrics();
  const recent = new RecentDeltas();
  at.sampler.listen((second) => recent.add(second));
  at.meters.call("a::b", { ms: 1, times: 3 });
  at.clock.tick(1_000);
  at.meters.call("a::b", { ms: 1, times: 4 });
  at.clock.tick(150_000);

  assert.equal(recent.read()[0]!.calls, 7);
  at.clock.tick(200_000);
  assert.deepEqual(recent.read(), []);
});
