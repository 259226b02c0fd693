import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type MeasuredProcess, ProcessGauges } from "./process_gauges.ts";

function setup(process?: MeasuredProcess) {
  const clock = new FakeClock();
  let micros = 0;
  const gauges = new ProcessGauges(
    clock,
    process ?? {
      memoryUsage: () => ({ rss: 1_000 }),
      cpuUsage: () => ({ user: micros, system: micros / 2 }),
    },
  );
  const values = () =>
    Object.fromEntries(gauges.read().map(({ name, unit, value }) => [name, [value, unit]]));
  return { clock, gauges, values, compute: (us: number) => void (micros += us) };
}

Deno.test("ProcessGauges.read() returns memory, CPU share and lag", () => {
  const { clock, gauges, values, compute } = setup();
  gauges.start();
  compute(100_000);
  clock.tick(1_000);

  assert.deepEqual(values(), {
    "process.memory.usage": [1_000, "By"],
    "process.cpu.utilization": [0.15, "1"],
    "engine.event_loop.lag.p99": [0, "s"],
    "engine.event_loop.lag.max": [0, "s"],
  });
});

Deno.test("ProcessGauges.read() returns the CPU share since the last call", () => {
  const { clock, gauges, values, compute } = setup();
  gauges.start();
  compute(1_000_000);
  clock.tick(1_000);
  values();
  clock.tick(1_000);

  assert.deepEqual(values()["process.cpu.utilization"], [0, "1"]);
});

Deno.test("ProcessGauges reports the highest lag and the 99th percentile", () => {
  let now = 0;
  const tasks: (() => void)[] = [];
  const clock = {
    now: () => now,
    after: (_ms: number, task: () => void) => {
      tasks.push(task);
      return () => {};
    },
  };
  const gauges = new ProcessGauges(clock, {});
  gauges.start();
  for (let i = 0; i < 200; i++) {
    now += 50 + (i === 7 ? 400 : i === 8 ? 100 : 2);
    tasks.shift()!();
  }

  const lags = gauges.read().map(({ name, value }) => [name, value]);
  assert.deepEqual(lags, [
    ["engine.event_loop.lag.p99", 0.002],
    ["engine.event_loop.lag.max", 0.4],
  ]);
  assert.deepEqual(gauges.read(), []);
});

Deno.test("ProcessGauges keeps the samples of a minute", () => {
  const { clock, gauges, values } = setup();
  gauges.start();
  clock.tick(10 * 60_000);

  assert.equal(values()["engine.event_loop.lag.max"]![0], 0);
  assert.equal(clock.waiting, 1);
});

Deno.test("ProcessGauges omits what the platform does not permit", () => {
  const refuse = (): never => {
    throw new Error("not permitted");
  };
  const { clock, gauges, values } = setup({ memoryUsage: refuse, cpuUsage: refuse });
  gauges.start();
  clock.tick(100);

  assert.deepEqual(Object.keys(values()), [
    "engine.event_loop.lag.p99",
    "engine.event_loop.lag.max",
  ]);
});

Deno.test("ProcessGauges measures nothing before start() and after stop()", () => {
  const { clock, gauges } = setup();
  assert.deepEqual(gauges.read(), []);

  gauges.start();
  gauges.start();
  clock.tick(1_000);
  gauges.stop();

  assert.deepEqual([gauges.read(), clock.waiting], [[], 0]);
});

Deno.test("ProcessGauges measures nothing in a browser", () => {
  const globals = globalThis as { process?: unknown };
  const { process } = globals;
  globals.process = undefined;
  const clock = new FakeClock();
  const gauges = new ProcessGauges(clock);
  globals.process = process;

  gauges.start();

  assert.deepEqual([gauges.read(), clock.waiting], [[], 0]);
});

Deno.test("ProcessGauges reads the real process", () => {
  const clock = new FakeClock();
  const gauges = new ProcessGauges(clock);
  gauges.start();
  clock.tick(1_000);

  const [memory, cpu] = gauges.read();
  gauges.stop();

  assert.ok(memory!.value > 1024 * 1024);
  assert.ok(cpu!.value >= 0);
});
