import assert from "node:assert/strict";
import { inSlices, type Steps } from "./slices.ts";

function* steps(count: number, busyMs: number): Steps<number> {
  let done = 0;
  for (let i = 0; i < count; i++) {
    for (const until = performance.now() + busyMs; performance.now() < until;);
    done++;
    yield;
  }
  return done;
}

Deno.test("inSlices() does quick work in the turn in which it began", async () => {
  let isDone = false;
  function* work(): Steps<void> {
    yield* steps(30, 0);
    isDone = true;
  }

  const end = inSlices(work(), () => true);

  assert.ok(isDone);
  await end;
});

Deno.test("inSlices() lets others have their turn during long work", async () => {
  let turns = 0;
  const others = setInterval(() => turns++, 0);

  const done = await inSlices(steps(300, 0.5), () => true);

  clearInterval(others);
  assert.equal(done, 300);
  assert.ok(turns >= 3, `${turns}`);
});

Deno.test("inSlices() waits for promises and hands out what comes of the work", async () => {
  const order: string[] = [];
  function* work(): Steps<string> {
    yield Promise.resolve().then(() => void order.push("waited"));
    order.push("went on");
    return "result";
  }

  assert.equal(await inSlices(work(), () => true), "result");
  assert.deepEqual(order, ["waited", "went on"]);
});

Deno.test("inSlices() ends work that is no longer wanted, and cleans up", async () => {
  let isClean = false;
  function* work(): Steps<string> {
    try {
      yield Promise.resolve();
      return "result";
    } finally {
      isClean = true;
    }
  }

  assert.equal(await inSlices(work(), () => false), undefined);
  assert.ok(isClean);
});

Deno.test("inSlices() rejects with what the work throws", async () => {
  function* work(): Steps<void> {
    yield;
    throw new Error("broken");
  }

  await assert.rejects(inSlices(work(), () => true), /broken/);
});
