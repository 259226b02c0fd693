import assert from "node:assert/strict";
import { memberText } from "./member_text.ts";

Deno.test("memberText() returns a value as it stands there", () => {
  const json = ` { "n" : 12345678901234567890 , "f":1.0,"s":"a\\"}b\\\\","o":{"a":[{"n":"]"}]},
    "e":{}, "l":[ 1 , 2 ],"t":true }`;

  const all = ["n", "f", "s", "o", "e", "l", "t", "a", ""].map((name) => memberText(json, name));

  assert.deepEqual(all, [
    "12345678901234567890",
    "1.0",
    '"a\\"}b\\\\"',
    '{"a":[{"n":"]"}]}',
    "{}",
    "[ 1 , 2 ]",
    "true",
    undefined,
    undefined,
  ]);
});

Deno.test("memberText() takes the last of equal keys, also if one is written with escapes", () => {
  assert.equal(memberText('{"a":1,"a":2}', "a"), "2");
  assert.equal(memberText('{"a":1,"\\u0061":3}', "a"), "3");
  assert.equal(memberText('{"a\\"b":4}', 'a"b'), "4");
  assert.equal(memberText('{"__proto__":5}', "__proto__"), "5");
});

Deno.test("memberText() has nothing for what is no object", () => {
  for (const json of ["", " ", "null", "[1]", '"{\\"a\\":1}"', "{}", " {} ", "7"]) {
    assert.equal(memberText(json, "a"), undefined);
  }
});

Deno.test("memberText() agrees with JSON.parse on any JSON", () => {
  const parts = ["{", "}", "[", "]", '"', ":", ",", "\\", "a", '"a"', " ", "\n", "1", "null"];
  let seed = 1;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  let valid = 0;
  for (let round = 0; round < 20_000; round++) {
    const length = random(12);
    const inside = Array.from({ length }, () => parts[random(parts.length)]).join("");
    const json = `{"a":${inside}}`;
    let parsed: { a: unknown };
    try {
      parsed = JSON.parse(json);
    } catch {
      continue;
    }
    valid++;
    assert.deepEqual(JSON.parse(memberText(json, "a")!), parsed.a, json);
  }
  assert.ok(valid > 100, String(valid));
});
