import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  createSchemas,
  SCHEMA_CHARS_MAX,
  SCHEMA_DEPTH_MAX,
  VALIDATION_ERRORS_MAX,
} from "./schema_check.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

const PAIR = {
  type: "object",
  required: ["a", "b"],
  properties: { a: { type: "integer" }, b: { type: "integer" } },
};

Deno.test("a valid value has no errors", () => {
  const check = createSchemas().compile(PAIR);

  assert.deepEqual(check({ a: 1, b: 2, more: "is allowed" }), []);
});

Deno.test("every error of a value is listed with its path", () => {
  const check = createSchemas().compile({
    type: "object",
    required: ["id"],
    properties: { "items/all~": { items: { type: "string" } }, b: { type: "integer" } },
  });

  assert.deepEqual(check({ "items/all~": ["x", 1], b: 1.5 }), [
    { path: "", message: "must have required property 'id'" },
    { path: "/items~1all~0/1", message: "must be string" },
    { path: "/b", message: "must be integer" },
  ]);
});

Deno.test("an error names unknown members and allowed values", () => {
  const check = createSchemas().compile({
    properties: { kind: { enum: ["a", "b"] }, version: { const: 2 } },
    additionalProperties: false,
  });

  assert.deepEqual(check({ kind: "c", version: 1, surplus: true }).map((m) => m.message), [
    "must NOT have additional properties: surplus",
    'must be equal to one of the allowed values: ["a","b"]',
    "must be equal to constant: 2",
  ]);
});

Deno.test("a check can be used again after a value that did not fit", () => {
  const check = createSchemas().compile(PAIR);

  const first = check({ a: "x", b: 1 });
  const second = check({ a: 1, b: 1 });

  assert.equal(first.length, 1);
  assert.deepEqual(second, []);
});

Deno.test("true and {} fit everything, false nothing", () => {
  const schemas = createSchemas();

  assert.deepEqual(schemas.compile(true)(null), []);
  assert.deepEqual(schemas.compile({})([1, "x"]), []);
  assert.deepEqual(schemas.compile(false)(1), [{ path: "", message: "boolean schema is false" }]);
});

for (
  const [name, schema, good, bad] of [
    ["prefixItems", { prefixItems: [{ type: "string" }] }, ["x"], [1]],
    ["dependentRequired", { dependentRequired: { a: ["b"] } }, { a: 1, b: 1 }, { a: 1 }],
    [
      "unevaluatedProperties",
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { a: 1 },
      { b: 1 },
    ],
    [
      "$defs and $ref within the schema",
      { $ref: "#/$defs/n", $defs: { n: { type: "number" } } },
      1,
      "x",
    ],
    [
      "a $ref to its own $id",
      {
        $id: "https://shop.test/s",
        $ref: "https://shop.test/s#/$defs/n",
        $defs: { n: { const: 1 } },
      },
      1,
      2,
    ],
    ["nullable unions", { anyOf: [{ type: "integer" }, { type: "null" }] }, null, "x"],
    [
      "a trait of another draft",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        definitions: { n: { type: "number" } },
        $ref: "#/definitions/n",
      },
      1,
      "x",
    ],
  ] as [string, Json, Json, Json][]
) {
  Deno.test(`${name} is understood`, () => {
    const check = createSchemas().compile(schema);

    assert.deepEqual(check(good), []);
    assert.ok(check(bad).length > 0);
  });
}

Deno.test("format and unknown keywords are annotations", () => {
  const check = createSchemas().compile({ type: "string", format: "email", "x-widget": "text" });

  assert.deepEqual(check("no address"), []);
});

for (
  const [name, schema, why] of [
    ["null", null, /object or a boolean/],
    ["a text", "object", /object or a boolean/],
    ["a list", [{ type: "object" }], /object or a boolean/],
    ["an unknown type", { type: "integr" }, /type/],
    ["a type that is no text", { properties: { a: { type: 5 } } }, /type/],
    ["a pattern that is none", { pattern: "(" }, /pattern|[Rr]egular expression/],
    ["required that is no list", { required: "a" }, /required/],
    ["a reference to nowhere", { $ref: "#/$defs/missing" }, /missing/],
    ["a remote document", { $ref: "https://example.test/s.json" }, /example\.test/],
    ["items of an older draft", { items: [{ type: "string" }] }, /items/],
    ["an asynchronous one", { $async: true, type: "object" }, /asynchronous/],
    ["a huge one", { description: "x".repeat(SCHEMA_CHARS_MAX) }, /65536 characters/],
    ["a deep one", nested(SCHEMA_DEPTH_MAX + 1), /nested deeper/],
    ["a bottomless one", nested(200_000), /characters|nested/],
  ] as [string, Json, RegExp][]
) {
  Deno.test(`${name} is no usable schema`, () => {
    const { compile } = createSchemas();

    assert.throws(() => compile(schema), (error) => {
      assert.ok(error instanceof EngineError);
      assert.equal(error.code, "invalid_schema");
      assert.match(error.message, /^The schema cannot be used: /);
      assert.match(error.message, why);
      return true;
    });
  });
}

Deno.test("a schema as deep as allowed is usable", () => {
  const check = createSchemas().compile(nested(SCHEMA_DEPTH_MAX));

  assert.deepEqual(check([]), []);
});

