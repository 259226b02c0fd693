import assert from "node:assert/strict";
import { PROGRESS_BYTES_MIN, STARVED_MS, UnfinishedMessages } from "./unfinished_messages.ts";

/** A connection of which the test says what it holds. */
function holder(heldBytes: number, { isStarved = false, progress = 0 } = {}) {
  const cuts: string[] = [];
  return {
    heldBytes,
    isStarved,
    progress,
    cuts,
    takeProgress() {
      return this.progress;
    },
    cutUnfinished: (why: string) => void cuts.push(why),
  };
}

Deno.test("UnfinishedMessages cuts those that do not grow, once others have waited", () => {
  const it = new UnfinishedMessages();
  const slow = holder(100);
  const quick = holder(200, { progress: PROGRESS_BYTES_MIN });
  const waiting = holder(0, { isStarved: true });
  const all = [slow, quick, waiting];

  it.check(all, 0);
  it.check(all, STARVED_MS - 1);
  assert.deepEqual(all.map(({ cuts }) => cuts.length), [0, 0, 0]);
  it.check(all, STARVED_MS);
  assert.deepEqual(all.map(({ cuts }) => cuts.length), [1, 0, 0]);
});

Deno.test("UnfinishedMessages cuts the largest where all wait for each other", () => {
  const it = new UnfinishedMessages();
  const all = [holder(100, { isStarved: true }), holder(300, { isStarved: true })];

  it.check(all, 0);
  it.check(all, STARVED_MS);

  assert.deepEqual(all.map(({ cuts }) => cuts.length), [0, 1]);
});

Deno.test("UnfinishedMessages begins anew when none waits any more", () => {
  const it = new UnfinishedMessages();
  const slow = holder(100);
  const waiting = holder(0, { isStarved: true });

  it.check([slow, waiting], 0);
  it.check([slow], STARVED_MS);
  it.check([slow, waiting], STARVED_MS + 1);
  it.check([slow, waiting], 2 * STARVED_MS);

  assert.equal(slow.cuts.length, 0);
});
