import assert from "node:assert/strict";
import { EngineError } from "../typescript/wire/errors.ts";
import type { StreamEvent } from "./events.ts";
import {
  BUFFER_CHARS_MAX,
  BUFFER_EVENTS_DEFAULT,
  type SubscribeOptions,
  Subscription,
} from "./subscription.ts";

function setup(options: SubscribeOptions = {}) {
  const ended: Subscription[] = [];
  const subscription = new Subscription({
    stream: "chat",
    group: "room-1",
    items: new Map([["now", 1]]),
    isLive: () => true,
    sync: (missed) => ({ type: "sync", items: [1], timestamp: 0, missed }),
    ended: (it) => ended.push(it),
  }, options);
  return { subscription, ended };
}

function change(n: number): StreamEvent {
  return { type: "update", id: "i", item: n, timestamp: n };
}

Deno.test("events come in order, whether the program or the event is first", async () => {
  const { subscription } = setup();
  const early = [subscription.next(), subscription.next()];

  for (const n of [1, 2, 3]) subscription.push(change(n), 10);
  subscription.close();

  const rest = [subscription.next(), subscription.next()];
  assert.deepEqual(await Promise.all([...early, ...rest]), [
    ...[1, 2, 3].map((n) => ({ done: false, value: change(n) })),
    { done: true, value: undefined },
  ]);
});

Deno.test("a program that is too slow gets one sync in place of what it missed", async () => {
  const { subscription } = setup({ bufferEvents: 3 });

  for (const n of [1, 2, 3, 4, 5]) subscription.push(change(n), 10);

  const sync = { type: "sync", items: [1], timestamp: 0, missed: 4 };
  assert.deepEqual((await subscription.next()).value, sync);
  assert.deepEqual((await subscription.next()).value, change(5));
});

Deno.test("the bounds of what waits: 1,000 events, 8 Mi characters", async () => {
  const [many, large] = [setup().subscription, setup().subscription];
  for (let n = 0; n < BUFFER_EVENTS_DEFAULT; n++) many.push(change(n), 1);
  large.push(change(0), BUFFER_CHARS_MAX);

  assert.deepEqual((await many.next()).value, change(0));
  large.push(change(1), 1);

  assert.equal((await large.next()).value.missed, 2);
});

Deno.test("an error comes after what waits, once", async () => {
  const { subscription, ended } = setup();
  subscription.push(change(1), 1);

  subscription.fail(new EngineError("unauthorized", "no"));

  assert.equal((await subscription.next()).done, false);
  await assert.rejects(subscription.next(), { code: "unauthorized" });
  assert.deepEqual(await subscription.next(), { done: true, value: undefined });
  assert.deepEqual(ended, [], "the client knows already");
});

Deno.test("a program that waits gets the error, further ones the end", async () => {
  const { subscription } = setup();
  const waiting = [subscription.next(), subscription.next()];

  subscription.fail(new EngineError("unauthorized", "no"));

  await assert.rejects(waiting[0]!, { code: "unauthorized" });
  assert.equal((await waiting[1]!).done, true);
});

Deno.test("leaving the loop, the signal and close() end it, once", async () => {
  const controller = new AbortController();
  const [left, aborted, disposed] = [setup(), setup({ signal: controller.signal }), setup()];

  left.subscription.push(change(1), 1);
  for await (const _event of left.subscription) break;
  const waiting = aborted.subscription.next();
  controller.abort();
  await disposed.subscription[Symbol.asyncDispose]();
  disposed.subscription.close();

  assert.equal((await waiting).done, true);
  for (const { ended, subscription } of [left, aborted, disposed]) {
    assert.deepEqual(ended, [subscription]);
    assert.equal(subscription.isLive, false);
    subscription.push(change(2), 1);
    assert.equal((await subscription.next()).done, true);
  }
});

Deno.test("a bound that is no number above 0 is refused", () => {
  for (const bufferEvents of [0, -1, 1.5, NaN]) {
    assert.throws(() => setup({ bufferEvents }), { code: "INVALID_ARGUMENTS" });
  }
});
