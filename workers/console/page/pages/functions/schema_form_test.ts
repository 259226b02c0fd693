import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type Field, fieldOf } from "./schema_form.ts";

/** Kinds of the members, such as `a: text!` for a required one. */
function kinds(schema: Json): string[] {
  const field = fieldOf(schema);
  if (field.kind !== "object") return [field.kind];
  return field.members.map(({ name, required, field }) =>
    `${name}: ${kindOf(field)}${field.nullable ? "?" : ""}${required ? "!" : ""}`
  );
}

function kindOf(field: Field): string {
  if (field.kind === "list") return `list of ${kindOf(field.item)}`;
  if (field.kind === "choice") return field.options.map((each) => JSON.stringify(each)).join("|");
  if (field.kind === "object") return `{${field.members.map(({ name }) => name).join(",")}}`;
  if (field.kind === "number" && field.isWhole) return "integer";
  return field.kind;
}

Deno.test("each plain type has its field", () => {
  const schema = {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string" },
      n: { type: "integer" },
      x: { type: "number" },
      on: { type: "boolean" },
      size: { enum: ["s", 2, null] },
      fixed: { const: "v1" },
      tags: { type: "array", items: { type: "string" } },
      at: { type: "object", properties: { lat: {}, lon: {} } },
      any: {},
      map: { type: "object", additionalProperties: { type: "string" } },
      pair: { type: "array", prefixItems: [{ type: "string" }] },
    },
  };

  assert.deepEqual(kinds(schema), [
    "name: text!",
    "n: integer",
    "x: number",
    "on: flag",
    'size: "s"|2|null',
    'fixed: "v1"',
    "tags: list of text",
    "at: {lat,lon}",
    "any: json",
    "map: json",
    "pair: json",
  ]);
});

Deno.test("a shape or null is the field of the shape, however it is written", () => {
  const schema = {
    properties: {
      zod: { anyOf: [{ type: "string" }, { type: "null" }] },
      plain: { type: ["integer", "null"] },
      referred: { anyOf: [{ $ref: "#/$defs/Size" }, { type: "null" }], default: null },
      several: { anyOf: [{ type: "string" }, { type: "integer" }] },
      choice: { oneOf: [{ const: "a" }, { const: "b" }] },
    },
    $defs: { Size: { type: "string", enum: ["s", "m"] } },
  };

  assert.deepEqual(kinds(schema), [
    "zod: text?",
    "plain: integer?",
    'referred: "s"|"m"?',
    "several: json",
    'choice: "a"|"b"',
  ]);
});

Deno.test("allOf is one form", () => {
  const schema = {
    allOf: [{ $ref: "#/$defs/base" }, { properties: { b: { type: "string" } }, required: ["b"] }],
    $defs: { base: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } },
  };

  assert.deepEqual(kinds(schema), ["a: integer!", "b: text!"]);
});

Deno.test("a schema that refers to itself ends in JSON text", () => {
  const schema = { type: "object", properties: { child: { $ref: "#" } } };

  let field = fieldOf(schema);
  let levels = 0;
  while (field.kind === "object") {
    field = field.members[0]!.field;
    levels++;
  }

  assert.equal(field.kind, "json");
  assert.equal(levels, 5);
});

Deno.test("a schema whose members multiply makes a form of bounded size", () => {
  const names = Array.from({ length: 30 }, (_, i) => [`m${i}`, { $ref: "#" }]);
  const count = (field: Field): number =>
    field.kind === "object" ? field.members.reduce((n, { field }) => n + count(field), 1) : 1;

  const fields = count(fieldOf({ type: "object", properties: Object.fromEntries(names) }));

  assert.ok(fields < 5_000, `${fields} fields`);
});

Deno.test("what is no schema is one field of JSON", () => {
  for (const schema of [undefined, null, true, 3, "x", [], { type: "array", items: 5 }.items]) {
    assert.deepEqual(kinds(schema as Json), ["json"]);
  }
});

Deno.test("hints say what a person has to know and not the bounds of the language", () => {
  const hints = (schema: Json) => fieldOf(schema).hint;

  assert.equal(hints({ type: "integer", minimum: 1, maximum: 9 }), "integer, 1 to 9");
  const zod = { type: "integer", minimum: -(2 ** 53) + 1, maximum: 2 ** 53 - 1 };
  assert.equal(hints(zod), "integer");
  assert.equal(
    hints({ type: "string", format: "email", maxLength: 9 }),
    "text, email, at most 9 characters",
  );
  assert.equal(hints({ type: "string", pattern: "^a+$" }), "text, like ^a+$");
});

Deno.test("descriptions and defaults are kept, titles stand in for descriptions", () => {
  assert.equal(fieldOf({ type: "string", description: "Whom" }).description, "Whom");
  assert.equal(fieldOf({ type: "string", title: "Who" }).description, "Who");
  assert.equal(fieldOf({ type: "integer", default: 7 }).preset, 7);
});
