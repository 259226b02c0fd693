import assert from "node:assert/strict";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { hashOf, TurnoverMap } from "./turnover_map.ts";

Deno.test("TurnoverMap.get() finds a value until it is taken", () => {
  const map = new TurnoverMap<string, number>();
  map.set("a", 1);
  map.set("b", 2);

  const taken = map.take("a");

  assert.equal(taken, 1);
  assert.deepEqual([map.get("a"), map.get("b"), map.take("a"), map.size], [
    undefined,
    2,
    undefined,
    1,
  ]);
});

Deno.test("TurnoverMap.set() of an existing key replaces its value and keeps its position", () => {
  const map = new TurnoverMap<string, number>();
  for (const [key, value] of [["a", 1], ["b", 2], ["a", 3]] as const) map.set(key, value);

  assert.deepEqual([map.values(), map.size], [[3, 2], 2]);
});

Deno.test("TurnoverMap.clear() removes all entries, and the map can be used again", () => {
  const map = new TurnoverMap<number, string>();
  for (let key = 0; key < 100; key++) map.set(key, `${key}`);

  map.clear();
  map.set(7, "new");

  assert.deepEqual([map.size, map.get(8), map.values()], [1, undefined, ["new"]]);
});

Deno.test("TurnoverMap.take() removes any entry of a bucket", () => {
  for (const gone of [0, 16, 32]) {
    const map = new TurnoverMap<number, number>(); // 16 buckets: these keys share one.
    for (const key of [0, 16, 32]) map.set(key, key);

    assert.equal(map.take(gone), gone);
    assert.deepEqual(map.values(), [0, 16, 32].filter((key) => key !== gone));
  }
});

Deno.test("TurnoverMap equals Map over many random steps, also in the order of values", () => {
  const texts = (n: number) => `${n.toString(16).padStart(8, "0")}-7000-4000-8000-000000000000`;
  for (const keyOf of [(n: number) => n, texts, (n: number) => n * 4_294_967_296 - 5]) {
    const mine = new TurnoverMap<string | number, number>();
    const theirs = new Map<string | number, number>();
    let seed = 1;
    for (let step = 0; step < 20_000; step++) {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      const key = keyOf((seed >>> 8) % 700);
      if (seed % 3 > 0) {
        mine.set(key, step);
        theirs.set(key, step);
      } else {
        assert.equal(mine.take(key), theirs.get(key));
        theirs.delete(key);
      }
      assert.equal(mine.size, theirs.size);
    }

    assert.deepEqual(mine.values(), [...theirs.values()]);
    for (const [key, value] of theirs) assert.equal(mine.get(key), value);
  }
});

Deno.test("TurnoverMap distributes strings that were chosen to share a bucket of another map", () => {
  const [theirs, mine] = [1, 2];
  const texts = Array.from({ length: 100_000 }, (_, n) => n.toString(16).padStart(32, "0"));
  const chosen = texts.filter((text) => (hashOf(text, theirs!) & 1_023) === 0);

  const buckets = new Set(chosen.map((text) => hashOf(text, mine!) & 1_023));

  assert.ok(chosen.length > 50, `${chosen.length} texts`);
  assert.ok(buckets.size > chosen.length * 0.8, `${chosen.length} texts in ${buckets.size}`);
});

const VALUE_BYTES = 1_000;
const value = () => new Array<number>(VALUE_BYTES / 8).fill(0.5);

/** Number of values that `work` leaves in the old generation, which only a full collection frees. */
function leftBy(work: () => void): number {
  const oldBytes = () =>
    getHeapSpaceStatistics().reduce(
      (sum, { space_name, space_used_size }) =>
        space_name === "new_space" ? sum : sum + space_used_size,
      0,
    );
  const before = oldBytes();
  work();
  for (let i = 0; i < 50_000; i++) value(); // Causes several collections of the young generation.
  return (oldBytes() - before) / VALUE_BYTES;
}

/** Moves all values to the old generation. */
function collectAll(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

Deno.test("TurnoverMap keeps no removed entry alive, without a full collection", () => {
  const map = new TurnoverMap<number, number[]>();
  for (let key = 0; key < 4; key++) map.set(key, value());
  collectAll();

  const left = leftBy(() => {
    for (let key = 4; key < 10_000; key++) {
      map.set(key, value());
      map.take(key - 4);
    }
  });

  assert.equal(map.size, 4);
  assert.ok(left < 1_000, `${left} values are left`);
});

Deno.test("TurnoverMap keeps nothing alive that an old entry or table referenced", () => {
  const map = new TurnoverMap<number, number[]>();
  for (let key = 0; key < 256; key++) map.set(key, []);
  for (let key = 128; key < 256; key++) map.take(key);
  leftBy(() => {}); // Compiles the code first.
  collectAll();

  const left = leftBy(() => {
    for (let key = 512; key < 640; key++) map.set(key, value()); // Before the others in the buckets.
    map.set(128, []); // The table grows, and the old entries come before the others.
    for (let key = 0; key < 128; key++) map.take(key);
    for (let key = 512; key < 640; key++) map.take(key);
  });

  assert.equal(map.size, 1);
  assert.ok(left < 64, `${left} values are left`);
});
