import assert from "node:assert/strict";
import { platformClock, wallTime } from "./clock.ts";

Deno.test("platformClock runs a task after its time, which now() shows", async () => {
  const start = platformClock.now();

  await new Promise<void>((resolve) => platformClock.after(5, resolve));

  assert.ok(platformClock.now() > start);
});

Deno.test("platformClock forgets a task that was cancelled", async () => {
  const ran: string[] = [];
  const cancel = platformClock.after(1, () => ran.push("cancelled"));

  cancel();
  await new Promise<void>((resolve) => platformClock.after(10, resolve));

  assert.deepEqual(ran, []);
});

Deno.test("wallTime() tells what the wall clock tells, and fractions", () => {
  const before = Date.now();
  const times = Array.from({ length: 50 }, () => wallTime());

  assert.ok(times.every((time) => time > before - 6 && time < Date.now() + 6));
  assert.ok(times.some((time) => !Number.isInteger(time)));
});

Deno.test("wallTime() follows a clock that somebody sets", () => {
  const { now } = Date;
  const real = now();
  Date.now = () => real + 3_600_000;
  const set = wallTime();
  Date.now = now;
  const back = wallTime();

  assert.ok(Math.abs(set - real - 3_600_000) < 1_000);
  assert.ok(Math.abs(back - real) < 1_000);
});
