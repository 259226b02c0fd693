/**
 * Orders of tables.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ordered, readOrder, writeOrder } from "./table.tsx";

const ROWS = [["a", 3], ["b", null], ["c", 10], ["d", 3]] as const;
const names = (descending: boolean) =>
  ordered(ROWS, ([, value]) => value, descending).map(([name]) => name).join("");

Deno.test("rows are sorted by number, equal ones as they came, empty ones last either way", () => {
  assert.equal(names(false), "adcb");
  assert.equal(names(true), "cadb");
});

Deno.test("texts are sorted the same way on every machine", () => {
  const sorted = ordered(["b", "Z", "a", "ä"], (text) => text, false);

  assert.deepEqual(sorted, ["Z", "a", "b", "ä"]);
});

Deno.test("the rows that were handed in stay as they are", () => {
  const rows = [2, 1];

  ordered(rows, (row) => row, false);

  assert.deepEqual(rows, [2, 1]);
});

Deno.test("an order is written and read again", () => {
  const fallback = { column: "name", descending: false };

  assert.deepEqual(readOrder("", fallback), fallback);
  for (const text of ["memory", "-memory"]) {
    assert.equal(writeOrder(readOrder(text, fallback)), text);
  }
});
