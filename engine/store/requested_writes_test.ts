import assert from "node:assert/strict";
import { FakeTurns } from "../../tests/fakes/fake_clock.ts";
import { APPLIED_AT_ONCE, RequestedWrites } from "./requested_writes.ts";

/** Writes that are applied once they are ready. */
function setup(turns: FakeTurns | undefined) {
  const applied: number[] = [];
  const ready = { upTo: -1 };
  const requested = new RequestedWrites<number>(turns, (write) => {
    if (write > ready.upTo) return false;
    applied.push(write);
    return true;
  });
  return { applied, ready, requested };
}

Deno.test("RequestedWrites applies what waited behind one write in turns, in order", () => {
  const turns = new FakeTurns();
  const { applied, ready, requested } = setup(turns);
  const count = 3 * APPLIED_AT_ONCE + 1;
  for (let n = 0; n < count; n++) requested.add(n);
  assert.equal(applied.length, 0);

  ready.upTo = count;
  requested.advance();
  const perTurn = [applied.length];
  requested.add(count);
  while (turns.waiting > 0) {
    turns.give(0);
    perTurn.push(applied.length);
  }

  const [one, two, three] = [1, 2, 3].map((times) => times * APPLIED_AT_ONCE);
  assert.deepEqual(perTurn, [one, two, three, count + 1]);
  assert.deepEqual(applied, Array.from({ length: count + 1 }, (_, n) => n));
});

Deno.test("RequestedWrites goes on when the first write is ready, without a turn", () => {
  const turns = new FakeTurns();
  const { applied, ready, requested } = setup(turns);
  ready.upTo = 0;

  for (const n of [0, 1, 2]) requested.add(n);
  assert.deepEqual([applied, turns.waiting], [[0], 0]);
  ready.upTo = 2;
  requested.advance();

  assert.deepEqual([applied, turns.waiting], [[0, 1, 2], 0]);
});

Deno.test("RequestedWrites without turns applies all at once", () => {
  const { applied, ready, requested } = setup(undefined);
  for (let n = 0; n < 1_000; n++) requested.add(n);

  ready.upTo = 1_000;
  requested.advance();

  assert.equal(applied.length, 1_000);
});
