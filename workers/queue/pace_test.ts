/**
 * Rates, delays and timers of a queue.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { backoffMs, Rate, Timers } from "./pace.ts";

Deno.test("Rate lets its jobs begin at once, then evenly", () => {
  const clock = new FakeClock();
  const rate = new Rate(clock, { jobs: 2, per_ms: 1_000 });
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    waits.push(rate.waitMs);
    clock.tick(rate.waitMs);
    rate.take();
  }
  assert.deepEqual(waits, [0, 0, 500, 500, 500]);

  clock.tick(60_000);
  rate.take();
  rate.take();
  assert.equal(rate.waitMs, 500);
});

Deno.test("Rate can be taken away and come back", () => {
  const clock = new FakeClock();
  const rate = new Rate(clock, { jobs: 1, per_ms: 1_000 });
  rate.take();
  assert.equal(rate.waitMs, 1_000);
  rate.rate = undefined;
  assert.equal(rate.waitMs, 0);
  rate.rate = { jobs: 1, per_ms: 100 };
  assert.equal(rate.waitMs, 0);
});

Deno.test("backoffMs() doubles up to its bound, and varies by its share", () => {
  const settings = {
    fifo: false,
    concurrency: 1,
    max_attempts: 9,
    backoff_ms: 100,
    backoff_max_ms: 350,
    jitter: 0.2,
  };
  assert.deepEqual([1, 2, 3, 2_000].map((n) => backoffMs(settings, n, 0.5)), [100, 200, 350, 350]);
  assert.deepEqual([0, 1].map((random) => backoffMs(settings, 1, random)), [80, 120]);
});

Deno.test("Timers end together, and so do pauses", async () => {
  const clock = new FakeClock();
  const ending = new AbortController();
  const timers = new Timers(clock, ending.signal);
  const ran: string[] = [];
  timers.after(10, () => ran.push("first"));
  timers.after(20, () => ran.push("second"));
  timers.after(5, () => ran.push("cancelled"))();
  const pause = timers.pause(1_000);
  clock.tick(10);
  ending.abort();
  clock.tick(100);
  await pause;
  timers.after(1, () => ran.push("late"));
  await timers.pause(1_000);

  assert.deepEqual(ran, ["first"]);
  assert.equal(clock.waiting, 0);
});
