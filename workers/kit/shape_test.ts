/**
 * Shapes: what fits, what is said of what does not, and their JSON Schemas.
 *
 * @module
 */
import assert from "node:assert/strict";
import * as shape from "./mod.ts";

/** What a shape says of a value, as `path: message`; none: it fits. */
function wrong(of: shape.Any, value: unknown): string[] {
  const read = of.safeParse(value);
  return read.success ? [] : read.error.issues.map(({ path, message }) => {
    return path.length === 0 ? message : `${path.join(".")}: ${message}`;
  });
}

const FITTING: readonly [string, shape.Any, unknown, unknown][] = [
  ["a text", shape.string(), "", ""],
  ["a text in bounds", shape.string().min(1).max(2), "ab", "ab"],
  ["a text that is trimmed before it is measured", shape.string().trim().max(1), " a ", "a"],
  ["a text in capitals", shape.string().toUpperCase(), "get", "GET"],
  ["a text that matches", shape.string().regex(/^a/).toLowerCase(), "aB", "ab"],
  ["a path", shape.string().startsWith("/"), "/x", "/x"],
  ["a number", shape.number().min(0).max(1), 0.5, 0.5],
  ["a whole number", shape.int().min(1), 9, 9],
  ["false", shape.boolean(), false, false],
  ["one of several texts", shape.oneOf(["a", "b"]), "b", "b"],
  ["null", shape.nothing(), null, null],
  ["anything", shape.unknown(), undefined, undefined],
  ["nothing where something may be left out", shape.int().optional(), undefined, undefined],
  ["null where it may be", shape.int().nullish(), null, null],
  ["nothing where there is a default", shape.int().default(3), undefined, 3],
  ["what the shape makes of it", shape.int().transform((n) => n + 1), 1, 2],
  ["a list", shape.array(shape.int()).min(1).max(2), [1, 2], [1, 2]],
  ["a pair", shape.tuple([shape.string(), shape.unknown()]), ["a", 1], ["a", 1]],
  ["a record", shape.record(shape.int()), { a: 1 }, { a: 1 }],
  ["either", shape.union([shape.string(), shape.int()]), 1, 1],
  [
    "an object, without keys nobody knows",
    shape.object({ a: shape.int(), b: shape.int().optional() }),
    { a: 1, c: 2 },
    { a: 1 },
  ],
  [
    "an object, with keys nobody knows",
    shape.looseObject({ a: shape.int() }),
    { a: 1, c: 2 },
    { a: 1, c: 2 },
  ],
  [
    "an object whose members have defaults",
    shape.strictObject({ a: shape.object({ b: shape.int().default(1) }).prefault({}) }),
    {},
    { a: { b: 1 } },
  ],
  [
    "an object of a kind",
    shape.taggedUnion("type", [shape.object({ type: shape.literal("a"), n: shape.int() })]),
    { type: "a", n: 1 },
    { type: "a", n: 1 },
  ],
  ["what is made of it first", shape.preprocess((it) => it ?? {}, shape.object({})), null, {}],
];

for (const [what, of, value, result] of FITTING) {
  Deno.test(`a shape takes ${what}`, () => assert.deepEqual(of.parse(value), result));
}

const MISFITS: readonly [string, shape.Any, unknown, readonly string[]][] = [
  ["a number as text", shape.string(), 5, ["Invalid input: expected string, received number"]],
  ["a list as object", shape.object({}), [], ["Invalid input: expected object, received array"]],
  ["null as list", shape.array(shape.int()), null, [
    "Invalid input: expected array, received null",
  ]],
  ["NaN", shape.number(), NaN, ["Invalid input: expected number, received NaN"]],
  ["too short a text", shape.string().min(2), "a", [
    "Too small: expected string to have >=2 characters",
  ]],
  ["too large a number", shape.int().max(2), 3, ["Too big: expected number to be <=2"]],
  ["half a number", shape.int(), 1.5, ["Invalid input: expected int, received number"]],
  ["a number that is not exact", shape.int(), 2 ** 60, [
    "Too big: expected int to be <=9007199254740991",
  ]],
  ["another text", shape.oneOf(["a", "b"]), "c", ['Invalid option: expected one of "a"|"b"']],
  ["another value", shape.literal("a"), "c", ['Invalid input: expected "a"']],
  ["a text that does not match", shape.string().regex(/^a/), "b", [
    "Invalid string: must match pattern /^a/",
  ]],
  ["a relative path", shape.string().startsWith("/"), "b", [
    'Invalid string: must start with "/"',
  ]],
  [
    "an item of a list",
    shape.array(shape.int()),
    [1, "a"],
    [
      "1: Invalid input: expected int, received string",
    ].map((text) => text.replace("int", "number")),
  ],
  ["too long a list, without looking into it", shape.array(shape.int()).max(1), ["a", "b"], [
    "Too big: expected array to have <=1 items",
  ]],
  ["too short a pair", shape.tuple([shape.int(), shape.int()]), [1], [
    "Too small: expected array to have >=2 items",
  ]],
  ["a member that is missing", shape.object({ a: shape.int() }), {}, [
    "a: Invalid input: expected number, received undefined",
  ]],
  ["anything that is missing", shape.object({ a: shape.unknown() }), {}, [
    "a: Invalid input: expected nonoptional, received undefined",
  ]],
  ["keys nobody knows", shape.strictObject({}), { a: 1, b: 2 }, ['Unrecognized keys: "a", "b"']],
  ["neither", shape.union([shape.string(), shape.int()]), true, ["Invalid input"]],
  ["what one of two nearly takes", shape.union([shape.string().min(2), shape.int()]), "a", [
    "Too small: expected string to have >=2 characters",
  ]],
  [
    "an object of no kind",
    shape.taggedUnion("type", [shape.object({ type: shape.literal("a") })]),
    { type: "b" },
    ["type: Invalid discriminator value. Expected 'a'"],
  ],
  ["what is not so", shape.string().refine((text) => text === "", "expected nothing"), "a", [
    "expected nothing",
  ]],
  ["what a program refuses", shape.custom(() => false, { error: "expected luck" }), 1, [
    "expected luck",
  ]],
  [
    "something by words of the shape's own",
    shape.oneOf(["a"], { error: ({ input }) => `expected a, received ${input}` }),
    7,
    ["expected a, received 7"],
  ],
];

