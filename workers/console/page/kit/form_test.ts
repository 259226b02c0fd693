import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import {
  type Draft,
  draftOf,
  errorAt,
  fieldOf,
  fitsForm,
  type FormField,
  type ListDraft,
  MASKED,
  type ObjectDraft,
  pathText,
  placeErrors,
  readDraft,
  withDraft,
  withoutSecrets,
} from "./form.ts";
import type { JsonPath } from "./schema_check.ts";

/** Kinds of the members, such as `a: text!` for a required one. */
function kinds(schema: Json): string[] {
  const field = fieldOf(schema);
  if (field.kind !== "object") return [field.kind];
  return field.members.map(({ name, required, field }) =>
    `${name}: ${kindOf(field)}${field.nullable ? "?" : ""}${required ? "!" : ""}`
  );
}

function kindOf(field: FormField): string {
  if (field.kind === "list") return `list of ${kindOf(field.item)}`;
  if (field.kind === "choice") return field.options.map((each) => JSON.stringify(each)).join("|");
  if (field.kind === "object") return `{${field.members.map(({ name }) => name).join(",")}}`;
  if (field.kind === "number" && field.isWhole) return "integer";
  return field.kind;
}

Deno.test("fieldOf() has a field for each plain type", () => {
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

Deno.test("fieldOf() of a nullable schema is the field of the schema, however it is written", () => {
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

Deno.test("fieldOf() merges allOf", () => {
  const schema = {
    allOf: [{ $ref: "#/$defs/base" }, { properties: { b: { type: "string" } }, required: ["b"] }],
    $defs: { base: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } },
  };

  assert.deepEqual(kinds(schema), ["a: integer!", "b: text!"]);
});

Deno.test("fieldOf() of a recursive schema ends in JSON text", () => {
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

Deno.test("fieldOf() bounds the number of fields", () => {
  const names = Array.from({ length: 30 }, (_, i) => [`m${i}`, { $ref: "#" }]);
  const count = (field: FormField): number =>
    field.kind === "object" ? field.members.reduce((n, { field }) => n + count(field), 1) : 1;

  const fields = count(fieldOf({ type: "object", properties: Object.fromEntries(names) }));

  assert.ok(fields < 5_000, `${fields} fields`);
});

Deno.test("fieldOf() of an invalid schema is one field of JSON", () => {
  for (const schema of [undefined, null, true, 3, "x", [], { type: "array", items: 5 }.items]) {
    assert.deepEqual(kinds(schema as Json), ["json"]);
  }
});

Deno.test("fieldOf() leaves bounds of the language out of hints", () => {
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

Deno.test("fieldOf() keeps descriptions and defaults, and uses titles as descriptions", () => {
  assert.equal(fieldOf({ type: "string", description: "Whom" }).description, "Whom");
  assert.equal(fieldOf({ type: "string", title: "Who" }).description, "Who");
  assert.equal(fieldOf({ type: "integer", default: 7 }).preset, 7);
});

const SCHEMA: Json = {
  type: "object",
  required: ["sku", "qty"],
  properties: {
    sku: { type: "string" },
    qty: { type: "integer", minimum: 1 },
    gift: { type: "boolean" },
    note: { type: ["string", "null"] },
    size: { enum: ["s", 2] },
    at: { type: "object", required: ["lat"], properties: { lat: { type: "number" } } },
    lines: { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } },
    extra: {},
  },
};
const FORM = fieldOf(SCHEMA);

/** The draft after a person typed these, in order. */
function typed(...entries: [JsonPath, Draft][]): Draft {
  return entries.reduce<Draft>(
    (draft, [path, value]) => withDraft(FORM, draft, path, value),
    draftOf(FORM, undefined),
  );
}

function read(draft: Draft): { payload: Json | undefined; problems: string[] } {
  const { payload, problems } = readDraft(SCHEMA, FORM, draft);
  return {
    payload,
    problems: problems.map(({ path, message }) => `${pathText(path)} ${message}`),
  };
}

Deno.test("readDraft() makes a payload of what was typed only", () => {
  const draft = typed(
    [["sku"], "tea"],
    [["qty"], " 3 "],
    [["gift"], "true"],
    [["size"], "2"],
    [["at", "lat"], "1.5e1"],
    [["lines", 0, "n"], "1"],
    [["extra"], '{"a":[1]}'],
  );

  assert.deepEqual(read(draft), {
    payload: {
      sku: "tea",
      qty: 3,
      gift: true,
      size: 2,
      at: { lat: 15 },
      lines: [{ n: 1 }],
      extra: { a: [1] },
    },
    problems: [],
  });
});

Deno.test("readDraft() of an empty form reports required members, not those of optional objects", () => {
  assert.deepEqual(read(typed()), {
    payload: {},
    problems: ["sku is required", "qty is required"],
  });
});

Deno.test("readDraft() reports invalid numbers by path, with all other errors", () => {
  for (const text of ["abc", "1,5", "0x10", "Infinity", "--1", "1 2", "NaN", "1e999"]) {
    assert.deepEqual(read(typed([["qty"], text])).problems, [
      "qty must be a number",
      "sku is required",
    ]);
  }
  const half = read(typed([["sku"], "a"], [["qty"], "1.5"]));
  assert.deepEqual(half.problems, ["qty must be a whole number"]);
  const long = read(typed([["sku"], "a"], [["qty"], "12345678901234567890"]));
  assert.deepEqual(long.problems, ["qty has more digits than a number in JSON keeps"]);
  const low = read(typed([["sku"], "a"], [["qty"], "0"]));
  assert.deepEqual(low.problems, ["qty must be at least 1"]);
});

Deno.test("readDraft() reports invalid JSON by path", () => {
  const draft = typed([["sku"], "a"], [["qty"], "1"], [["extra"], "{a:1}"]);

  assert.match(read(draft).problems.join(), /^extra is not JSON: /);
});

Deno.test("readDraft() reports which item of a list is empty", () => {
  const form = fieldOf({ type: "array", items: { type: "integer" } });
  const draft: Draft = { kind: "list", items: ["1", undefined, "x"] };

  const { problems } = readDraft(undefined, form, draft);

  assert.equal(errorAt(problems, [0]), undefined);
  assert.equal(errorAt(problems, [1]), "is empty; fill it in or remove it");
  assert.equal(errorAt(problems, [2]), "must be a number");
});

Deno.test("readDraft() requires the members of an optional object that has one", () => {
  const schema: Json = {
    properties: {
      at: {
        type: "object",
        required: ["lat", "lon"],
        properties: { lat: { type: "number" }, lon: { type: "number" } },
      },
    },
  };
  const form = fieldOf(schema);
  const empty = draftOf(form, undefined);

  assert.deepEqual(readDraft(schema, form, empty), { payload: {}, problems: [] });
  const half = withDraft(form, empty, ["at", "lat"], "1");
  assert.deepEqual(readDraft(schema, form, half).problems, [
    { path: ["at", "lon"], message: "is required" },
  ]);
});

Deno.test("fitsForm() holds for values that the form returns unchanged", () => {
  const values: Json[] = [
    {},
    { sku: "", qty: 1, note: null },
    { sku: "12", qty: 0, at: {}, lines: [], unknown: { deep: [1] } },
    { at: { lat: 1, more: true }, lines: [{ n: 1 }, { n: 2, x: "y" }], extra: "text" },
    JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
  ];

  for (const value of values) {
    assert.equal(fitsForm(FORM, value), true, JSON.stringify(value));
    const { payload } = readDraft(SCHEMA, FORM, draftOf(FORM, value));
    assert.deepEqual(payload, value);
  }
});

Deno.test("fitsForm() does not hold for values that the form would change", () => {
  for (const value of [[], "text", { at: [1] }, { sku: 12 }, { lines: {} }] as Json[]) {
    assert.equal(fitsForm(FORM, value), false, JSON.stringify(value));
  }
});

Deno.test("withDraft() does not change its argument", () => {
  const before = typed([["sku"], "a"]);

  withDraft(FORM, before, ["sku"], "b");

  assert.equal((read(before).payload as { sku: string }).sku, "a");
});

Deno.test("pathText() reads like JavaScript", () => {
  assert.equal(pathText([]), "payload");
  assert.equal(pathText(["items", 2, "name"]), "items[2].name");
  assert.equal(pathText([0]), "[0]");
});

/** A form of a stored value. */
const STORED: Json = {
  type: "object",
  required: ["port"],
  additionalProperties: { type: "string" },
  properties: {
    port: { type: "integer", minimum: 1 },
    on: { type: "boolean" },
    key: { type: "string", minLength: 20, "x-secret": true },
    db: { "x-secret": true, type: "object", properties: { password: { type: "string" } } },
    hosts: {
      type: "array",
      items: {
        properties: { name: { type: "string" }, token: { anyOf: [{ "x-secret": true }, {}] } },
      },
    },
    any: {},
  },
};
const RULES = { isStored: true };
const STORED_FORM = fieldOf(STORED, RULES);
const STORED_VALUE: Json = {
  port: "${PORT:80}",
  on: "${ON:true}",
  key: MASKED,
  db: MASKED,
  hosts: [{ name: "a", token: MASKED }, { name: "b", token: MASKED }],
  any: { x: MASKED },
  more: "${MORE:x}",
};
const readStored = (draft: Draft) => readDraft(STORED, STORED_FORM, draft, RULES);

Deno.test("a form of a stored value keeps masked secrets, references and further members", () => {
  const draft = draftOf(STORED_FORM, STORED_VALUE);

  assert.deepEqual(readStored(draft), { payload: STORED_VALUE, problems: [] });
  assert.equal(fitsForm(STORED_FORM, STORED_VALUE), true);
});

Deno.test("a secret is replaced, removed or kept", () => {
  const draft = draftOf(STORED_FORM, STORED_VALUE);
  const replaced = withDraft(STORED_FORM, draft, ["key"], "x".repeat(20));
  const short = withDraft(STORED_FORM, draft, ["key"], "short");
  const removed = withDraft(STORED_FORM, draft, ["key"], undefined);
  const opened = withDraft(
    STORED_FORM,
    withDraft(STORED_FORM, draft, ["db"], undefined),
    ["db", "password"],
    "p",
  );

  const read = (draft: Draft) => readStored(draft).payload as JsonObject;
  assert.equal(read(replaced)["key"], "x".repeat(20));
  assert.deepEqual(readStored(short).problems.map(({ path }) => path), [["key"]]);
  assert.equal("key" in read(removed), false);
  assert.deepEqual(read(opened)["db"], { password: "p" });
  assert.equal(read(opened)["key"], MASKED);
});

Deno.test("a kept secret does not move to another item of a list", () => {
  const draft = draftOf(STORED_FORM, STORED_VALUE) as ObjectDraft;
  const hosts = draft.members.get("hosts") as ListDraft;
  const rest = { kind: "list" as const, items: hosts.items.slice(1) };

  const { problems } = readStored(withDraft(STORED_FORM, draft, ["hosts"], rest));

  assert.deepEqual(problems.map(({ path }) => path), [["hosts", 0, "token"]]);
  assert.match(problems[0]!.message, /enter it again/);
});

Deno.test("a reference in the place of a number has to be one", () => {
  const draft = draftOf(STORED_FORM, STORED_VALUE);
  const put = (text: string) =>
    readStored(withDraft(STORED_FORM, draft, ["port"], { kind: "reference", text }));

  assert.equal((put("${HTTP_PORT}").payload as JsonObject)["port"], "${HTTP_PORT}");
  assert.match(put("8080").problems[0]!.message, /must have a reference/);
  assert.equal(fieldOf(STORED).kind === "object" && fitsForm(fieldOf(STORED), STORED_VALUE), false);
});

Deno.test("further members are JSON text, which has to be an object", () => {
  const draft = draftOf(STORED_FORM, STORED_VALUE) as ObjectDraft;
  const put = (restText: string) => readStored({ ...draft, restText });

  assert.deepEqual((put('{"a":"1"}').payload as JsonObject)["a"], "1");
  assert.equal("more" in (put("").payload as JsonObject), false);
  assert.deepEqual(put('{"a":1}').problems.map(({ path }) => path), [["a"]]);
  for (const text of ["[1]", "{"]) {
    assert.deepEqual(put(text).problems.map(({ path }) => path), [[]], text);
  }
});

Deno.test("withoutSecrets() hides texts that were typed in the place of secrets", () => {
  const value = { ...STORED_VALUE as JsonObject, key: "typed", db: { password: "typed" } };
  const hosts = [{ name: "a", token: "typed" }, { name: "b", token: MASKED }];

  const shown = withoutSecrets(STORED_FORM, { ...value, hosts });

  assert.doesNotMatch(JSON.stringify(shown), /typed/);
  assert.equal((shown as JsonObject)["port"], "${PORT:80}");
});

Deno.test("placeErrors() puts errors of the engine at the fields that a form has for them", () => {
  const errors = [
    { path: "/port", message: "must be >= 1" },
    { path: "/hosts/1/token", message: "is wrong" },
    { path: "/any/x~1y/0", message: "must be string" },
    { path: "", message: "must have required property 'port'" },
    { path: "/hosts/x", message: "is odd" },
    { path: "", message: "must be object" },
  ];

  assert.deepEqual(placeErrors(STORED_FORM, STORED_VALUE, errors), [
    { path: ["port"], message: "must be >= 1" },
    { path: ["hosts", 1, "token"], message: "is wrong" },
    { path: ["any"], message: "x/y.0 must be string" },
    { path: ["port"], message: "is required" },
    { path: ["hosts"], message: "x is odd" },
    { path: [], message: "must be object" },
  ]);
});
