import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  ALL_ERRORS_SUBSCHEMAS_MAX,
  COMPILED_SUBSCHEMAS_MAX,
  createSchemas,
  PATTERN_CHARS_MAX,
  PATTERN_INSTRUCTIONS_MAX,
  SCHEMA_CHARS_MAX,
  SCHEMA_DEPTH_MAX,
  VALIDATION_ERRORS_MAX,
  VALIDATION_TEXT_CHARS_MAX,
} from "./schema_check.ts";
import { SCHEMA_PATTERNS_MAX, SCHEMA_REFS_MAX, SUBSCHEMAS_MAX } from "./schema_steps.ts";
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

Deno.test("a schema of very many parts is compiled once: the first error alone is found", () => {
  const errors = (subschemas: number): number => {
    const names = Array.from({ length: subschemas - 1 }, (_, i) => [`p${i}`, { type: "string" }]);
    const check = createSchemas().compile({ properties: Object.fromEntries(names) });
    return check({ p0: 0, p1: 1 }).length;
  };

  assert.equal(errors(ALL_ERRORS_SUBSCHEMAS_MAX), 2);
  assert.equal(errors(ALL_ERRORS_SUBSCHEMAS_MAX + 1), 1);
});

/** What `run` compiles of text. */
function sourcesOf(run: () => void): string[] {
  const sources: string[] = [];
  const { Function } = globalThis;
  globalThis.Function = new Proxy(Function, {
    construct(target, parts: string[]) {
      sources.push(parts.at(-1)!);
      return Reflect.construct(target, parts);
    },
  });
  try {
    run();
  } finally {
    globalThis.Function = Function;
  }
  return sources;
}

Deno.test("the code of a schema refers to no more for more subschemas", () => {
  // ajv's time grows with the square of these: 0.3 s for 480 members.
  const references = (members: number): number => {
    const each = { type: ["string", "array"], minLength: 1, uniqueItems: true, enum: [1, 2] };
    const named = Array.from({ length: members }, (_, i) => [`p${i}`, each]);
    const sources = sourcesOf(() => {
      createSchemas().compile({ properties: Object.fromEntries(named) });
    });
    return sources.at(-1)!.match(/const \w+ = scope\./g)!.length;
  };

  assert.equal(references(40), references(4));
});

Deno.test("the code of a schema is parsed once: its function stands in parentheses", () => {
  const schema = { properties: { "return function": { const: "return function" } } };

  const source = sourcesOf(() => void createSchemas().compile(schema)).at(-1)!;

  assert.match(source, /return \(function validate\d+\(.*\}\)$/s);
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
  const ids = Array.from({ length: 50_000 }, (_, id): Json => ({ id }));

  assert.deepEqual(check({ ids }), []);
  assert.equal(check({ ids: [...ids, { id: 7 }] })[0]!.path, "/ids");
});

const TOO_MUCH = "takes more work to be checked by its schema than one payload may; " +
  "send less at a time";

Deno.test("an expression that backtracks is checked in linear time, and refuses no valid value", () => {
  const schemas = createSchemas();
  const properties = { name: { type: "string", pattern: "^(a+)+$" }, n: { type: "number" } };
  const checks = Array.from({ length: 30 }, (_, i) => {
    return schemas.compile({
      type: "object",
      properties,
      required: [],
      $id: `https://s.test/${i}`,
    });
  });
  // Each would take 2^40 steps where expressions backtrack.
  const slow = { name: "a".repeat(40) + "!" };

  for (const check of checks) {
    assert.deepEqual(check(slow), [{ path: "/name", message: 'must match pattern "^(a+)+$"' }]);
    assert.deepEqual(check({ name: "aaa", n: 1 }), []);
    assert.equal(check({ n: "x" })[0]?.path, "/n");
  }
});

Deno.test("names of members are checked in linear time too", () => {
  const check = createSchemas().compile({ patternProperties: { "^(a+)+$": { type: "number" } } });

  assert.deepEqual(check({ aa: 1, b: "x" }), []);
  assert.equal(check({ aa: "x" }).length, 1);
  assert.deepEqual(check({ ["a".repeat(100_000) + "!"]: 1 }), []);
});

for (
  const [pattern, text, other] of [
    ["^\\d{4}-\\d{2}-\\d{2}$", "2026-11-23", "23.11."],
    ["^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$", "jo@shop.test", "jo"],
    ["^\\p{Script=Greek}+\\/\\u0041$", "αβγ/A", "abc/A"],
    ["^(?<year>\\d+)$", "2026", "x"],
    ["^\\u{1F600}?[^]$", "x", ""],
  ] as const
) {
  Deno.test(`the pattern ${pattern} has the meaning that it has in JavaScript`, () => {
    const check = createSchemas().compile({ pattern });

    assert.deepEqual([check(text).length, check(other).length], [0, 1]);
    assert.deepEqual([text, other].map((it) => new RegExp(pattern, "u").test(it)), [true, false]);
  });
}