for (const [what, of, value, problems] of MISFITS) {
  Deno.test(`a shape refuses ${what}`, () => assert.deepEqual(wrong(of, value), problems));
}

Deno.test("parse() throws all that is wrong at once", () => {
  const of = shape.strictObject({ a: shape.string().min(1), b: shape.int() });

  assert.throws(() => of.parse({ a: "", c: 1 }), (thrown: shape.ShapeError) => {
    assert.equal(thrown.name, "ShapeError");
    assert.deepEqual(thrown.issues.map(({ code }) => code), [
      "too_small",
      "invalid_type",
      "unrecognized_keys",
    ]);
    return true;
  });
});

Deno.test("a refinement of an object does not see members of a wrong type", () => {
  const of = shape.object({ a: shape.string() }).refine(({ a }) => a.length === 1, "expected one");

  assert.deepEqual(wrong(of, { a: 1 }), ["a: Invalid input: expected string, received number"]);
  assert.deepEqual(wrong(of, { a: "ab" }), ["expected one"]);
});

Deno.test("a refinement that is always looked at is told beside other problems", () => {
  const of = shape.object({ a: shape.int(), b: shape.int() })
    .refine(({ a }) => a === 1, { error: "expected 1", path: ["a"], always: true });

  assert.deepEqual(wrong(of, { a: 2 }), [
    "b: Invalid input: expected number, received undefined",
    "a: expected 1",
  ]);
});

Deno.test("nothing is made of a value with which something is wrong", () => {
  const of = shape.string().min(2).transform(() => assert.fail("a wrong value was used"));

  assert.equal(wrong(of.nullish().refine(() => assert.fail("looked at it")), "a").length, 1);
});

Deno.test("a prototype cannot come in with a value", () => {
  const value = JSON.parse('{"__proto__": {"admin": true}, "a": 1}');

  for (const  of of[shape.record(shape.unknown()), shape.looseObject({ a: shape.int() })]) {
    const read = of.parse(value) as { admin?: boolean };

    assert.equal(read.admin, undefined);
    assert.deepEqual(Object.keys(read), ["a"]);
  }
});

Deno.test("schema() describes what a shape takes and what it gives", () => {
  const of = shape.strictObject({
    name: shape.string().min(1).max(9),
    size: shape.int().min(0).default(3),
    tags: shape.array(shape.oneOf(["a", "b"])).min(1).nullish(),
    more: shape.union([shape.string(), shape.number()]).nullable(),
    only: shape.literal("x").optional(),
  }).meta({ title: "Thing" });

  const properties = {
    name: { type: "string", minLength: 1, maxLength: 9 },
    size: { type: "integer", minimum: 0, maximum: 9007199254740991, default: 3 },
    tags: {
      anyOf: [
        { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1 },
        { type: "null" },
      ],
    },
    more: { type: ["string", "number", "null"] },
    only: { type: "string", const: "x" },
  };
  const rest = { type: "object", properties, additionalProperties: false, title: "Thing" };
  assert.deepEqual(of.schema("input"), { ...rest, required: ["name", "more"] });
  assert.deepEqual(of.schema("output"), { ...rest, required: ["name", "size", "more"] });
});

Deno.test("extend() has the members of both, the second ones first", () => {
  const first = shape.object({ a: shape.int(), b: shape.int() });

  const both = shape.extend(first, { b: shape.string() });

  assert.deepEqual(both.parse({ a: 1, b: "x" }), { a: 1, b: "x" });
  assert.deepEqual(Object.keys(both.members), ["a", "b"]);
});
