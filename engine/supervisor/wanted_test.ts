import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { pause, whileWanted } from "./wanted.ts";

Deno.test("whileWanted() gives what was waited for, or why there is none", async () => {
  const { signal } = new AbortController();

  assert.equal(await whileWanted(Promise.resolve(7), signal), 7);
  await assert.rejects(whileWanted(Promise.reject(new Error("no")), signal), { message: "no" });
});

Deno.test("whileWanted() ends with the signal; what comes later, a failure too, changes nothing", async () => {
  const stopping = new AbortController();
  const late = Promise.withResolvers<number>();
  const waiting = whileWanted(late.promise, stopping.signal);

  stopping.abort();

  assert.equal(await waiting, undefined);
  late.reject(new Error("late"));
  assert.equal(await whileWanted(Promise.withResolvers().promise, stopping.signal), undefined);
});

Deno.test("pause() lasts so long, or until the signal, and leaves no timer behind", async () => {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const whole = pause(clock, 1_000, stopping.signal);
  clock.tick(1_000);
  await whole;
  const cut = pause(clock, 1_000, stopping.signal);
  assert.equal(clock.waiting, 1);

  stopping.abort();
  await cut;
  await pause(clock, 1_000, stopping.signal);

  assert.equal(clock.waiting, 0);
});
