/**
 * Members of an object found without parsing, compared with what `JSON.parse` finds.
 *
 * @module
 */
import assert from "node:assert/strict";
import { JSON_DEPTH_MAX } from "../../../sdk/typescript/wire/json_depth.ts";
import { Random } from "../../../tests/fakes/random.ts";
import { bytesOf, textOf } from "./bytes.ts";
import {
  JSON_PARTS_MAX,
  MEMBERS_MAX,
  membersOf,
  MembersScan,
  parsingProblem,
  valueProblem,
} from "./members.ts";

/** The members of a text, as JSON texts; found between other bytes. */
function members(text: string): [string, string][] | undefined {
  const before = '{"before":"';
  const memory = bytesOf(`${before}${text}","behind":1}`);
  const start = bytesOf(before).length;
  return membersOf(memory, start, start + bytesOf(text).length)?.map((member) => [
    textOf(memory, member.keyStart, member.keyEnd),
    textOf(memory, member.start, member.end).trim(),
  ]);
}

Deno.test("membersOf() finds keys and values as they are written", () => {
  assert.deepEqual(members('{"a":1, "b" : [ {"c":"}\\"]"} ] ,"é":"\\\\"}'), [
    ['"a"', "1"],
    ['"b"', '[ {"c":"}\\"]"} ]'],
    ['"é"', '"\\\\"'],
  ]);
  assert.deepEqual(members(" { } "), []);
});

Deno.test("membersOf() finds the end of long strings with any escapes", () => {
  for (const inside of ["x", "\\\\", '\\"', 'x\\"', '\\\\\\"', `${"y".repeat(63)}\\"`]) {
    for (let count = 60; count < 70; count++) {
      const value = `"${inside.repeat(count)}"`;
      assert.deepEqual(members(`{"a":${value},"b":1}`), [['"a"', value], ['"b"', "1"]]);
    }
  }
});

Deno.test("membersOf() finds in random objects what JSON.parse finds", () => {
  const random = new Random(5);
  const pieces = ['"', "\\", "[", "]", "{", "}", ",", ":", " ", "x", "é", "\n"];
  for (let i = 0; i < 2_000; i++) {
    const text = (): string =>
      Array.from({ length: random.below(90) }, () => random.pick(pieces)).join("");
    const value = { [text()]: [text(), { [text()]: text() }], [text()]: text(), n: { e: [] } };
    const written = JSON.stringify(value, null, random.pick([0, 1]));

    const found = members(written)!.map(([key, one]) => [JSON.parse(key), JSON.parse(one)]);

    assert.deepEqual(Object.fromEntries(found), value);
  }
});

for (
  const text of [
    "",
    "[]",
    "1",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1}}',
    '{"a":}',
    "{a:1}",
    '{"a":1,}',
  ]
) {
  Deno.test(`membersOf() finds no object in ${text || "nothing"}`, () => {
    assert.equal(members(text), undefined);
  });
}

Deno.test("membersOf() has a bound of members", () => {
  const object = (count: number): string => `{${'"a":1,'.repeat(count - 1)}"a":1}`;

  assert.equal(members(object(MEMBERS_MAX))?.length, MEMBERS_MAX);
  assert.equal(members(object(MEMBERS_MAX + 1)), undefined);
});

Deno.test("membersOf() tells how deep each value is", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  const memory = bytesOf(`{"a":${nested(JSON_DEPTH_MAX - 1)},"b":${nested(JSON_DEPTH_MAX)}}`);

  const found = membersOf(memory, 0, memory.length)!;

  assert.deepEqual(found.map(({ depth }) => depth), [JSON_DEPTH_MAX - 1, JSON_DEPTH_MAX]);
});

