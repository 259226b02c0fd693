import assert from "node:assert/strict";
import type { Work } from "../../engine/ports/turns.ts";
import { mapInTurns } from "./in_turns.ts";

/** Turns that end after each item. */
function setup() {
  const queued: Work[] = [];
  return { queued, turns: { queue: (work: Work) => void queued.push(work), isSpent: () => true } };
}

Deno.test("mapInTurns() does an item in a turn that is over at once, and keeps the order", async () => {
  const { turns, queued } = setup();
  const seen: number[] = [];
  const mapped = mapInTurns(turns, [1, 2, 3], (item) => {
    seen.push(item);
    return item * 2;
  });
  assert.deepEqual(seen, []);

  const [work] = queued;
  assert.equal(work!.work(), true);
  assert.deepEqual(seen, [1]);
  assert.equal(work!.work(), true);
  assert.equal(work!.work(), false);

  assert.deepEqual(await mapped, [2, 4, 6]);
  assert.equal(queued.length, 1);
});

Deno.test("mapInTurns() of no items needs no turn", async () => {
  const { turns, queued } = setup();

  assert.deepEqual(await mapInTurns(turns, [], () => 1), []);
  assert.equal(queued.length, 0);
});

Deno.test("mapInTurns() rejects with what an item throws, and ends", async () => {
  const { turns, queued } = setup();
  const mapped = mapInTurns(turns, [1, 2], () => {
    throw new Error("no");
  });

  assert.equal(queued[0]!.work(), false);
  await assert.rejects(mapped, { message: "no" });
});
