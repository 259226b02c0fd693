import assert from "node:assert/strict";
import { LargeMap, PART_MAX, PARTS } from "./large_map.ts";

/** Numbers that repeat from run to run. */
function* random(seed: number): Generator<number, never> {
  for (let state = seed;;) yield (state = state * 1103515245 + 12345 & 0x7fffffff) / 0x80000000;
}

Deno.test("a large map does what a map does, before and after it is divided", () => {
  const numbers = random(7);
  const next = (max: number): number => Math.floor(numbers.next().value * max);
  const [large, plain] = [new LargeMap<number>(), new Map<string, number>()];

  for (let round = 0; round < 12; round++) {
    const isGrowing = round % 3 !== 2;
    for (let i = 0; i < PART_MAX; i++) {
      const [key, value] = [`key ${next(PART_MAX * 6)}`, next(100)];
      if (isGrowing) large.set(key, value), plain.set(key, value);
      else assert.equal(large.delete(key), plain.delete(key));
      const asked = `key ${next(PART_MAX * 6)}`;
      assert.equal(large.get(asked), plain.get(asked));
      assert.equal(large.has(asked), plain.has(asked));
    }
    assert.equal(large.size, plain.size);
    assert.deepEqual([...large].sort(), [...plain].sort());
  }
  assert.deepEqual([...large.keys()].sort(), [...plain.keys()].sort());
  assert.deepEqual([...large.values()].sort(), [...plain.values()].sort());
  for (const key of plain.keys()) assert.ok(large.delete(key));
  assert.deepEqual([large.size, [...large], large.get("key 1")], [0, [], undefined]);
});

Deno.test("up to its limit, and after it was empty, a large map keeps the order of a map", () => {
  const large = new LargeMap<number>();
  const keys = Array.from({ length: PART_MAX }, (_, i) => `${i * 7919 % PART_MAX}`);

  for (const [i, key] of keys.entries()) large.set(key, i);
  assert.deepEqual([...large.keys()], keys);
  large.set("one more", 0).set("another", 0);
  large.clear();
  large.set("b", 1).set("a", 2).set("b", 3);

  assert.deepEqual([...large], [["b", 3], ["a", 2]]);
});

Deno.test("entries that end while a large map is read are not reported, and no other is lost", () => {
  const large = new LargeMap<number>();
  for (let i = 0; i < PART_MAX * 3; i++) large.set(`key ${i}`, i);

  let seen = 0;
  for (const [key, i] of large) {
    seen++;
    large.delete(key);
    large.delete(`key ${i ^ 1}`);
  }

  assert.equal(seen, PART_MAX * 1.5);
  assert.equal(large.size, 0);
});

for (
  const [name, keyOf] of Object.entries({
    "that end in a number": (i: number) => `worker-with-a-long-name::orders::handler::${i}`,
    "that begin with a number": (i: number) => `${i}::orders::handler::of-a-worker-with-a-name`,
    "that are UUIDs": () => crypto.randomUUID(),
    "that are long texts with a difference near the end": (i: number) =>
      `["default","f",{"text":"${"x".repeat(500)}","id":${i}}]`,
  })
) {
  Deno.test(`keys ${name} are spread evenly over the parts`, () => {
    const large = new LargeMap<number>();
    const count = PART_MAX * 4;
    const fair = count / PARTS;

    for (let i = 0; i < count; i++) large.set(keyOf(i), i);

    assert.equal(large.size, count);
    assert.ok(large.largestPart < fair * 1.5, `${large.largestPart} of ${fair}`);
  });
}
