import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { APPEND_MS, pause, repeat } from "./repeat.ts";

/** Lets everything run that waits for nothing, and the clock go on, until a promise settles. */
async function advanceUntil<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => isSettled = true);
  settled.catch(() => {});
  while (!isSettled) {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    clock.tick(100);
  }
  return settled;
}

Deno.test("repeat() gives the result of the first attempt that has one", async () => {
  const clock = new FakeClock();
  let attempts = 0;

  const result = await advanceUntil(
    clock,
    repeat(
      clock,
      () => ++attempts < 4 ? Promise.reject(new Error("no leader")) : Promise.resolve(7),
    ),
  );

  assert.deepEqual([result, attempts], [7, 4]);
});

Deno.test("repeat() fails with the last reason when its time is over", async () => {
  const clock = new FakeClock();
  const began = clock.now();

  const failing = repeat(clock, () => Promise.reject(new Error("no leader")));

  await assert.rejects(advanceUntil(clock, failing), {
    code: "store_unavailable",
    message: /no leader/,
  });
  assert.ok(clock.now() - began >= APPEND_MS);
});

Deno.test("repeat() does not repeat what failed for good", async () => {
  const refused = new EngineError("SET_ERROR", "another one is the last");
  let attempts = 0;

  await assert.rejects(
    repeat(new FakeClock(), () => {
      attempts++;
      return Promise.reject(refused);
    }),
    refused,
  );
  assert.equal(attempts, 1);
});

Deno.test("pause() ends with its time or with the signal", async () => {
  const clock = new FakeClock();
  const ending = new AbortController();

  const short = pause(clock, 1);
  clock.tick(100);
  await short;
  const long = pause(clock, 10, ending.signal);
  ending.abort();
  await long;
  await pause(clock, 10, AbortSignal.abort());
});
