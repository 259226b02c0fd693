import assert from "node:assert/strict";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { FunctionSchema, SchemaComponents } from "./schemas.ts";

/** What a part of a schema becomes, and the components beside it. */
function describe(root: Json, part?: Json, charsMax = 100_000) {
  const components = new SchemaComponents(charsMax);
  const schema = new FunctionSchema(root, "a::b", components);
  const embedded = schema.embed(part ?? root);
  const members = [...components.take()];
  return { embedded, schemas: JSON.parse(`{${members.join(",")}}`), components };
}

Deno.test("definitions that are referred to become components, others are left out", () => {
  const $defs = { Line: { type: "object" }, Unused: { type: "string" } };

  const { embedded, schemas } = describe({ $defs, items: { $ref: "#/$defs/Line" } });

  assert.deepEqual(embedded, { items: { $ref: "#/components/schemas/a_b_Line" } });
  assert.deepEqual(schemas, { a_b_Line: { type: "object" } });
});

Deno.test("a schema that contains itself becomes one component", () => {
  const root = { properties: { next: { $ref: "#" }, first: { $ref: "#/properties/next" } } };

  const { embedded, schemas } = describe(root);

  const next = { $ref: "#/components/schemas/a_b" };
  const first = { $ref: "#/components/schemas/a_b_next" };
  assert.deepEqual(embedded, { properties: { next, first } });
  assert.deepEqual(schemas, { a_b: { properties: { next, first } }, a_b_next: next });
});

Deno.test("pointers are unescaped, anchors and the schema's own id are found", () => {
  const root = {
    $id: "https://x.example/s",
    $defs: { "a/b~c d": { type: "string" }, two: { $anchor: "second", type: "number" } },
    anyOf: [
      { $ref: "#/$defs/a~1b~0c%20d" },
      { $ref: "#second" },
      { $ref: "https://x.example/s#/$defs/two" },
    ],
  };

  const { embedded, schemas } = describe(root);

  const second = { $ref: "#/components/schemas/a_b_second" };
  assert.deepEqual(embedded, {
    anyOf: [{ $ref: "#/components/schemas/a_b_a_1b_0c_20d" }, second, second],
  });
  assert.deepEqual(schemas, {
    a_b_a_1b_0c_20d: { type: "string" },
    a_b_second: { type: "number" },
  });
});

Deno.test("what refers to another document or to nothing allows anything, and says so", () => {
  const root = { anyOf: [{ $ref: "https://evil.example/x.json" }, { $ref: "#/$defs/none" }] };

  const { embedded } = describe(root);

  assert.deepEqual(embedded, {
    anyOf: [
      { $comment: "refers to https://evil.example/x.json, which this document does not have" },
      { $comment: "refers to #/$defs/none, which this document does not have" },
    ],
  });
});

Deno.test("references that only lead to each other end", () => {
  const root = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" };
  const schema = new FunctionSchema(root, "f", new SchemaComponents(1_000));

  assert.deepEqual(schema.root, {});
  assert.equal(schema.member(root, "x"), undefined);
  const { embedded, schemas } = describe(root);
  const $comment = "refers to #/$defs/a, which this document does not have";
  assert.deepEqual([embedded, schemas], [{ $comment }, {}]);
});

Deno.test("data and names that look like keywords are kept as they are", () => {
  const root = JSON.parse(
    `{"properties":{"$ref":{"const":{"$ref":"#/$defs/a"}},"__proto__":{"type":"string"},
      "$defs":{"enum":[{"$ref":"#"}]}},"default":{"items":[1]}}`,
  );

  const { embedded, schemas } = describe(root);

  assert.equal(JSON.stringify(embedded), JSON.stringify(root));
  assert.deepEqual(schemas, {});
});

Deno.test("keywords with values that no schema may have are left out", () => {
  const root = {
    type: "strange",
    properties: [1],
    anyOf: {},
    allOf: [],
    items: [{ type: "string" }],
    required: "x",
    minimum: "1",
    not: 3,
    constructor: 1,
    description: "kept",
  };

  const { embedded } = describe(root);

  assert.deepEqual(embedded, {
    prefixItems: [{ type: "string" }],
    constructor: 1,
    description: "kept",
  });
});

Deno.test("a boolean schema stays one, and anything else allows anything", () => {
  assert.equal(describe(false).embedded, false);
  assert.deepEqual(describe("text").embedded, {});
  assert.deepEqual(describe({ $defs: { no: false }, $ref: "#/$defs/no" }).embedded, { not: {} });
});

Deno.test("member() looks behind references and into allOf; requires() as well", () => {
  const base = { required: ["id"], properties: { id: { type: "string" } } };
  const root = { $defs: { base }, allOf: [{ $ref: "#/$defs/base" }, { properties: { n: true } }] };
  const schema = new FunctionSchema(root, "f", new SchemaComponents(1_000));

  assert.deepEqual(schema.member(root, "id"), { type: "string" });
  assert.equal(schema.member(root, "toString"), undefined);
  assert.deepEqual([...schema.members(root).keys()], ["id", "n"]);
  assert.ok(schema.requires(root, "id"));
  assert.ok(!schema.requires(root, "n"));
});

Deno.test("components have names of their own, and what does not fit is left out", () => {
  const components = new SchemaComponents(200);
  const part = { properties: { text: { const: "x".repeat(90) } } };
  const names = ["f", "f", "f"].map((name) => components.add(name, () => part));
  const texts = [...components.take()];

  assert.deepEqual(names, ["f", "f_2", "f_3"]);
  assert.deepEqual(texts.map((text) => text.includes("schema_left_out")), [false, true, true]);
  assert.ok(components.hasLeftOut);
  assert.match(components.leftOut(), /^"schema_left_out":\{/);
});

Deno.test("after some components that do not fit no others are written", () => {
  const components = new SchemaComponents(20_000);
  let written = 0;
  for (let i = 0; i < 1_000; i++) {
    components.add("f", () => {
      written++;
      return { const: "x".repeat(15_000) };
    });
  }

  assert.equal([...components.take()].length, 1_000);
  assert.ok(written < 30, `${written} were written`);
});

Deno.test("when the room is used up, all further parts share one component", () => {
  const components = new SchemaComponents(0);
  const schema = new FunctionSchema({ a: {} }, "f", components);

  const ref = schema.component({ properties: { a: { type: "string" } } }, "body");

  assert.deepEqual(ref, { $ref: "#/components/schemas/schema_left_out" });
  assert.deepEqual([...components.take()], []);
});
