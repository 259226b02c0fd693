/**
 * Hash tables keyed by bytes of a frame.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
import { bytesOf, hashOf, viewOf } from "./bytes.ts";
import { BytesIndex, SlotIndex } from "./bytes_index.ts";

/** What an index finds under a hash, in ascending order. */
function found(index: SlotIndex, hash: number): number[] {
  const slots: number[] = [];
  for (let at = index.first(hash); at >= 0; at = index.next(at, hash)) slots.push(index.at(at));
  return slots.sort((a, b) => a - b);
}

Deno.test("an empty SlotIndex finds nothing", () => {
  const index = new SlotIndex();

  assert.deepEqual([index.size, index.all(), found(index, 0), found(index, 7)], [0, [], [], []]);
  new SlotIndex().add(0, 0);
  assert.deepEqual(found(index, 0), [], "what another one holds");
});

Deno.test("a SlotIndex keeps numbers with equal hashes apart, in any order of removal", () => {
  for (const order of [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]]) {
    const index = new SlotIndex();
    for (let slot = 0; slot < 4; slot++) index.add(5, slot);
    const left = new Set([0, 1, 2, 3]);

    for (const slot of order) {
      index.remove(5, slot);
      left.delete(slot);
      assert.deepEqual(found(index, 5), [...left]);
      assert.equal(index.size, left.size);
    }
  }
});

Deno.test("SlotIndex.remove() ignores entries that it does not have", () => {
  const index = new SlotIndex();
  index.remove(5, 0);
  for (let slot = 0; slot < 4; slot++) index.add(5, slot);

  for (const [hash, slot] of [[5, 4], [6, 0], [5 + 8, 0], [0, 0]] as const) {
    index.remove(hash, slot);
    assert.deepEqual([index.size, found(index, 5)], [4, [0, 1, 2, 3]], `${slot} of ${hash}`);
  }
});

Deno.test("a SlotIndex agrees with a Map of sets through thousands of random changes", () => {
  const random = new Random(3);
  for (const hashes of [3, 40, 2 ** 30]) {
    const index = new SlotIndex();
    const model = new Map<number, Set<number>>();
    const there: [hash: number, slot: number][] = [];
    for (let step = 0; step < 20_000; step++) {
      // It alternately grows to hundreds and shrinks to nothing.
      if (random.below(10) < (step % 4_000 < 2_000 ? 6 : 3) || there.length === 0) {
        const [hash, slot] = [random.below(hashes), step];
        index.add(hash, slot);
        model.set(hash, (model.get(hash) ?? new Set()).add(slot));
        there.push([hash, slot]);
      } else {
        const [[hash, slot]] = there.splice(random.below(there.length), 1) as [[number, number]];
        index.remove(hash, slot);
        model.get(hash)!.delete(slot);
      }
      const hash = there.length > 0 ? random.pick(there)[0] : 0;
      if (step % 7 === 0) assert.deepEqual(found(index, hash), [...model.get(hash) ?? []]);
      if (step % 997 === 0) assert.equal(new Set(index.all()).size, there.length);
      assert.equal(index.size, there.length);
    }
    for (const [hash, slots] of model) assert.deepEqual(found(index, hash), [...slots]);
  }
});

Deno.test("a SlotIndex is intact after growing and shrinking", () => {
  const index = new SlotIndex();
  for (let slot = 0; slot < 50_000; slot++) index.add(slot * 7, slot);
  for (let slot = 49_999; slot >= 3; slot--) {
    index.remove(slot * 7, slot);
    assert.equal(index.first(slot * 7), -1, "at once: a table that is full ends no search");
  }

  assert.deepEqual(index.all().sort(), [0, 1, 2]);
  for (let slot = 0; slot < 3; slot++) assert.deepEqual(found(index, slot * 7), [slot]);
  for (let slot = 0; slot < 3; slot++) index.remove(slot * 7, slot);
  assert.deepEqual([index.size, index.all(), found(index, 0)], [0, [], []]);
});

interface Named {
  readonly id: string;
}

/** Finds an id between bytes that would make it another id. */
function find(table: BytesIndex<Named>, id: string): Named | undefined {
  const view = viewOf(bytesOf(`::${id}::`));
  return table.find(view, 2, view.byteLength - 2);
}

/** Two ids of equal length and hash. */
function collision(): [string, string] {
  const found = new Map<number, string>();
  for (let i = 100_000;; i++) {
    const id = `math::f${i}`;
    const hash = hashOf(viewOf(bytesOf(id)), 0, id.length);
    const other = found.get(hash);
    if (other !== undefined) return [other, id];
    found.set(hash, id);
  }
}

Deno.test("BytesIndex finds items by the exact bytes of their ids", () => {
  const table = new BytesIndex<Named>();
  const ids = ["f", "math::add", "sveg::größe", "東京::😀", 'math::"add"', "x".repeat(500)];
  const items = ids.map((id) => ({ id }));
  for (const item of items) table.add(item);

  for (const item of items) {
    assert.equal(find(table, item.id), item);
    assert.equal(find(table, item.id + "x"), undefined);
    assert.equal(find(table, item.id.slice(0, -1)), undefined);
  }
  assert.equal(find(table, ""), undefined);
});

Deno.test("BytesIndex does not find removed items", () => {
  const table = new BytesIndex<Named>();
  const [one, other] = [{ id: "a" }, { id: "b" }];
  table.add(one);
  table.add(other);
  table.remove(one);
  table.remove(one);
  table.remove({ id: "never added" });
  table.remove({ id: "b" });

  assert.deepEqual([find(table, "a"), find(table, "b")], [undefined, other]);
  table.add(one);
  assert.equal(find(table, "a"), one);
});

Deno.test("functions whose ids share a hash are kept apart, in any order of removal", () => {
  const [first, second] = collision();
  assert.equal(
    hashOf(viewOf(bytesOf(first)), 0, first.length),
    hashOf(viewOf(bytesOf(second)), 0, second.length),
  );
  for (const order of [[first, second], [second, first]]) {
    const table = new BytesIndex<Named>();
    const [one, other] = [{ id: first }, { id: second }];
    table.add(one);
    assert.equal(find(table, second), undefined, "the hash alone does not count");
    table.add(other);
    assert.deepEqual([find(table, first), find(table, second)], [one, other]);

    table.remove(order[0] === first ? one : other);
    assert.equal(find(table, order[0]!), undefined);
    assert.equal(find(table, order[1]!)?.id, order[1]);
    table.remove(order[0] === first ? other : one);
    assert.equal(find(table, order[1]!), undefined);
  }
});

Deno.test("an id is not found by another one of its hash that it begins with", () => {
  const [short, long] = ["bhvs", "bhvsxsrp"];
  assert.equal(hashOf(viewOf(bytesOf(short)), 0, 4), hashOf(viewOf(bytesOf(long)), 0, 8));
  const table = new BytesIndex<Named>();
  table.add({ id: long });

  assert.equal(find(table, short), undefined);
});

Deno.test("ten thousand functions are found, and none after their removal", () => {
  const table = new BytesIndex<Named>();
  const items = Array.from({ length: 10_000 }, (_, i) => ({ id: `gr\u00fc\u00dfe::f${i}` }));
  for (const item of items) table.add(item);
  for (const item of items) assert.equal(find(table, item.id), item);
  for (const item of items) table.remove(item);

  assert.ok(items.every(({ id }) => find(table, id) === undefined));
});
