/**
 * How often something may happen.
 *
 * @module
 */
import assert from "node:assert/strict";
import { RateWindow } from "./rate_window.ts";

Deno.test("RateWindow.allow() says no to the one beyond the bound, wherever the window begins", () => {
  const window = new RateWindow(3, 100);

  assert.deepEqual([0, 50, 99, 99].map((now) => window.allow(now)), [true, true, true, false]);
  assert.equal(window.allow(100), true);
  assert.equal(window.allow(149), false);
  assert.equal(window.allow(150), true);
});

Deno.test("RateWindow.allow() does not count what it said no to", () => {
  const window = new RateWindow(1, 100);
  window.allow(0);
  for (let now = 1; now < 100; now++) assert.equal(window.allow(now), false);

  assert.equal(window.allow(100), true);
});
