/**
 * The clock of the tests keeps its own promises.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "./fake_clock.ts";

Deno.test("FakeClock.tick() runs tasks by deadline, equal ones in the order asked for", () => {
  const clock = new FakeClock();
  const ran: string[] = [];
  clock.after(20, () => ran.push("late"));
  clock.after(10, () => ran.push("first"));
  clock.after(10, () => ran.push("second"));

  clock.tick(15);

  assert.deepEqual(ran, ["first", "second"]);
  assert.equal(clock.nextIn, 5);
});

Deno.test("FakeClock.tick() runs what a task asks for within the same time", () => {
  const clock = new FakeClock();
  const seen: number[] = [];
  clock.after(10, () => {
    seen.push(clock.now());
    clock.after(5, () => seen.push(clock.now()));
  });

  clock.tick(100);

  assert.deepEqual(seen, [10, 15]);
  assert.equal(clock.now(), 100);
});

Deno.test("FakeClock.after() can be taken back, also after the task ran", () => {
  const clock = new FakeClock();
  let runs = 0;
  const cancel = clock.after(10, () => runs++);
  const done = clock.after(1, () => {});

  clock.tick(5);
  done();
  cancel();
  clock.tick(100);

  assert.equal(runs, 0);
  assert.equal(clock.waiting, 0);
});

Deno.test("FakeClock.wall() moves with now()", () => {
  const clock = new FakeClock(1_000);

  clock.tick(234);

  assert.equal(clock.wall(), 1_234);
});
