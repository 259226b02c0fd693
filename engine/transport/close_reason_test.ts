import assert from "node:assert/strict";
import { shortReason } from "./close_reason.ts";

Deno.test("shortReason() leaves 123 bytes and cuts between characters", () => {
  assert.equal(shortReason(""), "");
  assert.equal(shortReason("x".repeat(123)), "x".repeat(123));
  assert.equal(shortReason("x".repeat(124)), "x".repeat(123));
  assert.equal(shortReason("ü".repeat(80)), "ü".repeat(61));
  assert.equal(shortReason("xx" + "😀".repeat(40)), "xx" + "😀".repeat(30));
});
