/**
 * How many bytes something may bring in a second.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ByteShare } from "./byte_share.ts";

Deno.test("ByteShare.allow() says no beyond the share of a second, and yes in the next", () => {
  const share = new ByteShare(100);

  assert.equal(share.allow(60, 0), true);
  assert.equal(share.allow(40, 999), true);
  assert.equal(share.allow(1, 999), false);
  assert.equal(share.allow(100, 1_000), true);
});

Deno.test("ByteShare.allow() counts what it refused: one too large takes the whole second", () => {
  const share = new ByteShare(100);

  assert.equal(share.allow(101, 5), false);
  assert.equal(share.allow(1, 6), false);
  assert.equal(share.allow(1, 1_005), true);
});
