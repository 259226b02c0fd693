/**
 * Firing of many triggers in slices: order, exactly once, bounds.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { EVENTS_WAITING_MAX, FanOut, SLICE_MS, Subscribers } from "./fan_out.ts";

function trigger(id: string): TriggerInstance {
  return { id, trigger_type: "t", function_id: id, config: {} } as TriggerInstance;
}

/** A fan-out whose clock advances by `costMs` with each firing. */
function setup(triggers: number, costMs = 0) {
  const clock = new FakeClock();
  const fired: string[] = [];
  let [dropped, time, onFire] = [0, 0, (): void => {}];
  const worker = {
    trigger: ({ function_id, payload }: { function_id: string; payload: Json }) => {
      fired.push(`${function_id} ${payload}`);
      time += costMs;
      onFire();
      return Promise.resolve();
    },
  } as unknown as Pick<Worker, "trigger">;
  const slow = {
    now: () => time,
    wall: () => clock.wall(),
    after: (ms: number, task: () => void) => clock.after(ms, task),
  };
  const fanOut = new FanOut(worker, slow, () => dropped++);
  const subscribers = new Subscribers();
  for (let i = 0; i < triggers; i++) fanOut.subscribe(subscribers, trigger(`f${i}`));
  return {
    clock,
    fanOut,
    subscribers,
    take: () => fired.splice(0),
    dropped: () => dropped,
    set onFire(then: () => void) {
      onFire = then;
    },
  };
}

Deno.test("few triggers are fired at once, in order", () => {
  const { fanOut, subscribers, take } = setup(2);

  fanOut.send(subscribers, "a");
  fanOut.send(subscribers, "b");

  assert.deepEqual(take(), ["f0 a", "f1 a", "f0 b", "f1 b"]);
  assert.equal(subscribers.waiting, 0);
});

Deno.test("many triggers are fired in slices, each once and in the order of events", () => {
  const it = setup(1_000, SLICE_MS / 100);

  it.fanOut.send(it.subscribers, "a");
  it.fanOut.send(it.subscribers, "b");
  const first = it.take();
  assert.ok(first.length >= 90 && first.length <= 120, `${first.length} in one slice`);
  assert.equal(it.subscribers.waiting, 2);
  const all = [...first];
  while (it.clock.waiting > 0) {
    it.clock.tick(1);
    const slice = it.take();
    assert.ok(slice.length <= 120);
    all.push(...slice);
  }

  const names = Array.from({ length: 1_000 }, (_, i) => `f${i}`);
  assert.deepEqual(all, [...names.map((id) => `${id} a`), ...names.map((id) => `${id} b`)]);
  assert.equal(it.subscribers.waiting, 0);
});

Deno.test("a trigger that is removed receives nothing more, a new one no earlier event", () => {
  const it = setup(20, SLICE_MS / 8);
  it.fanOut.send(it.subscribers, "a");
  assert.equal(it.take().length, 8);

  it.subscribers.remove("f10");
  it.fanOut.subscribe(it.subscribers, trigger("new"));
  it.fanOut.send(it.subscribers, "b");
  for (let i = 0; i < 10; i++) it.clock.tick(1);

  const rest = it.take();
  assert.ok(!rest.some((each) => each.startsWith("f10 ")));
  assert.deepEqual(rest.filter((each) => each.startsWith("new ")), ["new b"]);
  assert.equal(rest.length, 11 + 20);
});

Deno.test("an event that a firing causes waits for its turn", () => {
  const it = setup(2);
  let count = 0;
  it.onFire = () => {
    if (count++ === 0) it.fanOut.send(it.subscribers, "b");
  };

  it.fanOut.send(it.subscribers, "a");

  assert.deepEqual(it.take(), ["f0 a", "f1 a", "f0 b", "f1 b"]);
});

Deno.test("too many waiting events drop the oldest, which is reported", () => {
  const it = setup(100, SLICE_MS);

  for (let i = 0; i < EVENTS_WAITING_MAX + 3; i++) it.fanOut.send(it.subscribers, i);

  assert.equal(it.dropped(), 3);
  assert.equal(it.subscribers.waiting, EVENTS_WAITING_MAX);
  it.take();
  it.clock.tick(1);
  assert.ok(it.take().every((each) => each.endsWith(" 3")));
});

Deno.test("nothing waits for a type without triggers, nor after stop()", () => {
  const none = setup(0);
  none.fanOut.send(none.subscribers, "a");
  assert.equal(none.subscribers.waiting, 0);

  const it = setup(100, SLICE_MS);
  it.fanOut.send(it.subscribers, "a");
  it.take();
  it.fanOut.stop();
  it.clock.tick(10);
  assert.deepEqual([it.take(), it.clock.waiting], [[], 0]);
});
