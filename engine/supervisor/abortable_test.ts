import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { pause, StartSlots, whileWanted } from "./abortable.ts";

const NEVER = new AbortController().signal;

Deno.test("StartSlots hands its places on in the order they were asked for", async () => {
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

Deno.test("StartSlots takes a place back once, however often it is given", async () => {
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

Deno.test("StartSlots forgets who no longer waits", async () => {
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

Deno.test("StartSlots lets starts go before preparations", async () => {
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

Deno.test("StartSlots takes back a place that came at the moment it was no longer wanted", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER, "start");
  const leaving = new AbortController();
  const late = slots.take(leaving.signal, "start");

  release!();
  leaving.abort();

  assert.equal(await late, undefined);
  assert.equal(typeof await slots.take(NEVER, "start"), "function");
});

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
