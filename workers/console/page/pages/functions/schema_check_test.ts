import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { resolveSchema, validate } from "./schema_check.ts";
import { sameJson } from "../../kit/json.ts";

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

Deno.test("a value that fits has no errors", () => {
  const value = { sku: "tea", qty: 3, size: "m", tags: ["a"], price: 1.5 };

  assert.deepEqual(say(ORDER, value), []);
});

Deno.test("every misfit is given with its place", () => {
  const value = { sku: "t", qty: 11.5, size: "x", tags: ["a", 1, "c"], price: 9, color: "red" };

  assert.deepEqual(say(ORDER, value), [
    "sku must have at least 2 characters",
    "qty must be an integer",
    'size must be one of "s", "m"',
    "tags must have at most 2 items",
    "tags/1 must be a string",
    "price must be less than 9",
    "color is not known to this function",
  ]);
});

Deno.test("bounds of numbers and texts hold on both sides", () => {
  assert.deepEqual(say(ORDER, { sku: "12345", qty: 0, price: 0 }), [
    "sku must have at most 4 characters",
    "qty must be at least 1",
    "price must be more than 0",
  ]);
  assert.deepEqual(say(ORDER, { sku: "éé", qty: 11 }), ["qty must be at most 10"]);
});

Deno.test("members that are required and not there are named", () => {
  assert.deepEqual(say(ORDER, {}), ["sku is required", "qty is required"]);
  assert.deepEqual(say({ type: "string" }, undefined), [" is required"]);
});

Deno.test("members named like those of every object are not taken for given", () => {
  const schema = { required: ["constructor", "toString"], properties: {} };

  assert.deepEqual(say(schema, {}), ["constructor is required", "toString is required"]);
  assert.deepEqual(
    say({ properties: {}, additionalProperties: false }, JSON.parse('{"__proto__":1}')),
    ["__proto__ is not known to this function"],
  );
});

Deno.test("an alternative fits when one branch does", () => {
  const schema = { anyOf: [{ type: "string" }, { type: "null" }] };

  assert.deepEqual(say(schema, null), []);
  assert.deepEqual(say(schema, "a"), []);
  assert.deepEqual(say(schema, 4), [" must be a string or null"]);
});

Deno.test("of alternatives the one that came closest says what is wrong", () => {
  const schema = {
    oneOf: [
      { type: "object", properties: { kind: { const: "a" }, n: { type: "number" } } },
      { type: "string" },
    ],
  };

  assert.deepEqual(say(schema, { kind: "a", n: "x" }), ["n must be a number"]);
});

Deno.test("local references are followed, with escapes and what stands beside them", () => {
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

Deno.test("references in circles end, and so does deep nesting", () => {
  const circle = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  assert.equal(resolveSchema(circle, { $ref: "#/$defs/a" }), true);

  const endless = { allOf: [{ $ref: "#" }] };
  assert.deepEqual(say(endless, 1), []);
  let deep: Json = 1;
  for (let i = 0; i < 5_000; i++) deep = [deep];
  assert.deepEqual(say({ items: { $ref: "#" } }, deep), []);
});

Deno.test("alternatives that double at each level end in time", () => {
  const both = [{ $ref: "#" }, { $ref: "#" }];

  assert.deepEqual(say({ anyOf: both, oneOf: both }, 1), []);
});

Deno.test("a flood of errors is cut", () => {
  const value = Array.from({ length: 5_000 }, () => 1);

  assert.equal(validate({ items: { type: "string" } }, value).length, 20);
});

Deno.test("schemas that are no schemas fit everything, and false fits nothing", () => {
  for (const schema of [null, 4, "x", [], true, { type: 7 }, { properties: 3, required: 9 }]) {
    assert.deepEqual(say(schema, { a: 1 }), []);
  }
  assert.deepEqual(say(false, 1), [" is not allowed here"]);
});

Deno.test("equality of JSON ignores the order of members and nothing else", () => {
  assert.equal(sameJson({ a: 1, b: [2] }, { b: [2], a: 1 }), true);
  assert.equal(sameJson({ a: 1 }, { a: 1, b: 2 }), false);
  assert.equal(sameJson([1, 2], [2, 1]), false);
  assert.equal(sameJson({ a: 1 }, { toString: 1 }), false);
  assert.equal(sameJson([], {}), false);
});