Deno.test("a schema that poses as the meta-schema harms no other", () => {
  const schemas = createSchemas();
  const $id = "https://json-schema.org/draft/2020-12/schema";

  schemas.compile({ $id, type: "string" });

  assert.throws(() => schemas.compile({ type: "integr" }), { code: "invalid_schema" });
  assert.equal(schemas.compile(PAIR)({}).length, 2);
});

Deno.test("schemas with the same $id stay apart", () => {
  const schemas = createSchemas();
  const $id = "https://shop.test/payload";

  const one = schemas.compile({ $id, type: "string" });
  const two = schemas.compile({ $id, type: "number" });

  assert.deepEqual([one("x").length, one(1).length, two("x").length, two(1).length], [0, 1, 1, 0]);
});

Deno.test("the errors of a small value are bounded too", () => {
  const check = createSchemas().compile({ items: { type: "string" } });

  assert.equal(check(Array(100).fill(1)).length, VALIDATION_ERRORS_MAX);
});

Deno.test("a large value that does not fit is not searched to its end", () => {
  const check = createSchemas().compile({ items: { type: "string" } });

  assert.deepEqual(check(Array(1_000_000).fill(1)), [{ path: "/0", message: "must be string" }]);
});

Deno.test("a schema that refers to itself without end refuses the value", () => {
  const check = createSchemas().compile({ $ref: "#" });

  assert.deepEqual(check(1), [{ path: "", message: "is nested too deep to be checked" }]);
});

Deno.test("a value that is deeper than the stack is refused", () => {
  const check = createSchemas().compile({ items: { $ref: "#" } });

  assert.deepEqual(check(nestedList(200_000)), [
    { path: "", message: "is nested too deep to be checked" },
  ]);
});

Deno.test("a property named like a part of every object is only a property", () => {
  const check = createSchemas().compile({
    required: ["constructor"],
    properties: { constructor: { type: "string" } },
  });

  assert.equal(check({}).length, 1);
  assert.deepEqual(check({ constructor: "x" }), []);
  const optional = createSchemas().compile({ properties: { valueOf: { type: "string" } } });
  assert.deepEqual(optional({}), []);
  assert.deepEqual(createSchemas().compile({ required: ["toString"] })({}).length, 1);
});

/** A schema with so many levels below it. */
function nested(levels: number): Json {
  let schema: Json = {};
  for (let i = 0; i < levels; i++) schema = { not: schema };
  return schema;
}

function nestedList(levels: number): Json {
  let list: Json = [];
  for (let i = 0; i < levels; i++) list = [list];
  return list;
}

for (
  const [items, isUnique] of [
    [[1, "1", true, null, [1], [], {}, "true"], true],
    [[{ a: 1, b: { c: 2, d: 3 } }, 5, { b: { d: 3, c: 2 }, a: 1 }], false],
    [[[1, 2], [2, 1]], true],
    [[0, -0], false],
    [["a", "a"], false],
    [[{ a: 1 }, { a: "1" }], true],
    [[], true],
  ] as [Json, boolean][]
) {
  Deno.test(`${JSON.stringify(items)} ${isUnique ? "fits" : "does not fit"} uniqueItems`, () => {
    const check = createSchemas().compile({ uniqueItems: true });
    const message = "must NOT have duplicate items";

    assert.deepEqual(check(items), isUnique ? [] : [{ path: "", message }]);
    assert.deepEqual(createSchemas().compile({ uniqueItems: false })(items), []);
  });
}

Deno.test("A long list is checked for duplicates in one pass", () => {
  const check = createSchemas().compile({ properties: { ids: { uniqueItems: true } } });
  // Comparing each with every other would take minutes.
  const ids = Array.from({ length: 200_000 }, (_, id): Json => ({ id }));

  assert.deepEqual(check({ ids }), []);
  assert.equal(check({ ids: [...ids, { id: 7 }] })[0]!.path, "/ids");
});

Deno.test("a check whose expression takes for ever is ended, and the next is not begun", () => {
  const properties = { name: { type: "string", pattern: "^(a+)+$" }, n: { type: "number" } };
  const check = createSchemas().compile({ type: "object", properties });
  const slow = { name: "a".repeat(40) + "!" };
  const timeOf = (value: Json): number => {
    const began = performance.now();
    assert.deepEqual(check(value), [{
      path: "",
      message: "takes too long to be checked by its schema",
    }]);
    return performance.now() - began;
  };

  assert.deepEqual(check({ name: "aaa", n: 1 }), []);
  assert.equal(check({ name: "b" })[0]?.path, "/name");
  assert.equal(check({ n: "x" })[0]?.path, "/n");
  const first = timeOf(slow);
  const second = timeOf(slow);

  assert.ok(first < 60_000, `${first} ms`);
  assert.ok(second < first / 2, `${second} ms after ${first} ms`);
});

Deno.test("names are checked by expressions within the same time", () => {
  const check = createSchemas().compile({ patternProperties: { "^(a+)+$": { type: "number" } } });

  assert.deepEqual(check({ aa: 1, b: "x" }), []);
  assert.equal(check({ aa: "x" }).length, 1);
  assert.equal(check({ ["a".repeat(40) + "!"]: 1 }).length, 1);
});