Deno.test("a scan finds in parts, wherever they lie, what it finds at once", () => {
  const random = new Random(11);
  const pieces = ['"', '"', "\\", "[", "]", "{", "}", ",", ":", " ", "xy", "é", '\\"', '"a":'];
  const end = { text: "" };
  for (let i = 0; i < 20_000; i++) {
    end.text = Array.from({ length: random.below(60) }, () => random.pick(pieces)).join("");
    const whole = random.below(4) === 0
      ? end.text
      : `{"k":"${"z".repeat(random.below(150))}${end.text}}`;
    const bytes = bytesOf(whole);
    const expected = membersOf(bytes, 0, bytes.length);

    const scan = new MembersScan();
    let start = 0;
    for (let at = 0; at < bytes.length;) {
      const to = Math.min(bytes.length, at + 1 + random.below(random.pick([2, 40, 100])));
      // What was read before may be gone.
      start = random.below(8);
      const memory = new Uint8Array(start + to + random.below(5)).fill(0x22);
      memory.set(bytes.subarray(at, to), start + at);
      scan.advance(memory, start, start + to);
      at = to;
    }

    const moved = expected?.map((one) => ({
      ...one,
      keyStart: one.keyStart + start,
      keyEnd: one.keyEnd + start,
      start: one.start + start,
      end: one.end + start,
    }));
    assert.deepEqual(scan.members(start), moved, whole);
  }
});

Deno.test("valueProblem() and parsingProblem() agree on what a scan counted", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  const many = (count: number): string => `[${"[],".repeat(count - 1)}1]`;
  for (
    const text of [
      nested(JSON_DEPTH_MAX),
      nested(JSON_DEPTH_MAX + 1),
      many(JSON_PARTS_MAX),
      many(JSON_PARTS_MAX + 1),
    ]
  ) {
    const memory = bytesOf(`{"a":${text}}`);
    const [{ depth, parts } = { depth: 0, parts: 0 }] = membersOf(memory, 0, memory.length)!;

    assert.equal(valueProblem(depth, parts), problem(text));
  }
});

function problem(text: string): string | undefined {
  const memory = bytesOf(text);
  return parsingProblem(memory, 0, memory.length);
}

Deno.test("parsingProblem() names depth and number of parts, each beyond its bound", () => {
  const nested = (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);
  assert.equal(problem(nested(JSON_DEPTH_MAX)), undefined);
  assert.equal(problem(nested(JSON_DEPTH_MAX + 1)), "is nested more deeply than 128 levels");

  const arrays = (count: number): string => `[${"[],".repeat(count - 1)}1]`;
  assert.equal(problem(arrays(JSON_PARTS_MAX)), undefined);
  const tooMany = "has more than 1000000 objects, arrays and members, " +
    "of which one with a name of its own counts as 10";
  assert.equal(problem(arrays(JSON_PARTS_MAX + 1)), tooMany);
  assert.equal(problem(`"${"[:{".repeat(JSON_PARTS_MAX)}"`), undefined);
  assert.equal(problem(`[${"1,".repeat(2 * JSON_PARTS_MAX)}1]`), undefined);
});

Deno.test("a member with a name of its own counts for ten parts, in whole and in pieces", () => {
  const object = (count: number) => {
    return `{${Array.from({ length: count }, (_, i) => `"name ${i}" : 1`).join(",")}}`;
  };
  const records = `[${`{"a":1,"b":2},`.repeat(300_000)}1]`;

  assert.equal(problem(object(95_000)), undefined);
  assert.match(problem(object(105_000))!, /has more than 1000000 objects, arrays and members/);
  assert.equal(problem(records), undefined);
  for (const [text, isTooMuch] of [[object(95_000), false], [object(105_000), true]] as const) {
    const memory = new TextEncoder().encode(`{"data":${text}}`);
    const scan = new MembersScan();
    for (let end = 0; end < memory.length;) {
      end = Math.min(memory.length, end + 65_536);
      scan.advance(memory, 0, end);
    }
    assert.equal(scan.members(0)![0]!.parts > JSON_PARTS_MAX, isTooMuch);
  }
});
