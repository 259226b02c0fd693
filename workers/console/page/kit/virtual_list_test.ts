/**
 * @module
 */
import assert from "node:assert/strict";
import { reachRow, rowsInView } from "./virtual_list.tsx";

for (
  const [count, top, range] of [
    [100_000, 0, { first: 0, last: 7 }],
    [100_000, 1_000, { first: 48, last: 57 }],
    [100_000, 1_005, { first: 48, last: 58 }],
    [100_000, 1_999_900, { first: 99_993, last: 100_000 }],
    [3, 0, { first: 0, last: 3 }],
    [0, 0, { first: 0, last: 0 }],
    [10, 5_000, { first: 3, last: 10 }],
    [100, -40, { first: 0, last: 7 }],
  ] as const
) {
  Deno.test(`rowsInView() of ${count} rows at ${top} is ${range.first} to ${range.last}`, () => {
    assert.deepEqual(rowsInView(count, 20, { top, height: 100 }, 2), range);
  });
}

Deno.test("reachRow() scrolls no further than needed", () => {
  assert.equal(reachRow(2, 20, 0, 100), 0);
  assert.equal(reachRow(5, 20, 0, 100), 20);
  assert.equal(reachRow(0, 20, 60, 100), 0);
  assert.equal(reachRow(3, 20, 60, 100), 60);
});
