import assert from "node:assert/strict";
import { systemClock, tickClock } from "./system_clock.ts";

Deno.test("systemClock.now() never goes back", () => {
  const readings = Array.from({ length: 1_000 }, () => systemClock.now());

  assert.deepEqual(readings, readings.toSorted((a, b) => a - b));
});

Deno.test("systemClock.now() moves while code runs, so that work can be measured", () => {
  const before = systemClock.now();
  busy(5);

  assert.ok(systemClock.now() >= before + 5);
});

Deno.test("tickClock.now() stands still until the running code yields, and no longer", async () => {
  const before = tickClock.now();
  busy(5);
  assert.equal(tickClock.now(), before);

  await Promise.resolve();

  assert.ok(tickClock.now() >= before + 5);
});

Deno.test("systemClock.wall() is the calendar's time", () => {
  const before = Date.now();

  const wall = systemClock.wall();

  assert.ok(wall >= before && wall <= Date.now());
});

Deno.test("systemClock.after() runs its task once, after the wait", async () => {
  const start = systemClock.now();
  let runs = 0;

  await new Promise<void>((resolve) => systemClock.after(20, () => resolve(void runs++)));

  assert.equal(runs, 1);
  assert.ok(systemClock.now() - start >= 19);
});

Deno.test("systemClock.after() takes a wait in the past for none", async () => {
  await new Promise<void>((resolve) => systemClock.after(-5, resolve));
});

Deno.test("systemClock.after() does not run a cancelled task", async () => {
  let ran = false;
  const cancel = systemClock.after(1, () => ran = true);

  cancel();
  cancel();
  await new Promise<void>((resolve) => systemClock.after(10, resolve));

  assert.equal(ran, false);
});

Deno.test("systemClock.after() supports delays longer than a platform timer", async () => {
  let ran = false;

  const cancel = systemClock.after(2 ** 31 + 5, () => ran = true);
  await new Promise<void>((resolve) => systemClock.after(10, resolve));
  cancel();

  assert.equal(ran, false);
});

function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
