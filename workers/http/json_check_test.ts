/**
 * `JsonCheck` accepts what `JSON.parse` accepts, in whatever parts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { JsonCheck } from "./json_check.ts";

const encoder = new TextEncoder();

/** Why a text is refused when it is read in parts of so many bytes; `undefined`: it is JSON. */
function problemOf(text: string, bytesMax: number): string | undefined {
  const check = new JsonCheck(encoder.encode(text));
  try {
    for (let parts = 0; !check.advance(bytesMax); parts++) assert.ok(parts <= text.length * 4);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof SyntaxError, String(error));
    return error.message;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Compares with the platform, whole and in parts of 1, 2 and 3 bytes. */
function compare(text: string): void {
  for (const bytesMax of [1, 2, 3, 1_000_000]) {
    assert.equal(problemOf(text, bytesMax) === undefined, isJson(text), JSON.stringify(text));
  }
}

const VALID = [
  '{"a":[1,-2.5e+3,0.1E-2,true,false,null,"x\\n\\u00e9\\\\\\"",{}],"b":{"c":[[]]},"a":1}',
  ' \t\r\n[ { "é" : "日本語\u{1f600}" } , -0 , 0e0 ] \n',
  '"text"',
  "12",
  "null",
  '{"__proto__":{"x":1},"":0}',
];

Deno.test("JsonCheck accepts values of every kind, in whatever parts", () => {
  for (const text of VALID) {
    assert.ok(isJson(text));
    compare(text);
  }
});

Deno.test("JsonCheck refuses what is nearly JSON", () => {
  const texts = [
    ...'{ [ ] } , : 1, ,1 [1,] [,1] [1 2] {} {} {a:1} {\'a\':1} {"a"} {"a":} {"a":1,}'.split(" "),
    "",
    " ",
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{"a":1]',
    "[1}",
    '"',
    '"\\',
    '"\\u12',
    '"\\u12g4"',
    '"\\x"',
    '"a\nb"',
    '"\t"',
    "tru",
    "truee",
    "nul",
    "NaN",
    "Infinity",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "--1",
    "0x10",
    "1_000",
    "\u00a01",
    "[1]\u0000",
    "// a\n1",
  ];
  for (const text of texts) compare(text);
  for (const text of ["{}{}", "1 1", "[] x"]) compare(text);
});

Deno.test("JsonCheck agrees with JSON.parse on mutations of valid texts", () => {
  let seed = 1;
  const random = (below: number): number => {
    seed = seed * 48_271 % 2_147_483_647;
    return seed % below;
  };
  const chars = '{}[]:,"\\/ue0123456789.-+trnfals \n\u0001é'.split("");
  let valid = 0;
  for (let round = 0; round < 4_000; round++) {
    const text = VALID[random(VALID.length)]!.split("");
    for (let edits = 1 + random(2); edits > 0; edits--) {
      const kind = random(3);
      const at = random(text.length);
      if (kind === 0) text.splice(at, 1);
      else text.splice(at, kind === 1 ? 0 : 1, chars[random(chars.length)]!);
    }
    const changed = text.join("");
    if (isJson(changed)) valid++;
    compare(changed);
  }
  assert.ok(valid > 200, `${valid} of the mutations were valid`);
});

Deno.test("JsonCheck refuses the 128th level and says so", () => {
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  assert.equal(problemOf(nested(127), 10), undefined);
  assert.match(problemOf(nested(128), 10)!, /nested more deeply than 127 levels/);
  assert.match(problemOf("[".repeat(1_000_000), 1_000)!, /nested more deeply/);
  assert.equal(problemOf(`[${"[],{},".repeat(20_000)}0]`, 1_000), undefined);
});

Deno.test("JsonCheck skips one byte order mark and names the position of a fault", () => {
  assert.equal(problemOf('\ufeff{"a":1}', 1), undefined);
  assert.match(problemOf("\ufeff\ufeff1", 1)!, /byte 239 at position 3/);
  assert.equal(problemOf("[1,x]", 1), "unexpected character x at position 3");
  assert.equal(problemOf('{"a":', 1), "it ends too early");
});

Deno.test("JsonCheck reads one part at a time", () => {
  const check = new JsonCheck(encoder.encode(JSON.stringify(["x".repeat(1_000_000)])));
  let parts = 1;
  while (!check.advance(10_000)) parts++;
  assert.equal(parts, 101);
});
