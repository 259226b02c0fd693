/**
 * The value at the beginning of what was cut from a frame.
 *
 * @module
 */
import assert from "node:assert/strict";
import { firstValue } from "./json_value.ts";

for (
  const [text, value] of [
    ["1", "1"],
    [' {"a":[1, 2]} ', '{"a":[1, 2]}'],
    ['12345678901234567890,"colour":"red"', "12345678901234567890"],
    ['{"a":",}"},"action":{"type":"enqueue"}', '{"a":",}"}'],
    ['"a\\",b" ,"c":1', '"a\\",b"'],
    ["[1,2", null],
    ['"open', null],
    ["}{,1", null],
    [",", null],
    ["", null],
    ["nonsense", null],
  ] as const
) {
  Deno.test(`firstValue() finds ${value} in ${JSON.stringify(text)}`, () => {
    assert.equal(firstValue(text), value);
  });
}
