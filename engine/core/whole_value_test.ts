import assert from "node:assert/strict";
import { bytesOf } from "./text_bytes.ts";
import { isWholeValue } from "./whole_value.ts";

function isWhole(text: string): boolean {
  const memory = bytesOf(`,"data":${text}}`);
  return isWholeValue(memory, 8, memory.length - 1);
}

Deno.test("isWholeValue() says yes to any value by itself, with white space around it", () => {
  const values = [1, -2.5e9, true, null, "", 'a"b\\', "}],{[", [], {}, [[{ a: [1, "}"] }]], "ö😀"];
  for (const value of [...values, { type: "x", "a,b": ["\\", '"', "\u0000"] }]) {
    for (const text of [JSON.stringify(value), ` ${JSON.stringify(value, null, 2)}\n`]) {
      assert.equal(isWhole(text), true, text);
    }
  }
});

Deno.test("isWholeValue() says no when another field follows, whatever the value says", () => {
  for (
    const value of ["1", '"a"', '"\\\\"', '"\\""', "{}", "[]", '{"type":1}', '["}",{}]', "null"]
  ) {
    assert.equal(isWhole(`${value},"type":"ping"`), false, value);
    assert.equal(isWhole(`${value} , "type" : {"a":[]}`), false, value);
    assert.equal(isWhole(`${value}}{"type":1`), false, value);
  }
});

Deno.test("isWholeValue() says no to what is open or closed too often", () => {
  for (const text of ["{", "[[]", "}", "[]]", '{"a":[}', "1]"]) {
    assert.equal(isWhole(text), false, text);
  }
});

Deno.test("isWholeValue() ends in a string that nobody closes", () => {
  assert.equal(isWhole('"a'), true); // No JSON: its receiver finds out.
  assert.equal(isWhole('{"a'), false);
  assert.equal(isWhole('"a\\'), true);
});
