/**
 * Scanning JSON text without parsing it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
import { bytesOf } from "./bytes.ts";
import { fieldText, isWholeValue, ReservedKeySearch } from "./json_scan.ts";

const NAMES = ["action", "timeout_ms", "caller", "type"];
const reserved = new ReservedKeySearch(NAMES);
const PATTERN = new RegExp(NAMES.map((name) => `"${name}"`).join("|"));

function occursIn(text: string, before = "", behind = ""): boolean {
  const memory = bytesOf(before + text + behind);
  const start = bytesOf(before).length;
  return reserved.occursIn(memory, start, start + bytesOf(text).length);
}

Deno.test("ReservedKeySearch finds each key at every offset of short and long texts", () => {
  for (const length of [0, 1, 7, 30, 511, 512, 513, 2_000]) {
    for (const name of NAMES) {
      for (let place = 0; place <= length; place += Math.max(1, Math.floor(length / 97))) {
        const text = `${"x".repeat(place)}"${name}"${'"y'.repeat((length - place) / 2)}`;
        assert.equal(occursIn(text), true, `${name} at ${place} of ${length}`);
      }
    }
  }
});

Deno.test("ReservedKeySearch finds keys at every offset, for every length of the rest behind the last word", () => {
  for (let length = 512; length < 516; length++) {
    for (let place = 0; place <= length; place++) {
      for (const name of NAMES) {
        const text = `${"a".repeat(place)}"${name}"${"a".repeat(length - place)}`;
        assert.equal(occursIn(text), true, `${name} at ${place} of ${length}`);
      }
    }
  }
});

Deno.test("ReservedKeySearch finds keys at every alignment, and only within the range", () => {
  for (const filled of [0, 600]) {
    for (const name of NAMES) {
      const text = `${"x".repeat(filled)}"${name}"`;
      for (let shift = 0; shift < 8; shift++) {
        const memory = new Uint8Array(1_000).subarray(shift);
        for (let start = 0; start < 4; start++) {
          memory.fill(0x78);
          memory.set(bytesOf(text), start);
          const end = start + text.length;
          assert.equal(
            reserved.occursIn(memory, start, end),
            true,
            `${name} ${filled} ${shift} ${start}`,
          );
          assert.equal(
            reserved.occursIn(memory, start, end - 1),
            false,
            `cut: ${name} ${shift} ${start}`,
          );
          assert.equal(
            reserved.occursIn(memory, start + filled + 1, end),
            false,
            `reserved: ${name} ${shift}`,
          );
        }
        memory.set(bytesOf(text), memory.length - text.length);
        assert.equal(
          reserved.occursIn(memory, 9, memory.length),
          true,
          `${name} ends memory, ${shift}`,
        );
      }
    }
  }
});

Deno.test("ReservedKeySearch rejects keys that are too short to be found reliably", () => {
  assert.throws(() => new ReservedKeySearch(["action", "abc"]), /abc is too short/);
});

Deno.test("ReservedKeySearch matches whole keys only, with exact letters", () => {
  for (const text of ["action", '"action', 'action"', '"Action"', '"actions"', '"xaction"', ""]) {
    assert.equal(occursIn(text), false, text);
  }
  assert.equal(occursIn('action"', '"'), false);
  assert.equal(occursIn('"action', "", '"'), false);
  assert.equal(occursIn("x".repeat(600), '"action"', '"action"'), false);
});

Deno.test("ReservedKeySearch agrees with a regular expression on random texts", () => {
  const random = new Random(5);
  const pieces = [
    '"',
    "action",
    "timeout_ms",
    "caller",
    "c",
    "on",
    "type",
    '"a',
    "ö",
    "x",
    " ",
    ":",
    's"',
  ];
  let found = 0;
  for (let round = 0; round < 20_000; round++) {
    const parts = Array.from({ length: random.below(round % 10 === 0 ? 300 : 20) }, () => {
      return random.pick(pieces);
    });
    const text = parts.join("");
    assert.equal(occursIn(text, '"action"', '"caller"'), PATTERN.test(text), text);
    if (PATTERN.test(text)) found++;
  }
  assert.ok(found > 500 && found < 19_500, `${found}`);
});

function isWhole(text: string): boolean {
  const memory = bytesOf(`,"data":${text}}`);
  return isWholeValue(memory, 8, memory.length - 1);
}

Deno.test("isWholeValue() is true for any single value, with white space around it", () => {
  const values = [1, -2.5e9, true, null, "", 'a"b\\', "}],{[", [], {}, [[{ a: [1, "}"] }]], "ö😀"];
  for (const value of [...values, { type: "x", "a,b": ["\\", '"', "\u0000"] }]) {
    for (const text of [JSON.stringify(value), ` ${JSON.stringify(value, null, 2)}\n`]) {
      assert.equal(isWhole(text), true, text);
    }
  }
});

Deno.test("isWholeValue() is false when another field follows, whatever the value contains", () => {
  for (
    const value of ["1", '"a"', '"\\\\"', '"\\""', "{}", "[]", '{"type":1}', '["}",{}]', "null"]
  ) {
    assert.equal(isWhole(`${value},"type":"ping"`), false, value);
    assert.equal(isWhole(`${value} , "type" : {"a":[]}`), false, value);
    assert.equal(isWhole(`${value}}{"type":1`), false, value);
  }
});

Deno.test("isWholeValue() is false for unbalanced brackets", () => {
  for (const text of ["{", "[[]", "}", "[]]", '{"a":[}', "1]"]) {
    assert.equal(isWhole(text), false, text);
  }
});

Deno.test("isWholeValue() stops at the end of an unclosed string", () => {
  assert.equal(isWhole('"a'), true); // No JSON: its receiver finds out.
  assert.equal(isWhole('{"a'), false);
  assert.equal(isWhole('"a\\'), true);
});

Deno.test("fieldText() returns a value as it was written", () => {
  const frame = ' { "a" : [ 1, {"b":"}\\"]"} ] , "data" : 12345678901234567890 ,"z":"\\\\" } ';

  assert.equal(fieldText(frame, "a"), '[ 1, {"b":"}\\"]"} ]');
  assert.equal(fieldText(frame, "data"), "12345678901234567890");
  assert.equal(fieldText(frame, "z"), '"\\\\"');
  assert.equal(fieldText(frame, "b"), undefined);
  assert.equal(fieldText("{}", "a"), undefined);
});

Deno.test("fieldText() returns the last of duplicate keys, as JSON.parse does", () => {
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
