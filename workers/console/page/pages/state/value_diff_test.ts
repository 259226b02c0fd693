import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { diffValues, foldDiff } from "./value_diff.ts";

/** A diff as text, such as `+   "a": 1`. */
function say(before: Json | undefined, after: Json | undefined): string[] {
  return diffValues(before, after).lines.map(({ mark, level, text }) =>
    `${mark} ${"  ".repeat(level)}${text}`
  );
}

Deno.test("members are compared by name, wherever they stand", () => {
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

Deno.test("an item that was put in marks no other", () => {
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

Deno.test("an item that changed is compared inside", () => {
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

Deno.test("what was not there has only marks of one kind", () => {
  assert.deepEqual(say(undefined, { a: [1] }), ["+ {", '+   "a": [', "+     1", "+   ]", "+ }"]);
  assert.deepEqual(say("x", undefined), ['- "x"']);
  assert.deepEqual(say(undefined, undefined), []);
  assert.deepEqual(say(null, {}), ["- null", "+ {}"]);
});

Deno.test("values of other types are replaced", () => {
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

Deno.test("equal values have no marks", () => {
  const value = { a: [1, { b: null }], c: "x" };

  const { added, removed } = diffValues(value, structuredClone(value));

  assert.deepEqual([added, removed], [0, 0]);
});

Deno.test("a diff with marks on one side only gives back the value of that side", () => {
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

Deno.test("large and deep values are cut, and it is said how much", () => {
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

Deno.test("folded, only what is near a change is left", () => {
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
