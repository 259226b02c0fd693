import assert from "node:assert/strict";
import type { Json } from "../../mod.ts";
import { acceptsNull, Names, readSchema, type Shape, typeName, union } from "./shape.ts";

function read(schema: Json | undefined) {
  const { shape, definitions } = readSchema(schema, "Root", new Names([]));
  return { shape, definitions: Object.fromEntries(definitions.map((each) => [each.name, each])) };
}

const STRING: Shape = { kind: "string" };
const NULL: Shape = { kind: "null" };

Deno.test("typeName() makes a name of any id", () => {
  const names = ["math::add", "my-shop::price.of", "1st", "", "größe::über", "a::b_c"].map(
    typeName,
  );

  assert.deepEqual(names, ["MathAdd", "MyShopPriceOf", "F1st", "F", "GrößeÜber", "AB_c"]);
});

Deno.test("a schema that says nothing is unknown, one that accepts nothing is never", () => {
  for (const schema of [undefined, null, true, {}, 5, { type: "decimal" }, { not: {} }] as Json[]) {
    assert.deepEqual(read(schema).shape, { kind: "unknown" });
  }
  assert.deepEqual(read(false).shape, { kind: "never" });
});

Deno.test("simple types stay without a name", () => {
  assert.deepEqual(read({ type: "integer", minimum: 1 }).shape, { kind: "integer" });
  assert.deepEqual(read({ type: ["string", "null"] }).shape, { kind: "union", of: [STRING, NULL] });
  assert.deepEqual(read({ type: "string", nullable: true }).shape, {
    kind: "union",
    of: [STRING, NULL],
  });
  assert.deepEqual(read({ enum: [true, false] }).shape, { kind: "boolean" });
  assert.deepEqual(read({ const: "a" }).shape, { kind: "literal", value: "a" });
  assert.deepEqual(read({ items: STRING, type: "array" }).shape, {
    kind: "array",
    items: { kind: "unknown" },
  });
  assert.deepEqual(read({ anyOf: [{ type: "integer" }, { type: "number" }] }).shape, {
    kind: "number",
  });
});

Deno.test("objects get names, with their members, also those that are only required", () => {
  const { shape, definitions } = read({
    type: "object",
    description: "An order",
    properties: { at: { properties: { x: { type: "number", default: 1 } } } },
    required: ["id"],
    additionalProperties: { type: "string" },
  });

  assert.deepEqual(shape, { kind: "named", name: "Root" });
  const { Root, RootAt } = definitions;
  assert.equal(Root!.doc, "An order");
  assert.deepEqual(Root!.shape, {
    kind: "object",
    members: [
      { name: "at", shape: { kind: "named", name: "RootAt" }, isRequired: false, doc: "" },
      { name: "id", shape: { kind: "unknown" }, isRequired: true, doc: "" },
    ],
    rest: STRING,
  });
  assert.ok(RootAt!.shape.kind === "object");
  assert.equal(RootAt!.shape.members[0]!.doc, "Default: 1");
});

Deno.test("allOf is one object, and a member in both is of both types", () => {
  const { definitions } = read({
    $defs: { named: { type: "object", properties: { name: { type: "string" } } } },
    allOf: [{ $ref: "#/$defs/named" }, { properties: { age: { type: "integer" } } }],
    required: ["name"],
    properties: { name: true },
  });

  const { shape } = definitions.Root!;
  assert.ok(shape.kind === "object");
  assert.deepEqual(
    shape.members.map(({ name, shape, isRequired }) => [name, shape.kind, isRequired]),
    [
      ["name", "string", true],
      ["age", "integer", false],
    ],
  );
});

Deno.test("references may be recursive, escaped, anchored, or lead nowhere", () => {
  const { shape, definitions } = read({
    $ref: "#/$defs/a~1b%20c",
    $defs: {
      "a/b c": { type: "object", properties: { next: { $ref: "#/$defs/a~1b%20c" } } },
    },
  });
  assert.deepEqual(shape, { kind: "named", name: "RootABC" });
  assert.deepEqual(Object.keys(definitions), ["RootABC"]);

  const itself = read({ type: "array", items: { $ref: "#" } });
  assert.deepEqual(itself.definitions.Root!.shape, { kind: "array", items: itself.shape });

  const anchored = read({ $ref: "#x", $defs: { a: { $anchor: "x", type: "string" } } });
  assert.deepEqual(anchored.definitions[(anchored.shape as { name: string }).name]!.shape, STRING);

  for (const $ref of ["#/nowhere", "https://example.com/a.json", "#/%E0%A4%A"]) {
    assert.deepEqual(read({ $ref }).shape, { kind: "unknown" });
  }
});

Deno.test("a reference that leads to itself only ends", () => {
  const { shape } = read({
    $ref: "#/$defs/a",
    $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } },
  });

  assert.equal(shape.kind, "named");
});

Deno.test("a schema that is too deep ends as unknown", () => {
  let schema: Json = { type: "string" };
  for (let i = 0; i < 5_000; i++) schema = { type: "array", items: schema };

  assert.equal(read(schema).shape.kind, "array");
});

Deno.test("tuples have a type for each place, in both ways to write them", () => {
  const pair = [{ type: "string" }, { type: "null" }];
  const tuple = (least: number, rest?: Shape) => ({
    kind: "tuple",
    items: [STRING, NULL],
    least,
    rest,
  });

  const found = [
    { prefixItems: pair },
    { type: "array", items: pair, additionalItems: { type: "string" } },
    { prefixItems: pair, minItems: 1, items: false },
  ].map((schema) => read(schema).definitions.Root!.shape);

  assert.deepEqual(found, [tuple(2), tuple(2, STRING), tuple(1)]);
});

Deno.test("union() joins what is equal, and ends with the widest", () => {
  assert.deepEqual(union([STRING, STRING]), STRING);
  assert.deepEqual(union([STRING, { kind: "unknown" }]), { kind: "unknown" });
  assert.deepEqual(union([]), { kind: "never" });
  assert.deepEqual(union([STRING, { kind: "union", of: [NULL, STRING] }]), {
    kind: "union",
    of: [STRING, NULL],
  });
});

Deno.test("acceptsNull() follows names", () => {
  const nullable = { kind: "union", of: [STRING, NULL] } as const;
  const definitions = new Map([["A", { name: "A", shape: nullable, doc: "" }]]);

  assert.equal(acceptsNull({ kind: "named", name: "A" }, definitions), true);
  assert.equal(acceptsNull({ kind: "named", name: "B" }, definitions), false);
  assert.equal(acceptsNull(STRING, definitions), false);
});

Deno.test("Names.add() gives a number to a name that is taken", () => {
  const names = new Names(["Api"]);

  assert.deepEqual(["Api", "Api", "B"].map((name) => names.add(name)), ["Api2", "Api3", "B"]);
});
