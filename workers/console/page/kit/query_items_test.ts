/**
 * Keys of items, and lists after patches.
 *
 * @module
 */
import assert from "node:assert/strict";
import { itemKey, patched } from "./query_items.ts";

for (
  const [item, members, key] of [
    [{ id: "a" }, ["id"], '["a"]'],
    [{ n: "x", id: 'a"b' }, ["n", "id"], '["x","a\\"b"]'],
    [{ n: 1 }, ["id"], "[null]"],
    [null, ["id"], undefined],
    ["text", ["id"], undefined],
    [[1], ["id"], undefined],
  ] as const
) {
  Deno.test(`the key of ${JSON.stringify(item)} by ${members} is ${key}`, () => {
    assert.equal(itemKey(item as never, members), key);
  });
}

Deno.test("patched() keeps the order, changes in place and appends what is new", () => {
  const items = [{ id: 1, v: "a" }, { id: 2, v: "b" }, { id: 3, v: "c" }];

  const after = patched(items, ["id"], [{ id: 4, v: "d" }, { id: 2, v: "B" }], ["[1]"]);

  assert.deepEqual(after, [{ id: 2, v: "B" }, { id: 3, v: "c" }, { id: 4, v: "d" }]);
  assert.equal(items.length, 3);
});

Deno.test("patched() takes one item once, also when it is set twice or gone and set", () => {
  const after = patched([{ id: 1 }], ["id"], [{ id: 2, v: 1 }, { id: 2, v: 2 }, { id: 1 }], [
    "[1]",
    "[9]",
  ]);

  assert.deepEqual(after, [{ id: 1 }, { id: 2, v: 2 }]);
});

Deno.test("patched() of ten thousand items leaves those alone that did not change", () => {
  const items = Array.from({ length: 10_000 }, (_, id) => ({ id }));

  const after = patched(items, ["id"], [{ id: 5, v: 1 }], []);

  assert.equal(after[9_999], items[9_999]);
  assert.deepEqual(after[5], { id: 5, v: 1 });
});
