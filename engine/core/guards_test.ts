/**
 * Rate limits, byte budgets and the comparison of secrets.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ByteBudget, isEqualSecret, RateWindow } from "./guards.ts";

Deno.test("RateWindow.allow() refuses the event beyond the limit, wherever the window starts", () => {
  const window = new RateWindow(3, 100);

  assert.deepEqual([0, 50, 99, 99].map((now) => window.allow(now)), [true, true, true, false]);
  assert.equal(window.allow(100), true);
  assert.equal(window.allow(149), false);
  assert.equal(window.allow(150), true);
});

Deno.test("RateWindow.allow() does not count refused events", () => {
  const window = new RateWindow(1, 100);
  window.allow(0);
  for (let now = 1; now < 100; now++) assert.equal(window.allow(now), false);

  assert.equal(window.allow(100), true);
});

Deno.test("ByteBudget.allow() refuses bytes beyond the budget until the next second", () => {
  const share = new ByteBudget(100);

  assert.equal(share.allow(60, 0), true);
  assert.equal(share.allow(40, 999), true);
  assert.equal(share.allow(1, 999), false);
  assert.equal(share.allow(100, 1_000), true);
});

Deno.test("ByteBudget.allow() counts refused bytes, too: one large frame uses up the second", () => {
  const share = new ByteBudget(100);

  assert.equal(share.allow(101, 5), false);
  assert.equal(share.allow(1, 6), false);
  assert.equal(share.allow(1, 1_005), true);
});

for (
  const [known, said, equal] of [
    ["abc", "abc", true],
    ["abc", "abd", false],
    ["abc", "", false],
    ["abc", "abcabc", false],
    ["aaaa", "a", false],
  ] as const
) {
  Deno.test(`isEqualSecret() is ${equal} for "${known}" and "${said}"`, () => {
    assert.equal(isEqualSecret(known, said), equal);
  });
}
