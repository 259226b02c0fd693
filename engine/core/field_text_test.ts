/**
 * Parts of a message as they were written.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../tests/fakes/random.ts";
import { fieldText } from "./field_text.ts";

Deno.test("fieldText() cuts a value out as it was written", () => {
  const frame = ' { "a" : [ 1, {"b":"}\\"]"} ] , "data" : 12345678901234567890 ,"z":"\\\\" } ';

  assert.equal(fieldText(frame, "a"), '[ 1, {"b":"}\\"]"} ]');
  assert.equal(fieldText(frame, "data"), "12345678901234567890");
  assert.equal(fieldText(frame, "z"), '"\\\\"');
  assert.equal(fieldText(frame, "b"), undefined);
  assert.equal(fieldText("{}", "a"), undefined);
});

Deno.test("fieldText() takes the last of a name, however it is written, as JSON.parse does", () => {
  const frame = '{"data":1,"d\\u0061ta":{"x":2},"other":3}';

  assert.equal(fieldText(frame, "data"), '{"x":2}');
  assert.deepEqual(JSON.parse(frame).data, { x: 2 });
});

Deno.test("fieldText() finds in any object what JSON.parse finds", () => {
  const random = new Random(23);
  const texts = ['"}"', '"\\\\"', '"\\"{["', '"a:b,c"', "1.50", "[ ]", "{}", "null", '"é😀"', "-0"];
  const value = (depth: number): string => {
    if (depth === 0 || random.once(2)) return random.pick(texts);
    const parts = Array.from({ length: random.below(3) }, () => value(depth - 1));
    return random.once(2)
      ? `[${parts.join(" , ")}]`
      : `{${parts.map((part, i) => `"k${i}" :${part}`).join(",\n")}}`;
  };
  const names = ["a", "data", 'q"', "b\\", "é"];
  for (let round = 0; round < 3_000; round++) {
    const fields = Array.from({ length: random.below(5) }, () => [random.pick(names), value(3)]);
    const written = fields.map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(" , ");
    const frame = random.pick([`{${written}}`, ` { ${written} } `]);

    for (const name of names) {
      const last = fields.findLast(([key]) => key === name)?.[1];
      assert.equal(fieldText(frame, name), last, `${frame} ${name}`);
    }
  }
});
