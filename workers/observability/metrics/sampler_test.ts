import assert from "node:assert/strict";
import type { Clock } from "../../../engine/ports/clock.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { FakeMetrics, workerView } from "../../../tests/fakes/fake_metrics.ts";
import {
  CpuShare,
  type Interval,
  LAG_PROBE_MS,
  LagMeter,
  METRICS_SAMPLE_FUNCTIONS_MAX,
  readProcess,
  SampleWindow,
  WINDOW_STEPS_MAX,
} from "./sampler.ts";

Deno.test("A sample has the rates of the last second", () => {
  using at = new FakeMetrics();
  at.meters.call("math::add", { ms: 3, times: 8 });
  at.meters.call("math::add", { ms: 100, code: "boom", times: 2 });
  at.meters.call("math::slow");
  at.meters.now = { running: 1, parked: 2, connections: 3, queued_bytes: 4 };
  at.stats.commits = 5;
  at.process = { memory_bytes: 200, heap_bytes: 80, cpu_seconds: 1.5 };
  at.workers = [workerView("w1", { active_invocations: 1, queued_bytes: 4 })];

  at.clock.tick(1_000);

  const { latest } = at.sampler;
  assert.equal(latest.at_ms, at.clock.wall());
  assert.equal(latest.interval_ms, 1_000);
  assert.deepEqual(latest.engine, {
    calls_per_s: 11,
    errors_per_s: 2,
    p50_ms: 3.25,
    p99_ms: 124.8,
    in_flight: 1,
    held: 2,
    lines: 3,
    queued_bytes: 4,
    event_loop_lag_ms: 0,
    event_loop_lag_p99_ms: 0,
    memory_bytes: 200,
    heap_bytes: 80,
    cpu_percent: 50,
    state_commits_per_s: 5,
    restarts: 0,
  });
  assert.deepEqual(latest.functions.map((f) => [f.function_id, f.calls_per_s, f.in_flight]), [
    ["math::add", 10, 0],
    ["math::slow", 1, 1],
  ]);
  assert.deepEqual(latest.workers.map((w) => [w.worker_id, w.in_flight, w.queued_bytes]), [
    ["w1", 1, 4],
  ]);
});

Deno.test("A sample without calls has no latency and no functions", () => {
  using at = new FakeMetrics();
  at.meters.call("math::add", { ms: 3 });
  at.clock.tick(2_000);

  const { engine, functions } = at.sampler.latest;
  assert.deepEqual([engine.calls_per_s, engine.p50_ms, engine.p99_ms], [0, null, null]);
  assert.deepEqual(functions, []);
});

Deno.test("Calls of engine::* are listed but not counted, those of internal functions are neither", () => {
  using at = new FakeMetrics();
  at.hidden.add("watch::fired");
  at.meters.call("engine::metrics::series", { ms: 1 });
  at.meters.call("watch::fired", { ms: 1 });

  at.clock.tick(1_000);

  assert.equal(at.sampler.latest.engine.calls_per_s, 0);
  assert.deepEqual(at.sampler.latest.functions.map(({ function_id }) => function_id), [
    "engine::metrics::series",
  ]);
});

Deno.test("A sample lists a bounded number of functions, the busiest", () => {
  using at = new FakeMetrics();
  for (let i = 0; i <= METRICS_SAMPLE_FUNCTIONS_MAX; i++) {
    at.meters.call(`f::${i}`, { ms: 1, times: i + 1 });
  }

  at.clock.tick(1_000);

  const { functions } = at.sampler.latest;
  assert.equal(functions.length, METRICS_SAMPLE_FUNCTIONS_MAX);
  assert.equal(functions[0]!.function_id, `f::${METRICS_SAMPLE_FUNCTIONS_MAX}`);
  assert.ok(functions.every(({ function_id }) => function_id !== "f::0"));
});

Deno.test("Processes are sampled rarely, and more often while metrics are read", async () => {
  using at = new FakeMetrics();
  const pass = async (seconds: number): Promise<number> => {
    const before = at.looks;
    for (let i = 0; i < seconds; i++) {
      at.clock.tick(1_000);
      await at.settle();
    }
    return at.looks - before;
  };

  assert.equal(await pass(20), 2);
  at.sampler.markRead();
  assert.equal(await pass(20), 10);
  await pass(60);
  assert.equal(await pass(20), 2);
});

Deno.test("A disposed sampler leaves no timer", () => {
  const at = new FakeMetrics();
  at[Symbol.dispose]();

  assert.equal(at.clock.waiting, 0);
});

Deno.test("SampleWindow merges intervals", () => {
  using at = new FakeMetrics();
  const window = new SampleWindow();
  at.sampler.listen((interval) => window.add(interval));
  at.meters.call("a::b", { ms: 1, times: 2 });
  at.stats.commits = 1;
  at.clock.tick(1_000);
  at.meters.call("a::b", { ms: 1, times: 4 });
  at.stats.commits = 4;
  at.clock.tick(1_000);

  const sample = at.sampler.sampleOf(window.take()!);

  assert.equal(sample.interval_ms, 2_000);
  assert.equal(sample.engine.calls_per_s, 3);
  assert.equal(sample.engine.state_commits_per_s, 2);
  assert.deepEqual(sample.functions.map(({ calls_per_s }) => calls_per_s), [3]);
  assert.equal(window.take(), undefined);
  assert.equal(window.interval_ms, 0);
});

