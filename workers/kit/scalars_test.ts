import assert from "node:assert/strict";
import * as scalars from "./scalars.ts";

const VALUES = ["a", 1, 1.5, true, null, undefined, [], {}, NaN] as const;
const TAKES = {
  string: ["a"],
  number: [1, 1.5],
  int: [1],
  boolean: [true],
  nothing: [null],
  unknown: VALUES,
} as const;

for (const [name, taken] of Object.entries(TAKES)) {
  Deno.test(`${name}() takes its own sort of value and gives it on as it is`, () => {
    const of = scalars[name as keyof typeof TAKES]();

    for (const value of VALUES) {
      const read = of.safeParse(value);
      assert.equal(read.success, (taken as readonly unknown[]).includes(value), String(value));
      if (read.success) assert.ok(Object.is(read.data, value));
    }
  });
}

Deno.test("oneOf() and literal() take what they list, and list it", () => {
  const word = scalars.oneOf(["on", "off"]);

  assert.deepEqual(["on", "off", "of", 1, null].map((it) => word.safeParse(it).success), [
    true,
    true,
    false,
    false,
    false,
  ]);
  assert.deepEqual(word.kind.values, ["on", "off"]);
  assert.deepEqual(scalars.literal(1).kind.values, [1]);
  assert.deepEqual(scalars.literal(true).schema("input"), { type: "boolean", const: true });
});

Deno.test("every sort of value has words of its own if it is given some", () => {
  const words = { error: "expected luck" };
  const all = [
    scalars.string(words),
    scalars.number("expected luck"),
    scalars.int(words),
    scalars.boolean(words),
    scalars.oneOf(["a"], words),
    scalars.custom(() => false, words),
  ];

  for (const of of all) assert.equal(of.safeParse({}).error?.issues[0]?.message, "expected luck");
});
