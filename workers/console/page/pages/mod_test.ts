/**
 * @module
 */
import assert from "node:assert/strict";
import { PAGES } from "./mod.ts";

Deno.test("pages have distinct paths, titles and keys", () => {
  for (const member of ["path", "title", "key"] as const) {
    const values = PAGES.map((page) => page[member]);

    assert.equal(new Set(values).size, values.length, member);
  }
});

Deno.test("four pages have a place in the bar of phones", () => {
  assert.equal(PAGES.filter(({ onPhones }) => onPhones).length, 4);
});
