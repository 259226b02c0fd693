import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { diffValues, foldDiff } from "./value_diff.ts";

/** A diff as text, such as `+   "a": 1`. */
function say(before: Json | undefined, after: Json | undefined): string[] {
  return diffValues(before, after).lines.map(({ mark, level, text }) =>
    `${mark} ${"  ".repeat(level)}${text}`
  );
}

Deno.test("diffValues() compares members by name, in any order", () => {
  const before = { a: 1, b: { c: "x", d: [] }, gone: null };
  const after = { b: { d: [], c: "y" }, a: 1, more: [1] };

  assert.deepEqual(say(before, after), [
    "  {",
    '    "a": 1',
    '    "b": {',
    '-     "c": "x"',
    '+     "c": "y"',
    '      "d": []',
    "    }",
    '-   "gone": null',
    '+   "more": [',
    "+     1",
    "+   ]",
    "  }",
  ]);
});

Deno.test("diffValues() marks an inserted item only", () => {
  assert.deepEqual(say([1, 2, 3], [0, 1, 2, 2.5, 3]), [
    "  [",
    "+   0",
    "    1",
    "    2",
    "+   2.5",
    "    3",
    "  ]",
  ]);
});

Deno.test("diffValues() compares changed items member by member", () => {
  assert.deepEqual(say([{ id: 1, n: 1 }, { id: 2 }], [{ id: 1, n: 2 }, { id: 2 }]), [
    "  [",
    "    {",
    '      "id": 1',
    '-     "n": 1',
    '+     "n": 2',
    "    }",
    "    {",
    '      "id": 2',
    "    }",
    "  ]",
  ]);
});

Deno.test("diffValues() marks all lines of an absent value alike", () => {
  assert.deepEqual(say(undefined, { a: [1] }), ["+ {", '+   "a": [', "+     1", "+   ]", "+ }"]);
  assert.deepEqual(say("x", undefined), ['- "x"']);
  assert.deepEqual(say(undefined, undefined), []);
  assert.deepEqual(say(null, {}), ["- null", "+ {}"]);
});

Deno.test("diffValues() replaces values of another type", () => {
  assert.deepEqual(say({ a: [1] }, { a: { b: 1 } }), [
    "  {",
    '-   "a": [',
    "-     1",
    "-   ]",
    '+   "a": {',
    '+     "b": 1',
    "+   }",
    "  }",
  ]);
});

Deno.test("diffValues() marks nothing in equal values", () => {
  const value = { a: [1, { b: null }], c: "x" };

  const { added, removed } = diffValues(value, structuredClone(value));

  assert.deepEqual([added, removed], [0, 0]);
});

Deno.test("diffValues() contains both values", () => {
  const texts = (mark: string, before: Json, after: Json) =>
    diffValues(before, after).lines.filter((line) => line.mark === " " || line.mark === mark)
      .map(({ text }) => text);
  const value = (seed: number): Json => ({
    list: Array.from({ length: 1 + seed % 7 }, (_, i) => (i * seed) % 3),
    [`m${seed % 3}`]: { n: seed },
  });
  // Without commas between lines, texts of equal values are equal.
  const alone = (value: Json) => diffValues(value, value).lines.map(({ text }) => text);

  for (let i = 0; i < 40; i++) {
    const [before, after] = [value(i), value(i * 5 + 3)];
    assert.deepEqual(texts("-", before, after).sort(), alone(before).sort());
    assert.deepEqual(texts("+", before, after).sort(), alone(after).sort());
  }
});

Deno.test("diffValues() cuts large and deep values, and counts what is left out", () => {
  const long = Array.from({ length: 5_000 }, (_, i) => i);
  const diff = diffValues(long, long.map((i) => i + 1));
  assert.equal(diff.lines.length, 2_000);
  assert.equal(diff.cut, 2 + 10_000 - 2_000);
  assert.deepEqual([diff.added, diff.removed], [5_000, 5_000]);

  let deep: Json = 1;
  for (let i = 0; i < 500; i++) deep = { a: deep };
  assert.ok(diffValues(deep, { a: deep }).lines.length < 300);

  const [line] = diffValues(undefined, "x".repeat(10_000)).lines;
  assert.equal(line!.text.length, 2_001);
});

Deno.test("foldDiff() keeps changes and the lines around them", () => {
  const before = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, i]));

  const folded = foldDiff(diffValues(before, { ...before, k10: "new" }), 1);

  assert.deepEqual(folded.map((line) => line && `${line.mark}${line.text}`), [
    null,
    ' "k9": 9',
    '-"k10": 10',
    '+"k10": "new"',
    ' "k11": 11',
    null,
  ]);
});
