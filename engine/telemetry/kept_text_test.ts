/**
 * Texts that are kept for a while.
 *
 * @module
 */
import assert from "node:assert/strict";
import { costOf, kept } from "./kept_text.ts";

Deno.test("kept() is the same text, cut with a mark where it is too long", () => {
  assert.equal(kept("abc"), "abc");
  assert.equal(kept("abc", 3), "abc");
  assert.equal(kept("abcd", 3), "ab…");
  assert.equal(kept(""), "");
});

Deno.test("costOf() counts two bytes for each character as soon as one needs them", () => {
  assert.ok(costOf("a".repeat(1_000)) < 1_100);
  assert.ok(costOf("a".repeat(999) + "€") >= 2_000);
});

Deno.test("kept() does not keep alive what its text was cut from", () => {
  const before = Deno.memoryUsage().heapUsed;
  const all: string[] = [];
  for (let i = 0; i < 200; i++) {
    const frame = `${i}`.padStart(8, "0").repeat(128 * 1024);
    all.push(kept(frame.slice(5, 2_005)), kept(frame.slice(5, 50_000), 2_000));
  }
  const grown = Deno.memoryUsage().heapUsed - before;

  assert.equal(all.length, 400);
  assert.ok(grown < 150 * 1024 * 1024, `${grown} bytes more`); // The frames are 200 MiB.
});
