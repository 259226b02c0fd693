import assert from "node:assert/strict";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import { resolveSchema, validate } from "./schema_check.ts";
import { sameJson } from "./json.ts";

const ORDER: Json = {
  type: "object",
  required: ["sku", "qty"],
  additionalProperties: false,
  properties: {
    sku: { type: "string", minLength: 2, maxLength: 4 },
    qty: { type: "integer", minimum: 1, maximum: 10 },
    size: { enum: ["s", "m"] },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    price: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 9 },
  },
};

function say(schema: Json, value: Json | undefined): string[] {
  return validate(schema, value).map(({ path, message }) => `${path.join("/")} ${message}`);
}

Deno.test("validate() of a valid value has no errors", () => {
  const value = { sku: "tea", qty: 3, size: "m", tags: ["a"], price: 1.5 };

  assert.deepEqual(say(ORDER, value), []);
});

Deno.test("validate() reports every error with its path", () => {
  const value = { sku: "t", qty: 11.5, size: "x", tags: ["a", 1, "c"], price: 9, color: "red" };

  assert.deepEqual(say(ORDER, value), [
    "sku must have at least 2 characters",
    "qty must be an integer",
    'size must be one of "s", "m"',
    "tags must have at most 2 items",
    "tags/1 must be a string",
    "price must be less than 9",
    "color is not known here",
  ]);
});

Deno.test("validate() checks bounds of numbers and texts on both sides", () => {
  assert.deepEqual(say(ORDER, { sku: "12345", qty: 0, price: 0 }), [
    "sku must have at most 4 characters",
    "qty must be at least 1",
    "price must be more than 0",
  ]);
  assert.deepEqual(say(ORDER, { sku: "éé", qty: 11 }), ["qty must be at most 10"]);
});

Deno.test("validate() reports missing required members", () => {
  assert.deepEqual(say(ORDER, {}), ["sku is required", "qty is required"]);
  assert.deepEqual(say({ type: "string" }, undefined), [" is required"]);
});

Deno.test("validate() does not find required members in the prototype", () => {
  const schema = { required: ["constructor", "toString"], properties: {} };

  assert.deepEqual(say(schema, {}), ["constructor is required", "toString is required"]);
  assert.deepEqual(
    say({ properties: {}, additionalProperties: false }, JSON.parse('{"__proto__":1}')),
    ["__proto__ is not known here"],
  );
});

Deno.test("validate() accepts an alternative if one branch is valid", () => {
  const schema = { anyOf: [{ type: "string" }, { type: "null" }] };

  assert.deepEqual(say(schema, null), []);
  assert.deepEqual(say(schema, "a"), []);
  assert.deepEqual(say(schema, 4), [" must be a string or null"]);
});

Deno.test("validate() reports the errors of the closest alternative", () => {
  const schema = {
    oneOf: [
      { type: "object", properties: { kind: { const: "a" }, n: { type: "number" } } },
      { type: "string" },
    ],
  };

  assert.deepEqual(say(schema, { kind: "a", n: "x" }), ["n must be a number"]);
});

Deno.test("validate() follows local references, with escapes and siblings", () => {
  const schema = {
    $defs: { "a/b": { type: "integer" } },
    properties: { n: { $ref: "#/$defs/a~1b", minimum: 3 }, self: { $ref: "#" } },
  };

  assert.deepEqual(say(schema, { n: 1, self: { n: "x" } }), [
    "n must be at least 3",
    "self/n must be an integer",
  ]);
  assert.deepEqual(resolveSchema(schema, { $ref: "#/$defs/none" }), true);
  assert.deepEqual(resolveSchema(schema, { $ref: "https://example.com/a.json" }), true);
});

Deno.test("validate() ends on circular references and deep nesting", () => {
  const circle = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  assert.equal(resolveSchema(circle, { $ref: "#/$defs/a" }), true);

  const endless = { allOf: [{ $ref: "#" }] };
  assert.deepEqual(say(endless, 1), []);
  let deep: Json = 1;
  for (let i = 0; i < 5_000; i++) deep = [deep];
  assert.deepEqual(say({ items: { $ref: "#" } }, deep), []);
});

Deno.test("validate() bounds nested alternatives", () => {
  const both = [{ $ref: "#" }, { $ref: "#" }];

  assert.deepEqual(say({ anyOf: both, oneOf: both }, 1), []);
});

Deno.test("validate() bounds the number of errors", () => {
  const value = Array.from({ length: 5_000 }, () => 1);

  assert.equal(validate({ items: { type: "string" } }, value).length, 20);
});

Deno.test("validate() allows everything for invalid schemas, and nothing for false", () => {
  for (const schema of [null, 4, "x", [], true, { type: 7 }, { properties: 3, required: 9 }]) {
    assert.deepEqual(say(schema, { a: 1 }), []);
  }
  assert.deepEqual(say(false, 1), [" is not allowed here"]);
});

Deno.test("sameJson() ignores the order of members and nothing else", () => {
  assert.equal(sameJson({ a: 1, b: [2] }, { b: [2], a: 1 }), true);
  assert.equal(sameJson({ a: 1 }, { a: 1, b: 2 }), false);
  assert.equal(sameJson([1, 2], [2, 1]), false);
  assert.equal(sameJson({ a: 1 }, { toString: 1 }), false);
  assert.equal(sameJson([], {}), false);
});
