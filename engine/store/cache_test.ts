import assert from "node:assert/strict";
import { randomFrom } from "../../tests/fakes/store_values.ts";
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

Deno.test("Cache keeps what a list in the order of use would keep, over random lives", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = randomFrom(seed);
    const cache = new Cache(20_000);
    let model: { id: string; bytes: number }[] = []; // The newest last.
    const idAt = () => `${Math.floor(random() * 40)}`;
    for (let step = 0; step < 500; step++) {
      const id = idAt();
      const known = model.find((each) => each.id === id);
      const others = model.filter((each) => each.id !== id);
      if (random() < 0.5) {
        assert.equal(cache.get(id) !== undefined, known !== undefined, `seed ${seed}, ${step}`);
        if (known) model = [...others, known];
      } else {
        const bytes = Math.floor(random() * 2_000);
        cache.set(id, entry(bytes));
        model = [...others, { id, bytes: 256 + 2 * (id.length + bytes) }];
        while (sum(model) > 20_000) model.shift();
      }
      assert.equal(cache.bytes, sum(model), `seed ${seed}, ${step}`);
    }
  }
});

function sum(kept: readonly { bytes: number }[]): number {
  return kept.reduce((total, { bytes }) => total + bytes, 0);
}
