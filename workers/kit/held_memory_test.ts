/**
 * Memory that is taken, waited for and returned.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { settle } from "../../tests/fakes/fake_http.ts";
import { HeldMemory, MEMORY_WAIT_MS } from "./held_memory.ts";

function setup(limit = 100) {
  const clock = new FakeClock();
  const memory = createMemoryBudget(limit, queueMicrotask);
  return { clock, memory, open: () => new HeldMemory(memory, clock) };
}

Deno.test("HeldMemory returns all it took, once", () => {
  const { memory, open } = setup();
  const held = open();

  assert.equal(held.take(60), true);
  assert.equal(held.take(60), false);
  held.give(20);
  assert.equal(memory.used("bodies"), 40);
  held.release();
  held.release();

  assert.equal(memory.usedBytes, 0);
  assert.equal(held.take(1), false);
});

Deno.test("HeldMemory.takeSoon() waits until there is room", async () => {
  const { memory, open, clock } = setup();
  const [first, second] = [open(), open()];
  first.take(60);

  const taken = second.takeSoon(60);
  first.release();

  assert.equal(await taken, true);
  assert.equal(memory.usedBytes, 60);
  assert.equal(clock.waiting, 0);
  second.release();
});

Deno.test("HeldMemory.takeSoon() gives up after a while", async () => {
  const { memory, open, clock } = setup();
  const [first, second] = [open(), open()];
  first.take(60);

  const taken = second.takeSoon(60);
  await settle();
  clock.tick(MEMORY_WAIT_MS);

  assert.equal(await taken, false);
  first.release();
  await settle();
  assert.equal(memory.usedBytes, 0);
});

Deno.test("HeldMemory.takeSoon() refuses at once what never fits", async () => {
  const { open, clock } = setup();

  assert.equal(await open().takeSoon(101), false);
  assert.equal(clock.waiting, 0);
});

Deno.test("HeldMemory takes nothing for a request that ended while it waited", async () => {
  const { memory, open } = setup();
  const [first, second] = [open(), open()];
  first.take(60);
  const taken = second.takeSoon(60);

  second.release();
  first.release();

  assert.equal(await taken, false);
  assert.equal(memory.usedBytes, 0);
});
