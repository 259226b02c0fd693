import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { OutputTurns } from "./output_turns.ts";

/** Lets all pending microtasks run. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

Deno.test("OutputTurns passes small output on at once", () => {
  const clock = new FakeClock();
  const turns = new OutputTurns(clock);
  const seen: number[] = [];

  void turns.pass(new Uint8Array([1, 2, 3]), (piece) => void seen.push(...piece));

  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(clock.waiting, 0);
});

Deno.test("OutputTurns passes all bytes on in order, however many there are", async () => {
  const clock = new FakeClock();
  const turns = new OutputTurns(clock);
  const bytes = Uint8Array.from({ length: 1_000_000 }, (_, i) => i % 251);
  const seen = new Uint8Array(bytes.length);
  let at = 0;
  let isDone = false;

  const passed = turns.pass(bytes, (piece) => {
    seen.set(piece, at);
    at += piece.length;
  }).then(() => isDone = true);
  while (!isDone) {
    await settle();
    clock.tick(1);
  }
  await passed;

  assert.deepEqual(seen, bytes);
  // A megabyte of eight per second.
  assert.ok(clock.now() > 90 && clock.now() < 200, `${clock.now()}`);
});

Deno.test("OutputTurns lets a fifth of the time go to work, whatever that costs", async () => {
  const clock = new FakeClock();
  const turns = new OutputTurns(clock);
  let workMs = 0;
  const began = clock.now();
  let isDone = false;

  void turns.pass(new Uint8Array(100 * 2_048), () => {
    workMs += 1; // A piece of many lines.
    clock.tick(1);
  }).then(() => isDone = true);
  while (!isDone) {
    await settle();
    clock.tick(1);
  }

  assert.equal(workMs, 100);
  const share = workMs / (clock.now() - began);
  assert.ok(share < 0.25, `${share}`);
});

Deno.test("OutputTurns lets those who wait take turns", async () => {
  const clock = new FakeClock();
  const turns = new OutputTurns(clock);
  const order: string[] = [];
  const print = (name: string) =>
    turns.pass(new Uint8Array(20 * 2_048), () => {
      order.push(name);
      clock.tick(3);
    });
  let isDone = false;

  void Promise.all([print("a"), print("b")]).then(() => isDone = true);
  while (!isDone) {
    await settle();
    clock.tick(1);
  }

  const middle = order.slice(4, 30);
  assert.ok(middle.filter((name) => name === "a").length > 10, order.join(""));
  assert.ok(middle.filter((name) => name === "b").length > 10, order.join(""));
});
