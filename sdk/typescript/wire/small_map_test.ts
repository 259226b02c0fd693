/**
 * A map that mostly has one entry, compared with a `Map`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
import { SmallMap } from "./small_map.ts";

Deno.test("SmallMap has what a Map has, with none, one and several entries", () => {
  const random = new Random(7);
  const keys = Array.from({ length: 3 }, (_, i) => ({ i }));
  const small = new SmallMap<object, number>();
  const map = new Map<object, number>();
  const sizes = new Set<number>();

  for (let step = 1; step <= 5_000; step++) {
    const key = random.pick(keys);
    if (random.once(2)) assert.equal(small.delete(key), map.delete(key));
    else {
      assert.equal(small.set(key, step), small);
      map.set(key, step);
    }
    sizes.add(map.size);
    assert.equal(small.size, map.size);
    assert.deepEqual([...small.keys()], [...map.keys()]);
    assert.deepEqual([...small.values()], [...map.values()]);
    for (const each of keys) {
      assert.equal(small.get(each), map.get(each));
      assert.equal(small.has(each), map.has(each));
    }
  }

  assert.deepEqual([...sizes].sort(), [0, 1, 2, 3]);
});
