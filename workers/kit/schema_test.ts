import assert from "node:assert/strict";
import * as v from "./schema.ts";
import { problemsOf } from "./fit.ts";

/** What a schema says of a value; empty: it fits. */
function wrong(schema: v.Schema, value: unknown): string[] {
  const { issues } = v.safeParse(schema, value);
  return issues ? problemsOf(issues, value) : [];
}

const FITTING: readonly [string, v.Schema, unknown, unknown][] = [
  ["a text in bounds", v.text(1, 2), "ab", "ab"],
  ["a whole number", v.int(1), 9, 9],
  ["nothing where something may be left out", v.opt(v.int()), undefined, undefined],
  ["null where something may be left out", v.opt(v.int()), null, undefined],
  ["a list", v.list(v.int(), 2), [1, 2], [1, 2]],
  ["a record", v.record(v.int()), { a: 1 }, { a: 1 }],
  [
    "an object, without unknown keys",
    v.object({ a: v.int(), b: v.optional(v.int()) }),
    { a: 1, c: 2 },
    { a: 1 },
  ],
  ["an object, with unknown keys", v.looseObject({ a: v.int() }), { a: 1, c: 2 }, { a: 1, c: 2 }],
  [
    "an object whose members have defaults",
    v.strictObject({ a: v.optional(v.object({ b: v.optional(v.int(), 1) }), {}) }),
    {},
    { a: { b: 1 } },
  ],
  [
    "a variant of an object",
    v.variant("type", [v.object({ type: v.literal("a"), n: v.int() })]),
    { type: "a", n: 1 },
    { type: "a", n: 1 },
  ],
];

for (const [what, schema, value, result] of FITTING) {
  Deno.test(`a schema takes ${what}`, () => assert.deepEqual(v.parse(schema, value), result));
}

const NOT_FITTING: readonly [string, v.Schema, unknown, readonly string[]][] = [
  ["a list as object", v.object({}), [], ["expected object, received array"]],
  ["a list as strict object", v.strictObject({}), [], ["expected object, received array"]],
  ["a list as loose object", v.looseObject({}), [], ["expected object, received array"]],
  ["a list as record", v.record(v.int()), [], ["expected record, received array"]],
  ["null as object", v.object({}), null, ["expected object, received null"]],
  ["too short a text", v.text(2), "a", ["Too small: expected string to have >=2 characters"]],
  ["too large a number", v.int(0, 2), 3, ["Too big: expected number to be <=2"]],
  ["half a number", v.int(), 1.5, ["expected int, received 1.5"]],
  ["a number that is not exact", v.int(), 2 ** 60, ["expected int, received 1152921504606847000"]],
  ["another string", v.picklist(["a", "b"]), "c", ['expected ("a" | "b"), received string']],
  ["an item of a list", v.array(v.int()), [1, "a"], ["[1]: expected number, received string"]],
  ["too long a list, without checking its items", v.list(v.int(), 1), ["a", "b"], [
    "Too big: expected array to have <=1 items",
  ]],
  ["a member that is missing", v.object({ a: v.int() }), {}, [
    "a: expected number, received nothing",
  ]],
  ["every unknown key", v.strictObject({}), { a: 1, b: 2 }, [
    "a: unknown key",
    "b: unknown key",
  ]],
  [
    "a member of a variant that is missing",
    v.variant("type", [
      v.object({ type: v.literal("a"), n: v.int() }),
    ]),
    { type: "a" },
    ["n: expected number, received nothing"],
  ],
];

for (const [what, schema, value, problems] of NOT_FITTING) {
  Deno.test(`a schema refuses ${what}`, () => assert.deepEqual(wrong(schema, value), problems));
}

Deno.test("a check that needs some members runs beside problems of others", () => {
  const isOne = ({ a }: { a: number }) => a === 1;
  const schema = v.pipe(
    v.object({ a: v.int(), b: v.int() }),
    v.forward(v.partialCheck([["a"]], isOne, "expected 1"), ["a"]),
  );

  assert.deepEqual(wrong(schema, { a: 2 }), [
    "b: expected number, received nothing",
    "a: expected 1",
  ]);
});

Deno.test("a value cannot set the prototype of an object", () => {
  const value = JSON.parse('{"__proto__": {"admin": true}, "a": 1}');

  for (const schema of [v.record(v.unknown()), v.looseObject({ a: v.int() })]) {
    const read = v.parse(schema, value) as { admin?: boolean };

    assert.equal(read.admin, undefined);
    assert.deepEqual(Object.keys(read), ["a"]);
  }
});

Deno.test("jsonSchema() describes what a schema takes", () => {
  const schema = v.strictObject({
    name: v.text(1, 9),
    size: v.optional(v.int(0), 3),
    tags: v.nullish(v.pipe(v.array(v.picklist(["a", "b"])), v.minLength(1))),
    more: v.nullable(v.union([v.string(), v.number()])),
    only: v.optional(v.literal("x")),
  });

  assert.deepEqual(v.jsonSchema(schema), {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 9 },
      size: { type: "integer", minimum: 0, maximum: 9007199254740991, default: 3 },
      tags: {
        anyOf: [
          { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1 },
          { type: "null" },
        ],
      },
      more: { anyOf: [{ anyOf: [{ type: "string" }, { type: "number" }] }, { type: "null" }] },
      only: { const: "x" },
    },
    required: ["name", "more"],
    additionalProperties: false,
  });
});

Deno.test("described() adds texts to members, also optional, transformed and inner ones", () => {
  const schema = v.pipe(
    v.object({
      a: v.described("A", v.opt(v.int(1, 5))),
      b: v.described("B", v.nullish(v.object({ c: v.described("C", v.string()) }))),
    }),
    v.metadata({ anyOf: [{ required: ["a"] }] }),
  );

  const { properties, anyOf } = v.jsonSchema(schema) as Record<string, unknown>;

  assert.deepEqual(properties, {
    a: { anyOf: [{ type: "integer", minimum: 1, maximum: 5 }, { type: "null" }], description: "A" },
    b: {
      anyOf: [{
        type: "object",
        properties: { c: { type: "string", description: "C" } },
        required: ["c"],
      }, { type: "null" }],
      description: "B",
    },
  });
  assert.deepEqual(anyOf, [{ required: ["a"] }]);
  assert.deepEqual(v.parse(schema, { a: null, b: { c: "x", d: 1 } }), {
    a: undefined,
    b: { c: "x" },
  });
});
