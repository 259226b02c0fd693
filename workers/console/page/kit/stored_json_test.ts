import assert from "node:assert/strict";
import { attributesOf, msOf, numberOf, objectOf, textOf } from "./stored_json.ts";

Deno.test("textOf() leaves text, writes other values as JSON, and nothing as nothing", () => {
  assert.deepEqual([textOf("a"), textOf(5), textOf({ a: 1 })], ["a", "5", '{"a":1}']);
  assert.deepEqual([textOf(null), textOf(undefined)], ["", ""]);
});

Deno.test("numberOf() reads digits and falls back for what is no number", () => {
  assert.deepEqual([numberOf("12"), numberOf(1.5)], [12, 1.5]);
  for (const value of [undefined, null, "", "soon", {}, [1, 2]]) {
    assert.equal(numberOf(value, 7), 7);
  }
});

Deno.test("msOf() makes milliseconds of nanoseconds", () => {
  assert.equal(msOf("1700000000000500000"), 1700000000000.5);
  assert.equal(msOf(null), 0);
});

Deno.test("attributesOf() takes pairs and objects, and skips what is neither", () => {
  assert.deepEqual(attributesOf([["a", 1], ["b"], "c", null]), { a: 1, b: null });
  assert.deepEqual(attributesOf({ a: 1 }), { a: 1 });
  assert.deepEqual(attributesOf("a"), {});
});

Deno.test("objectOf() of anything but an object is empty", () => {
  for (const value of [null, undefined, 5, "a", [1]]) assert.deepEqual(objectOf(value), {});
});