for (
  const [name, schema, value] of [
    ["refers to itself twice", { allOf: [{ items: { $ref: "#" } }, { items: { $ref: "#" } }] }, [
      90,
      1,
    ]],
    ["refers to itself in a keyword that is unknown, which it cannot", {
      "x-a": { anyOf: [{ items: { $ref: "#/x-a" } }, { items: { $ref: "#/x-a" } }] },
      $ref: "#/x-a",
    }, undefined],
    ["refers to the map of its properties", {
      properties: {
        if: { items: { $ref: "#/properties" } },
        then: { items: { $ref: "#/properties" } },
        items: { $ref: "#/properties" },
      },
      $ref: "#/properties",
    }, [90, 1]],
    ["tries many alternatives for each item", {
      items: { not: { anyOf: Array(480).fill({ type: "string" }) } },
    }, [1, 200_000]],
  ] as [string, Json, [depth: number, items: number] | undefined][]
) {
  Deno.test(`a schema that ${name} costs a bounded number of steps`, () => {
    const { compile } = createSchemas();
    if (value === undefined) {
      assert.throws(() => compile(schema), { code: "invalid_schema" });
      return;
    }
    const check = compile(schema);
    let deep: Json = Array(value[1]).fill(1);
    for (let i = 1; i < value[0]; i++) deep = [deep];

    assert.deepEqual(check(deep), [{ path: "", message: TOO_MUCH }]);
    assert.deepEqual(check([]), []);
  });
}

Deno.test("a large value is given more steps than a small one", () => {
  const row = { type: "object", required: ["id"], properties: { id: { type: "integer" } } };
  const check = createSchemas().compile({ items: { ...row, additionalProperties: false } });
  const rows = Array.from({ length: 150_000 }, (_, id): Json => ({ id }));

  assert.deepEqual(check(rows), []);
  assert.equal(check([...rows, { id: "x" }])[0]!.path, "/150000/id");
});

for (
  const [name, schema, why] of [
    ["look-ahead", { pattern: "^(?=.*[A-Z]).+$" }, /the pattern "\^\(\?=.*RE2 expressions/],
    ["a back-reference", { pattern: "(a)\\1" }, /the pattern "\(a\)\\\\1" cannot be checked/],
    ["a count beyond 1,000", { pattern: "^.{1,5000}$" }, /repeat count.*up to 1,000 times/],
    ["a long expression", { pattern: "a".repeat(PATTERN_CHARS_MAX + 1) }, /1000 characters/],
    ["expressions with many instructions", {
      allOf: Array(20).fill(0).map((_, i) => ({ pattern: `((a{9}){10}){9}${i}` })),
    }, new RegExp(`more than ${PATTERN_INSTRUCTIONS_MAX} instructions`)],
    ["many expressions", {
      patternProperties: byName(SCHEMA_PATTERNS_MAX + 1, () => true),
    }, /more than 100 expressions/],
    ["many subschemas", { properties: byName(SUBSCHEMAS_MAX, () => ({})) }, /500 subschemas/],
    ["many references", {
      properties: byName(SCHEMA_REFS_MAX + 1, () => ({ $ref: "#/$defs/a" })),
      $defs: { a: { type: "string" } },
    }, /more than 250 references/],
  ] as [string, Json, RegExp][]
) {
  Deno.test(`a schema with ${name} is refused with the reason`, () => {
    assert.throws(() => createSchemas().compile(schema), { code: "invalid_schema", message: why });
  });
}

Deno.test("a schema as large as allowed is usable", () => {
  const check = createSchemas().compile({
    properties: byName(SUBSCHEMAS_MAX - 1, () => ({ type: "integer" })),
  });

  assert.deepEqual(check({ p1: 1 }), []);
  assert.equal(check({ p1: "x" })[0]!.path, "/p1");
});

Deno.test("a check is compiled again when others have taken its place", () => {
  const { compile } = createSchemas();
  const large = () => compile({ properties: byName(SUBSCHEMAS_MAX - 1, () => ({ minimum: 1 })) });
  const check = compile(PAIR);
  const others = Array.from({ length: COMPILED_SUBSCHEMAS_MAX / SUBSCHEMAS_MAX }, large);

  assert.deepEqual(check({ a: 1, b: 2 }), []);
  assert.equal(check({ a: 1 }).length, 1);
  assert.equal(others[0]!({ p1: 0 }).length, 1);
});

Deno.test("an error is bounded, however long the name of a member is", () => {
  const check = createSchemas().compile({ additionalProperties: false, properties: {} });
  const nested = createSchemas().compile({ additionalProperties: { type: "string" } });
  const value = { ["k".repeat(1_000_000)]: 1 };

  assert.equal(check(value)[0]!.message.length, VALIDATION_TEXT_CHARS_MAX + 1);
  assert.equal(nested(value)[0]!.path.length, VALIDATION_TEXT_CHARS_MAX + 1);
});

for (
  const [schema, good, bad] of [
    [{ minLength: 2 }, ["ab", "😀b", "abc"], ["a", "😀"]],
    [{ maxLength: 2 }, ["ab", "😀😀", ""], ["abc", "😀😀b"]],
    [{ enum: [1, null, "a", [1], { a: [1], b: {} }] }, [1, null, [1], { b: {}, a: [1] }], [
      2,
      [1, 1],
      { a: [1] },
      { a: [1], b: {}, c: 1 },
      { a: [1], b: [] },
      undefined,
    ]],
    [{ const: { a: 1 } }, [{ a: 1 }], [{ a: 2 }, {}, [], null, { a: 1, b: 1 }]],
  ] as [Json, Json[], Json[]][]
) {
  Deno.test(`${JSON.stringify(schema)} is checked as the standard says`, () => {
    const check = createSchemas().compile(schema);

    assert.deepEqual(good.filter((value) => check(value).length > 0), []);
    assert.deepEqual(bad.filter((value) => check(value).length === 0), []);
  });
}

/** So many members, of which each has a value. */
function byName(count: number, value: (at: number) => Json): Json {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, value(i)]));
}
