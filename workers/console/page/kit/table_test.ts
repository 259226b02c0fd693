/**
 * @module
 */
import assert from "node:assert/strict";
import { readOrder, sortRows, writeOrder } from "./table.tsx";

const ROWS = [["a", 3], ["b", null], ["c", 10], ["d", 3]] as const;
const names = (descending: boolean) =>
  sortRows(ROWS, ([, value]) => value, descending).map(([name]) => name).join("");

Deno.test("sortRows() is stable, and puts null last in both directions", () => {
  assert.equal(names(false), "adcb");
  assert.equal(names(true), "cadb");
});

Deno.test("sortRows() compares texts independently of the locale", () => {
  const sorted = sortRows(["b", "Z", "a", "ä"], (text) => text, false);

  assert.deepEqual(sorted, ["Z", "a", "b", "ä"]);
});

Deno.test("sortRows() does not change its argument", () => {
  const rows = [2, 1];

  sortRows(rows, (row) => row, false);

  assert.deepEqual(rows, [2, 1]);
});

Deno.test("readOrder() reverses writeOrder()", () => {
  const fallback = { column: "name", descending: false };

  assert.deepEqual(readOrder("", fallback), fallback);
  for (const text of ["memory", "-memory"]) {
    assert.equal(writeOrder(readOrder(text, fallback)), text);
  }
});
