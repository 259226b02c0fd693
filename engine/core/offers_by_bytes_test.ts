/**
 * Functions by the bytes of their ids.
 *
 * @module
 */
import assert from "node:assert/strict";
import { OffersByBytes } from "./offers_by_bytes.ts";
import { bytesOf, hashOf, viewOf } from "./text_bytes.ts";

interface Named {
  readonly id: string;
}

/** Finds an id between bytes that would make another one of it. */
function find(table: OffersByBytes<Named>, id: string): Named | undefined {
  const view = viewOf(bytesOf(`::${id}::`));
  return table.find(view, 2, view.byteLength - 2);
}

/** Two ids of one length whose hashes are the same. */
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

Deno.test("OffersByBytes finds what was added by its exact bytes", () => {
  const table = new OffersByBytes<Named>();
  const ids = ["f", "math::add", "sveg::größe", "東京::😀", 'math::"add"', "x".repeat(500)];
  const offers = ids.map((id) => ({ id }));
  for (const offer of offers) table.add(offer);

  for (const offer of offers) {
    assert.equal(find(table, offer.id), offer);
    assert.equal(find(table, offer.id + "x"), undefined);
    assert.equal(find(table, offer.id.slice(0, -1)), undefined);
  }
  assert.equal(find(table, ""), undefined);
});

Deno.test("OffersByBytes finds nothing any more of what was removed", () => {
  const table = new OffersByBytes<Named>();
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

Deno.test("two functions whose ids have one hash are kept apart, whichever goes first", () => {
  const [first, second] = collision();
  assert.equal(
    hashOf(viewOf(bytesOf(first)), 0, first.length),
    hashOf(viewOf(bytesOf(second)), 0, second.length),
  );
  for (const order of [[first, second], [second, first]]) {
    const table = new OffersByBytes<Named>();
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

Deno.test("ten thousand functions are found, and none of them when they are gone", () => {
  const table = new OffersByBytes<Named>();
  const offers = Array.from({ length: 10_000 }, (_, i) => ({ id: `group::f${i}` }));
  for (const offer of offers) table.add(offer);
  for (const offer of offers) assert.equal(find(table, offer.id), offer);
  for (const offer of offers) table.remove(offer);

  assert.ok(offers.every(({ id }) => find(table, id) === undefined));
});
