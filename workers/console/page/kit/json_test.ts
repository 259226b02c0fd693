/**
 * @module
 */
import assert from "node:assert/strict";
import { attributesOf, msOf, numberOf, objectOf, parseJson, textOf, visibleJson } from "./json.ts";

for (const text of ["1", ' {"a": [null, "x"]} ', '"text"', "null"]) {
  Deno.test(`parseJson() accepts ${text}`, () => {
    assert.deepEqual(parseJson(text), { ok: true, value: JSON.parse(text) });
  });
}

Deno.test("parseJson() of a blank text is `empty`, or an error", () => {
  assert.deepEqual(parseJson("  ", null), { ok: true, value: null });
  assert.deepEqual(parseJson("  "), { ok: false, message: "Type a JSON value" });
});

for (
  const [text, message] of [
    ['{\n  "a": tru\n}', "Expected a value, line 2, column 8"],
    ["[1,]", "Expected a value, line 1, column 4"],
    ["[1 2]", "Expected a comma or ], line 1, column 4"],
    ['{"a":1', "Expected a comma or }, at the end"],
    ['{"a"}', "Expected a colon, line 1, column 5"],
    ["{a: 1}", "Expected a name in double quotes, line 1, column 2"],
    ["{'a': 1}", "Expected a name in double quotes, line 1, column 2"],
    ["['a']", "Texts stand in double quotes, line 1, column 2"],
    ["undefined", "Expected a value, line 1, column 1"],
    ["01", "Expected a value, line 1, column 1"],
    ["1 1", "Expected nothing more, line 1, column 3"],
    ['"a\nb"', "The text has no end on its line, line 1, column 3"],
    ['"a', "The text has no end on its line, at the end"],
    ['"\\x"', "Unknown escape, line 1, column 2"],
    ["[", "Expected a value, at the end"],
  ] as const
) {
  Deno.test(`parseJson() of ${JSON.stringify(text)}: ${message}`, () => {
    assert.deepEqual(parseJson(text), { ok: false, message });
  });
}

Deno.test("parseJson() has a message exactly for texts that JSON.parse() refuses", () => {
  const parts = ["{", "}", "[", "]", ",", ":", '"', "a", "1", "-", ".", "e", "\\", "\n", "null"];
  let seed = 7;
  const random = (count: number) => (seed = (seed * 48_271) % 2_147_483_647) % count;

  for (let i = 0; i < 5_000; i++) {
    const text = Array.from({ length: random(8) + 1 }, () => parts[random(parts.length)]).join("");
    const parsed = parseJson(text);
    if (!parsed.ok && text.trim() !== "") {
      assert.throws(() => JSON.parse(text));
      assert.doesNotMatch(parsed.message, /SyntaxError/, text);
    }
  }
});

Deno.test("parseJson() survives a text nested deeper than the stack", () => {
  assert.equal(parseJson("[".repeat(200_000)).ok, false);
});

Deno.test("visibleJson() escapes invisible characters and direction marks", () => {
  const value = { "a\u200bb": "x\u202etxt.exe", plain: "Zoë 日本 🫖" };

  const text = visibleJson(value);

  assert.equal(text, '{"a\\u200bb":"x\\u202etxt.exe","plain":"Zoë 日本 🫖"}');
  assert.deepEqual(JSON.parse(text), value);
});

Deno.test("visibleJson() indents like JSON.stringify()", () => {
  const value = { a: [1, null, true], b: "\u0000\u009b" };

  assert.equal(visibleJson(value, 2), JSON.stringify(value, null, 2).replace("\u009b", "\\u009b"));
});

Deno.test("textOf() keeps strings, writes other values as JSON, and absent ones as empty", () => {
  assert.deepEqual([textOf("a"), textOf(5), textOf({ a: 1 })], ["a", "5", '{"a":1}']);
  assert.deepEqual([textOf(null), textOf(undefined)], ["", ""]);
});

Deno.test("numberOf() reads digits, and falls back for anything else", () => {
  assert.deepEqual([numberOf("12"), numberOf(1.5)], [12, 1.5]);
  for (const value of [undefined, null, "", "soon", {}, [1, 2]]) {
    assert.equal(numberOf(value, 7), 7);
  }
});

Deno.test("msOf() converts nanoseconds to milliseconds", () => {
  assert.equal(msOf("1700000000000500000"), 1700000000000.5);
  assert.equal(msOf(null), 0);
});

Deno.test("attributesOf() takes pairs and objects, and skips other items", () => {
  assert.deepEqual(attributesOf([["a", 1], ["b"], "c", null]), { a: 1, b: null });
  assert.deepEqual(attributesOf({ a: 1 }), { a: 1 });
  assert.deepEqual(attributesOf("a"), {});
});

Deno.test("objectOf() of anything but an object is empty", () => {
  for (const value of [null, undefined, 5, "a", [1]]) assert.deepEqual(objectOf(value), {});
});