Deno.test("Sampler.window() covers the last steps, and what has passed of them", () => {
  using at = new FakeMetrics();
  assert.equal(at.sampler.window(10).engine.calls_per_s, 0);
  for (let second = 1; second <= WINDOW_STEPS_MAX + 2; second++) {
    at.meters.call("a::b", { ms: 1, times: second });
    at.clock.tick(1_000);
    if (second === 3) assert.equal(at.sampler.window(10).engine.calls_per_s, 2);
  }

  assert.equal(at.sampler.window(1).engine.calls_per_s, 12);
  assert.equal(at.sampler.window(2).engine.calls_per_s, 11.5);
  const all = at.sampler.window(WINDOW_STEPS_MAX);
  assert.deepEqual([all.engine.calls_per_s, all.interval_ms], [7.5, 10_000]);
});

Deno.test("SampleWindow keeps the largest lag", () => {
  const window = new SampleWindow();
  const second = (max_ms: number): Interval => ({
    at_ms: 0,
    interval_ms: 1_000,
    functions: [],
    lag: { max_ms, p99_ms: max_ms / 2 },
    process: { memory_bytes: 0, heap_bytes: 0, cpu_seconds: 0 },
    cpu_percent: null,
    commits: 0,
  });

  for (const lag of [3, 80, 5]) window.add(second(lag));

  assert.deepEqual(window.take()!.lag, { max_ms: 80, p99_ms: 40 });
});

/** A clock whose timers a test runs, however late. */
class LateClock implements Clock {
  #now = 0;
  #task: (() => void) | undefined;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  after(_ms: number, task: () => void): () => void {
    this.#task = task;
    return () => this.#task = undefined;
  }

  get isWaiting(): boolean {
    return this.#task !== undefined;
  }

  pass(ms: number): void {
    this.#now += ms;
  }

  run(): void {
    this.#task?.();
  }
}

Deno.test("LagMeter measures 0 on a punctual event loop", () => {
  const clock = new FakeClock();
  using meter = new LagMeter(clock);

  clock.tick(1_000);

  assert.deepEqual(meter.read(), { max_ms: 0, p99_ms: 0 });
});

Deno.test("LagMeter measures a late run once", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  clock.pass(LAG_PROBE_MS + 250);
  clock.run();

  assert.deepEqual(meter.read(), { max_ms: 250, p99_ms: 250 });
  assert.deepEqual(meter.read(), { max_ms: 0, p99_ms: 0 });
});

Deno.test("LagMeter counts a run that is overdue at the time of reading", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  clock.pass(LAG_PROBE_MS + 70);

  assert.equal(meter.read().max_ms, 70);
});

Deno.test("LagMeter separates a single late run from many punctual ones", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  for (let i = 0; i < 200; i++) {
    clock.pass(LAG_PROBE_MS + (i === 100 ? 90 : 2));
    clock.run();
  }

  assert.deepEqual(meter.read(), { max_ms: 90, p99_ms: 2 });
});

Deno.test("A disposed LagMeter leaves no timer", () => {
  const clock = new LateClock();
  const meter = new LagMeter(clock);
  meter[Symbol.dispose]();

  assert.equal(clock.isWaiting, false);
});

Deno.test("readProcess() reads memory and CPU time", () => {
  const { memory_bytes, heap_bytes, cpu_seconds } = readProcess();

  assert.ok(memory_bytes > heap_bytes && heap_bytes > 0);
  assert.ok(cpu_seconds > 0);
});

Deno.test("readProcess() agrees with the platform's CPU time to a hundredth", () => {
  const { process } = globalThis as unknown as { process: { cpuUsage(): Record<string, number> } };
  for (let burnt = 0, end = performance.now() + 60; performance.now() < end; burnt++);

  const before = readProcess().cpu_seconds;
  const { user = 0, system = 0 } = process.cpuUsage();
  const after = readProcess().cpu_seconds;

  const platform = (user + system) / 1_000_000;
  assert.ok(platform > before - 0.03 && platform < after + 0.03, `${before} ${platform} ${after}`);
  assert.ok(before > 0.05);
});

Deno.test("CpuShare.read() is the share of the time since the last read", () => {
  const clock = new FakeClock();
  const share = new CpuShare(clock, 10);

  clock.tick(1_000);
  assert.equal(share.read(10.25), 25);
  clock.tick(500);
  assert.equal(share.read(11.25), 200);
});

Deno.test("CpuShare.read() is null when no time has passed", () => {
  const share = new CpuShare(new FakeClock(), 0);

  assert.equal(share.read(1), null);
});
