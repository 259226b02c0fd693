import assert from "node:assert/strict";
import { LargeMap, LargeSet, PART_MAX } from "./large_map.ts";

/** Numbers that repeat from run to run. */
function* random(seed: number): Generator<number, never> {
  for (let state = seed;;) yield (state = state * 1103515245 + 12345 & 0x7fffffff) / 0x80000000;
}

Deno.test("a large map does what a map does, over many parts", () => {
  const numbers = random(7);
  const next = (max: number): number => Math.floor(numbers.next().value * max);
  const [large, plain] = [new LargeMap<number, number>(), new Map<number, number>()];

  for (let round = 0; round < 12; round++) {
    const isGrowing = round % 3 !== 2;
    for (let i = 0; i < PART_MAX; i++) {
      const [key, value] = [next(PART_MAX * 6), next(100)];
      if (isGrowing) large.set(key, value), plain.set(key, value);
      else assert.equal(large.delete(key), plain.delete(key));
      const asked = next(PART_MAX * 6);
      assert.equal(large.get(asked), plain.get(asked));
      assert.equal(large.has(asked), plain.has(asked));
    }
    assert.equal(large.size, plain.size);
    assert.deepEqual([...large], [...plain]);
  }
  assert.deepEqual([...large.keys()], [...plain.keys()]);
  assert.deepEqual([...large.values()], [...plain.values()]);
  large.clear();
  assert.deepEqual([large.size, [...large], large.get(1)], [0, [], undefined]);
});

Deno.test("entries that end while a large map is read are not reported, and no other is lost", () => {
  const large = new LargeMap<number, number>();
  for (let key = 0; key < PART_MAX * 3; key++) large.set(key, key);

  const seen: number[] = [];
  for (const key of large.keys()) {
    seen.push(key);
    large.delete(key);
    large.delete(key + 1);
  }

  assert.equal(seen.length, PART_MAX * 1.5);
  assert.equal(large.size, 0);
});

Deno.test("parts in which little is left do not become more and more", () => {
  const large = new LargeMap<number, number>();
  const keptPerPart = 4;
  for (let round = 0; round < 200; round++) {
    const first = round * PART_MAX;
    for (let key = first; key < first + PART_MAX; key++) large.set(key, key);
    for (let key = first + keptPerPart; key < first + PART_MAX; key++) large.delete(key);
  }

  assert.equal(large.size, 200 * keptPerPart);
  assert.ok(large.parts <= 3, `${large.parts} parts`);
});

Deno.test("a large set keeps each item once, in order", () => {
  const set = new LargeSet<string>();

  set.add("b").add("a").add("b");

  assert.deepEqual([[...set], set.size, set.has("a")], [["b", "a"], 2, true]);
  assert.deepEqual([set.delete("b"), set.delete("b"), [...set]], [true, false, ["a"]]);
});
