import assert from "node:assert/strict";
import type { Clock } from "../../../engine/ports/clock.ts";
import { LAG_PROBE_MS } from "../../limits.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { LagMeter } from "./samples_lag.ts";

/** A clock whose tasks run when a test says so, however late. */
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

Deno.test("LagMeter measures nothing on a loop that is in time", () => {
  const clock = new FakeClock();
  using meter = new LagMeter(clock);

  clock.tick(1_000);

  assert.deepEqual(meter.read(), { max_ms: 0, p99_ms: 0 });
});

Deno.test("LagMeter measures how late a run is, once", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  clock.pass(LAG_PROBE_MS + 250);
  clock.run();

  assert.deepEqual(meter.read(), { max_ms: 250, p99_ms: 250 });
  assert.deepEqual(meter.read(), { max_ms: 0, p99_ms: 0 });
});

Deno.test("LagMeter counts a run that is overdue when it is read", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  clock.pass(LAG_PROBE_MS + 70);

  assert.equal(meter.read().max_ms, 70);
});

Deno.test("LagMeter tells a single late run from the many before it", () => {
  const clock = new LateClock();
  using meter = new LagMeter(clock);
  for (let i = 0; i < 200; i++) {
    clock.pass(LAG_PROBE_MS + (i === 100 ? 90 : 2));
    clock.run();
  }

  assert.deepEqual(meter.read(), { max_ms: 90, p99_ms: 2 });
});

Deno.test("LagMeter asks for nothing any more when it is disposed of", () => {
  const clock = new LateClock();
  const meter = new LagMeter(clock);
  meter[Symbol.dispose]();

  assert.equal(clock.isWaiting, false);
});
