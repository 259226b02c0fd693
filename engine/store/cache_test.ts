import assert from "node:assert/strict";
import { Cache } from "./cache.ts";

function entry(bytes: number) {
  return { key: ["k"], value: null, bytes, version: 1, created: 1 };
}

Deno.test("Cache forgets what was used longest ago when it is full", () => {
  const cache = new Cache(3_000);
  for (const id of ["a", "b", "c"]) cache.set(id, entry(300));

  cache.get("a");
  cache.set("d", entry(300));

  assert.deepEqual(["a", "b", "c", "d"].filter((id) => cache.get(id)), ["a", "c", "d"]);
});

Deno.test("Cache.peek() does not count as a use", () => {
  const cache = new Cache(3_000);
  for (const id of ["a", "b", "c"]) cache.set(id, entry(300));

  cache.peek("a");
  cache.set("d", entry(300));

  assert.equal(cache.peek("a"), undefined);
});

Deno.test("Cache tells that a key has no entry from not knowing", () => {
  const cache = new Cache(1_000);
  cache.set("a", null);

  assert.equal(cache.get("a"), null);
  assert.equal(cache.get("b"), undefined);
});

Deno.test("Cache does not take what is larger than itself, and forgets what it had", () => {
  const cache = new Cache(1_000);
  cache.set("a", entry(1));
  cache.set("b", entry(1));

  cache.set("a", entry(1_000));

  assert.equal(cache.get("a"), undefined);
  assert.ok(cache.get("b"));
});

Deno.test("Cache stays within its bytes and comes back to none", () => {
  const cache = new Cache(50_000);
  for (let i = 0; i < 1_000; i++) {
    cache.set(`${i % 70}`, i % 5 === 0 ? null : entry(i % 900));
    assert.ok(cache.bytes <= 50_000);
  }

  for (let i = 0; i < 70; i++) cache.delete(`${i}`);
  cache.delete("never there");

  assert.equal(cache.bytes, 0);
});
