import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { TokenBucket } from "./token_bucket.ts";

function setup(perSecond: number) {
  const clock = new FakeClock();
  const bucket = new TokenBucket(perSecond, () => clock.now());
  const takeAll = (): number => {
    let taken = 0;
    while (bucket.take()) taken++;
    return taken;
  };
  return { clock, takeAll };
}

Deno.test("TokenBucket gives a second's worth at once and no more", () => {
  assert.equal(setup(100).takeAll(), 100);
});

Deno.test("TokenBucket fills with time, never above a second's worth", () => {
  const { clock, takeAll } = setup(100);
  takeAll();

  clock.tick(250);
  assert.equal(takeAll(), 25);
  clock.tick(60_000);
  assert.equal(takeAll(), 100);
});

Deno.test("TokenBucket gives nothing for a clock that goes back", () => {
  let now = 1_000;
  const bucket = new TokenBucket(1, () => now);
  assert.ok(bucket.take());

  now = 0;
  assert.equal(bucket.take(), false);
});
