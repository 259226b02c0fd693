import assert from "node:assert/strict";
import {
  CHECK_STEPS,
  countParts,
  meterSchema,
  OutOfSteps,
  Steps,
  STEPS_KEYWORD,
} from "./schema_steps.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

Deno.test("meterSchema() puts a count into each subschema that has a rule, and keeps all others", () => {
  const { schema, subschemas } = meterSchema({
    $defs: { any: {}, text: { type: "string", description: "x" } },
    items: { $ref: "#/$defs/text" },
    additionalProperties: false,
  });

  const { $defs, items } = schema as unknown as Record<string, Record<string, JsonObject>>;
  assert.deepEqual($defs!.any, {});
  assert.deepEqual(Object.keys($defs!.text!), ["type", STEPS_KEYWORD]);
  assert.ok(STEPS_KEYWORD in items!);
  assert.equal(subschemas, 4);
});

Deno.test("meterSchema() takes values of enum and const, and unknown keywords, out of the schema", () => {
  const { schema, allowed } = meterSchema({
    enum: [{ $ref: "#" }],
    "x-widget": { items: { $ref: "#/x-widget" } },
    properties: { enum: { const: "enum" } },
  });

  assert.deepEqual(allowed, [[{ $ref: "#" }], "enum"]);
  const { enum: at, properties } = schema as { enum: number; properties: { enum: JsonObject } };
  assert.equal(at, 0);
  assert.equal(properties.enum.const, 1);
  assert.ok(!("x-widget" in (schema as JsonObject)));
});

Deno.test("meterSchema() keeps a property that is named like the prototype", () => {
  const raw = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as JsonObject;

  const { properties } = meterSchema(raw).schema as { properties: JsonObject };

  assert.ok(Object.hasOwn(properties, "__proto__"));
});

Deno.test("Steps ends a check that takes more than it has, and forgets it with the next", () => {
  const steps = new Steps();

  steps.start(1, 100, false);
  steps.take(100);
  assert.throws(() => steps.take(1), OutOfSteps);

  steps.start(1, 100, false);
  steps.take(60);
  steps.giveBack(50);
  steps.take(90);
  assert.equal(steps.left, 0);
});

Deno.test("Steps adds steps for the parts of a large value, once", () => {
  const steps = new Steps();
  const value: Json = Array(1_000).fill(1);

  steps.start(value, 100, true);
  steps.take(10_000);

  assert.throws(() => steps.take(10_000), OutOfSteps);
});

Deno.test("Steps.apply() counts items and members that a subschema reads", () => {
  const steps = new Steps();
  const value = { a: 1, b: 2, ["n".repeat(100)]: 3 };
  const taken = (items: number, members: number, nested: number, data: unknown): number => {
    steps.start(null, CHECK_STEPS, false);
    steps.apply([1, items, members, nested], data);
    return CHECK_STEPS - steps.left;
  };

  assert.equal(taken(0, 0, 5, value), 1);
  assert.equal(taken(0, 0, 5, [1, 2, 3]), 1);
  assert.ok(taken(1, 0, 5, [1, 2, 3]) > 3);
  assert.equal(taken(0, 2, 5, value) - taken(0, 2, 0, value), 500);
  assert.equal(taken(0, 2, 0, value) - 1, 2 * (taken(0, 1, 0, value) - 1));
});

Deno.test("countParts() counts all values up to a bound", () => {
  const value: Json = { a: [1, 2, { b: null }], c: "x" };

  assert.equal(countParts(value, 100), 7);
  assert.equal(countParts(1, 100), 1);
  assert.ok(countParts(Array(1_000).fill([1, 2]), 50) < 60);
});
