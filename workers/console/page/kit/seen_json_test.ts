import assert from "node:assert/strict";
import { seenJson } from "./seen_json.ts";

Deno.test("seenJson() writes what nobody sees, and what turns words around, as escapes", () => {
  const value = { "a\u200bb": "x\u202etxt.exe", plain: "Zoë 日本 🫖" };

  const text = seenJson(value);

  assert.equal(text, '{"a\\u200bb":"x\\u202etxt.exe","plain":"Zoë 日本 🫖"}');
  assert.deepEqual(JSON.parse(text), value);
});

Deno.test("seenJson() indents as JSON does", () => {
  const value = { a: [1, null, true], b: "\u0000\u009b" };

  assert.equal(seenJson(value, 2), JSON.stringify(value, null, 2).replace("\u009b", "\\u009b"));
});
