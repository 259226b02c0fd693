import assert from "node:assert/strict";
import { ChannelPool } from "./channel_pool.ts";
import type { GuestChannel } from "./channel.ts";

/** Channels of which tests say whether they are free. */
function setup(count: number) {
  const channels = Array.from({ length: count }, (_, number) => ({ number, isFree: true }));
  const pool = new ChannelPool(channels as unknown as GuestChannel[]);
  const never = new AbortController().signal;
  const take = (signal = never) =>
    pool.start((channel) => {
      const taken = channels.find((one) => one === channel as unknown)!;
      taken.isFree = false;
      return taken.number;
    }, signal);
  const free = (number: number): void => {
    channels[number]!.isFree = true;
    pool.wake();
  };
  return { pool, take, free };
}

Deno.test("ChannelPool hands out each channel once", async () => {
  const { take } = setup(3);

  assert.deepEqual(await Promise.all([take(), take(), take()]), [0, 1, 2]);
});

Deno.test("ChannelPool has the others wait until one is free again", async () => {
  const { take, free } = setup(1);
  await take();
  const order: string[] = [];
  const second = take().then(() => order.push("second"));
  const third = take().then(() => order.push("third"));

  free(0);
  await Promise.race([second, third]);
  assert.equal(order.length, 1);
  free(0);
  await Promise.all([second, third]);

  assert.equal(order.length, 2);
});

Deno.test("ChannelPool lets go who gave up, before or while he waits", async () => {
  const { take } = setup(1);
  await take();
  const gaveUp = new AbortController();
  const waiting = take(gaveUp.signal);

  gaveUp.abort();

  assert.equal(await waiting, undefined);
  assert.equal(await take(gaveUp.signal), undefined);
});

Deno.test("ChannelPool that is closed hands out nothing", async () => {
  const { pool, take } = setup(1);
  await take();
  const waiting = take();

  pool.close();

  assert.equal(await waiting, undefined);
  assert.equal(await take(), undefined);
});
