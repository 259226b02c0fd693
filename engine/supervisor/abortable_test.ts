import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { pause, StartSlots, untilAborted } from "./abortable.ts";

const NEVER = new AbortController().signal;

Deno.test("StartSlots assigns slots in the order of requests", async () => {
  const slots = new StartSlots(1);
  const order: string[] = [];
  const release = await slots.take(NEVER, "start");
  const second = slots.take(NEVER, "start").then((give) => (order.push("second"), give));
  const third = slots.take(NEVER, "start").then((give) => (order.push("third"), give));
  assert.deepEqual(order, []);

  release!();
  (await second)!();
  await third;

  assert.deepEqual(order, ["second", "third"]);
});

Deno.test("StartSlots takes a slot back once", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER, "start");
  release!();
  release!();
  await slots.take(NEVER, "start");
  const leaving = new AbortController();
  const second = slots.take(leaving.signal, "start");

  leaving.abort();

  assert.equal(await second, undefined);
});

Deno.test("StartSlots skips requests that were aborted", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER, "start");
  const leaving = new AbortController();
  const gone = slots.take(leaving.signal, "start");
  const last = slots.take(NEVER, "start");

  leaving.abort();
  release!();

  assert.equal(await gone, undefined);
  assert.equal(typeof await last, "function");
  assert.equal(await slots.take(AbortSignal.abort(), "start"), undefined);
});

Deno.test("StartSlots prefers starts to preparations", async () => {
  const slots = new StartSlots(1);
  const order: string[] = [];
  const release = await slots.take(NEVER, "start");
  const uses = ["prepare", "start", "prepare", "start"] as const;
  const all = uses.map(async (use) => {
    const give = await slots.take(NEVER, use);
    order.push(use);
    give!();
  });

  release!();
  await Promise.all(all);

  assert.deepEqual(order, ["start", "start", "prepare", "prepare"]);
});

Deno.test("StartSlots takes back a slot that was assigned while its request aborted", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER, "start");
  const leaving = new AbortController();
  const late = slots.take(leaving.signal, "start");

  release!();
  leaving.abort();

  assert.equal(await late, undefined);
  assert.equal(typeof await slots.take(NEVER, "start"), "function");
});

Deno.test("untilAborted() settles like the promise", async () => {
  const { signal } = new AbortController();

  assert.equal(await untilAborted(Promise.resolve(7), signal), 7);
  await assert.rejects(untilAborted(Promise.reject(new Error("no")), signal), { message: "no" });
});

Deno.test("untilAborted() ends with the signal and ignores later results and errors", async () => {
  const stopping = new AbortController();
  const late = Promise.withResolvers<number>();
  const waiting = untilAborted(late.promise, stopping.signal);

  stopping.abort();

  assert.equal(await waiting, undefined);
  late.reject(new Error("late"));
  assert.equal(await untilAborted(Promise.withResolvers().promise, stopping.signal), undefined);
});

Deno.test("pause() ends after its time or with the signal, and leaves no timer", async () => {
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
