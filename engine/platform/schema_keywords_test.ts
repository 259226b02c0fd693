/**
 * The keywords of compiled checks: their errors are those of ajv, in parts or not.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { createSchemas } from "./schema_check.ts";
import { PART_SUBSCHEMAS_MAX } from "./schema_keywords.ts";

Deno.test("the texts of errors are those of ajv", () => {
  const schemas: Json[] = [
    { type: "string" },
    { type: ["string", "null"] },
    false,
    { minimum: 5 },
    { maximum: -5 },
    { exclusiveMinimum: 5 },
    { exclusiveMaximum: -5 },
    { multipleOf: 0.4 },
    { maxLength: 1 },
    { minLength: 9 },
    { pattern: '^"\\\\$' },
    { minItems: 3 },
    { maxItems: 1 },
    { contains: { type: "null" } },
    { contains: { type: "string" }, minContains: 2, maxContains: 3 },
    { items: { type: "null" } },
    { prefixItems: [{ type: "null" }], items: false },
    { unevaluatedItems: false },
    { minProperties: 9 },
    { maxProperties: 0 },
    { required: ['it\'s "here"', "b\\n"] },
    { properties: { a: { type: "null" }, 'b"': { type: "null" } } },
    { properties: { a: false } },
    { patternProperties: { "^a": { type: "null" } } },
    { propertyNames: { maxLength: 0 } },
    { dependentRequired: { a: ["z"] } },
    { dependentSchemas: { a: { required: ["z"] } } },
    { not: {} },
    { anyOf: [{ type: "null" }, false] },
    { oneOf: [{ type: "null" }, { required: ["z"] }] },
    { oneOf: [true, {}] },
    { if: {}, then: { type: "null" } },
    { if: false, else: { type: "null" } },
    { allOf: [{ type: "null" }] },
    { $ref: "#/$defs/n", $defs: { n: { type: "null" } } },
    { enum: ["q"] },
    { const: "q" },
    { additionalProperties: false },
    { unevaluatedProperties: false },
  ];
  const values: Json[] = [1, -1, 0.5, "ab", 'a"c', ["x", "x"], { a: 1, 'b"': 1 }];
  const own = new Ajv2020({ strict: false, allErrors: true });

  for (const schema of schemas) {
    const [ajv, check] = [own.compile(schema as object), createSchemas().compile(schema)];
    for (const value of values) {
      ajv(value);
      const wanted = ajv.errors?.map(({ instancePath, message }) => [instancePath, message]) ?? [];
      // Ours adds what ajv leaves to its `params`.
      const found = check(value).map(({ path, message }) => {
        const detail = /^(must (?:NOT have|be equal).*): .*$/.exec(message);
        return [path, detail?.[1] ?? message];
      });
      assert.deepEqual(found, wanted, `${JSON.stringify(schema)} of ${JSON.stringify(value)}`);
    }
  }
});

/** A schema of so many members that they come in parts, and the errors of a value. */
function large(members: JsonObject, rest: JsonObject = {}) {
  const many = Array.from({ length: 3 * PART_SUBSCHEMAS_MAX }, (_, i) => {
    return [`p${i}`, { type: "integer" }] as const;
  });
  const schema = { properties: { ...Object.fromEntries(many), ...members }, ...rest };
  const check = createSchemas().compile(schema);
  return (value: Json) => check(value).map(({ path, message }) => `${path} ${message}`);
}

Deno.test("members in parts are checked as if they were in one, each with its path", () => {
  const errors = large({ last: { properties: { in: { type: "null" } } } });

  assert.deepEqual(errors({ p0: 1, p100: 2, p179: 3, last: { in: null }, more: true }), []);
  assert.deepEqual(errors({ p179: "x" }), ["/p179 must be integer"]);
  assert.deepEqual(errors({ p1: 1.5, p100: "x", last: { in: 1 } }), [
    "/p1 must be integer",
    "/p100 must be integer",
    "/last/in must be null",
  ]);
  assert.deepEqual(errors([1]), []);
  assert.deepEqual(errors(null), []);
});

Deno.test("the first error alone is found in members that are too many for all errors", () => {
  const named = Array.from({ length: 480 }, (_, i) => [`p${i}`, { type: "integer" }]);
  const check = createSchemas().compile({ properties: Object.fromEntries(named) });

  assert.deepEqual(check({ p3: "x", p400: "x" }), [{ path: "/p3", message: "must be integer" }]);
  assert.deepEqual(check({ p400: "x" }), [{ path: "/p400", message: "must be integer" }]);
  assert.deepEqual(check({ p400: 1 }), []);
});

Deno.test("members in parts count for additionalProperties and unevaluatedProperties", () => {
  const closed = large({}, { additionalProperties: false });
  const evaluated = large({}, {
    unevaluatedProperties: false,
    allOf: [{ properties: { q: true } }],
  });

  assert.deepEqual(closed({ p179: 1, q: 1 }), [
    "  must NOT have additional properties: q".slice(1),
  ]);
  assert.deepEqual(evaluated({ p0: 1, p179: 1, q: 1 }), []);
  assert.deepEqual(evaluated({ r: 1 }).length, 1);
});

Deno.test("references of members in parts reach what they name", () => {
  const errors = large(
    {
      own: { $ref: "#/properties/p7" },
      all: { $ref: "#" },
      named: { $ref: "#there" },
      $id: {
        $id: "https://shop.test/in",
        properties: { a: { $ref: "#/$defs/b" } },
        $defs: { b: { const: 1 } },
      },
    },
    { $id: "https://shop.test/out", $defs: { t: { $anchor: "there", type: "string" } } },
  );

  assert.deepEqual(errors({ own: 1, all: { own: 2 }, named: "x", $id: { a: 1 } }), []);
  assert.deepEqual(errors({ own: "x", all: { own: "x" }, named: 1, $id: { a: 2 } }), [
    "/own must be integer",
    "/all/own must be integer",
    "/named must be string",
    "/$id/a must be equal to constant: 1",
  ]);
});

Deno.test("members in parts may be named like a part of every object", () => {
  const errors = large({ constructor: { type: "null" }, toString: { type: "null" } });

  assert.deepEqual(errors({}), []);
  assert.deepEqual(errors({ constructor: 1, toString: null }), ["/constructor must be null"]);
});

Deno.test("alternatives may have members in parts", () => {
  const named = Array.from({ length: 100 }, (_, i) => [`p${i}`, { type: "integer" }]);
  const part = { properties: Object.fromEntries(named), required: ["p0"] };
  const check = createSchemas().compile({ anyOf: [part, { type: "null" }] });
  const never = createSchemas().compile({ not: part });

  assert.deepEqual([check({ p0: 1 }), check(null)], [[], []]);
  assert.deepEqual(check({ p0: 1, p99: "x" }).map(({ path }) => path), ["/p99", "", ""]);
  assert.deepEqual([never({ p0: 1 }).length, never({ p0: "x" }).length], [1, 0]);
});
