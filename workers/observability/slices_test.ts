import assert from "node:assert/strict";
import { Slices, WAITING_TASKS_MAX } from "./slices.ts";

/** Time that passes when a task takes some; timers run by hand. */
function setup() {
  let now = 0;
  const timers: (() => void)[] = [];
  const slices = new Slices({
    now: () => now,
    wall: () => now,
    after: (_ms, task) => {
      timers.push(task);
      return () => timers.splice(timers.indexOf(task), 1);
    },
  });
  const ran: number[] = [];
  const task = (id: number, ms: number) =>
    slices.run(() => {
      ran.push(id);
      now += ms;
    });
  const pass = (ms: number) => {
    now += ms;
    for (const timer of timers.splice(0)) timer();
  };
  return { slices, task, ran, pass, timers };
}

Deno.test("Slices runs tasks at once while they fit into the slice", () => {
  const { task, ran, timers } = setup();

  for (let i = 0; i < 100; i++) task(i, 0.01);

  assert.equal(ran.length, 100);
  assert.equal(timers.length, 0);
});

Deno.test("Slices leaves the thread after a slice, and goes on in order", () => {
  const { task, ran, pass, slices } = setup();

  for (let i = 0; i < 10; i++) task(i, 1);
  assert.deepEqual([ran.length, slices.waiting], [2, 8]);
  pass(1);
  assert.deepEqual([ran.length, slices.waiting], [4, 6]);
  for (let i = 0; i < 4; i++) pass(1);

  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

Deno.test("Slices runs one task per timer when each takes long", () => {
  const { task, ran, pass } = setup();

  for (let i = 0; i < 3; i++) task(i, 50);
  pass(1);

  assert.deepEqual(ran, [0, 1]);
});

Deno.test("Slices drops tasks when too many wait, and all when stopped", () => {
  const { task, ran, pass, slices, timers } = setup();
  task(0, 5);

  const taken = Array.from({ length: WAITING_TASKS_MAX + 10 }, (_, i) => task(i, 0));
  assert.equal(taken.filter((isTaken) => !isTaken).length, 10);
  slices.stop();
  pass(1);

  assert.deepEqual([ran.length, slices.waiting, timers.length], [1, 0, 0]);
});
