import assert from "node:assert/strict";
import { FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import { DURATION_METRIC, ROLLUP_FUNCTIONS_MAX, Rollups } from "./rollups.ts";

function setup() {
  const at = new FakeMetrics();
  const rollups = new Rollups(at.meters);
  at.sampler.listen((interval, sample) => rollups.add(interval, sample));
  return { at, rollups, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("A minute has count, sum, min, max and last of each value", () => {
  using it = setup();
  const begin = it.at.clock.wall();
  for (const calls of [4, 2, 6]) {
    it.at.meters.call("a::b", { ms: 3, times: calls });
    it.at.clock.tick(1_000);
  }

  const [calls] = it.rollups.values(0, { metric_name: "engine.calls_per_s" });

  assert.deepEqual(calls, {
    metric_name: "engine.calls_per_s",
    start_ms: begin,
    end_ms: begin + 3_000,
    count: 3,
    sum: 12,
    min: 2,
    max: 6,
    avg: 4,
    last: 6,
  });
});

Deno.test("A value that is always null has no rollup", () => {
  using it = setup();
  it.at.clock.tick(5_000);

  assert.deepEqual(it.rollups.values(0, { metric_name: "engine.p99_ms" }), []);
});

Deno.test("Each level has periods of its length", () => {
  using it = setup();
  it.at.clock.tick(3_600_000);

  const lengths = [0, 1, 2].map((level) => {
    const values = it.rollups.values(level, { metric_name: "engine.lines" });
    return [values.length, values[0]!.end_ms - values[0]!.start_ms];
  });
  assert.deepEqual(lengths, [[61, 60_000], [13, 300_000], [2, 3_600_000]]);
  assert.deepEqual(it.rollups.values(7, {}), []);
});

Deno.test("Old periods are dropped", () => {
  using it = setup();
  it.at.clock.tick(7 * 3_600_000);

  assert.equal(it.rollups.values(0, { metric_name: "engine.lines" }).length, 360);
});

Deno.test("Durations cover all functions together and the busiest ones separately", () => {
  using it = setup();
  for (let i = 0; i < ROLLUP_FUNCTIONS_MAX + 5; i++) {
    it.at.meters.call(`f::${i}`, { ms: 3, times: i + 1 });
  }
  it.at.meters.call("f::1", { ms: 100, code: "boom" });
  it.at.meters.call("engine::x", { ms: 3 });
  it.at.clock.tick(1_000);

  const all = it.rollups.histograms(0, {});
  const [total, first, ...more] = all;

  assert.deepEqual([total!.metric_name, total!.function_id, total!.count, total!.errors], [
    DURATION_METRIC,
    null,
    326,
    1,
  ]);
  assert.equal(total!.bucket_counts![2], 325);
  assert.deepEqual([first!.function_id, first!.count], ["f::24", 25]);
  assert.equal(more.length, ROLLUP_FUNCTIONS_MAX - 1);
  assert.deepEqual(it.rollups.histograms(0, { metric_name: "engine.lines" }), []);
});

Deno.test("A finished period retains its functions", () => {
  using it = setup();
  it.at.meters.call("a::b", { ms: 3, times: 5 });
  it.at.clock.tick(60_000);
  it.at.meters.call("a::b", { ms: 3, times: 7 });
  it.at.clock.tick(60_000);

  const counts = it.rollups.histograms(0, {})
    .filter(({ function_id }) => function_id === "a::b").map(({ count }) => count);
  assert.deepEqual(counts, [5, 7]);
});

Deno.test("Only periods that overlap the requested time are returned", () => {
  using it = setup();
  const begin = it.at.clock.wall();
  it.at.clock.tick(300_000);

  const starts = (query: object) =>
    it.rollups.values(0, { metric_name: "engine.lines", ...query })
      .map(({ start_ms }) => (start_ms - begin) / 60_000);
  assert.deepEqual(starts({ start_ms: begin + 90_000, end_ms: begin + 130_000 }), [1, 2]);
  assert.deepEqual(starts({ end_ms: begin - 1 }), []);
});

Deno.test("A clock that goes back does not split a period", () => {
  using it = setup();
  it.at.clock.tick(61_000);
  const rollups = new Rollups(it.at.meters);
  const { latest } = it.at.sampler;
  const second = { functions: [], interval_ms: 1_000 } as never;
  rollups.add(second, latest);
  rollups.add(second, { ...latest, at_ms: latest.at_ms - 600_000 });

  assert.equal(rollups.values(0, { metric_name: "engine.lines" })[0]!.count, 2);
});
