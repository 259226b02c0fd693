import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  type Draft,
  draftOf,
  fitsForm,
  placeName,
  problemAt,
  readDraft,
  withDraft,
} from "./form_draft.ts";
import { fieldOf } from "./schema_form.ts";
import type { JsonPath } from "./schema_fit.ts";

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
    problems: problems.map(({ path, message }) => `${placeName(path)} ${message}`),
  };
}

Deno.test("what is typed becomes the payload, and what is left out stays out", () => {
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

Deno.test("an empty form says what is required, and optional objects are not", () => {
  assert.deepEqual(read(typed()), {
    payload: {},
    problems: ["sku is required", "qty is required"],
  });
});

Deno.test("numbers that are none are told at their place, with everything else that is wrong", () => {
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

Deno.test("JSON that is none is told at its place", () => {
  const draft = typed([["sku"], "a"], [["qty"], "1"], [["extra"], "{a:1}"]);

  assert.match(read(draft).problems.join(), /^extra is not JSON: /);
});

Deno.test("a list says which of its items is empty", () => {
  const form = fieldOf({ type: "array", items: { type: "integer" } });
  const draft: Draft = { kind: "list", items: ["1", undefined, "x"] };

  const { problems } = readDraft(undefined, form, draft);

  assert.equal(problemAt(problems, [0]), undefined);
  assert.equal(problemAt(problems, [1]), "is empty; fill it in or remove it");
  assert.equal(problemAt(problems, [2]), "must be a number");
});

Deno.test("a member of an optional object makes its other members required", () => {
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

Deno.test("values that fit a form come out of it unchanged", () => {
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

Deno.test("values that a form would change are told apart", () => {
  for (const value of [[], "text", { at: [1] }, { sku: 12 }, { lines: {} }] as Json[]) {
    assert.equal(fitsForm(FORM, value), false, JSON.stringify(value));
  }
});

Deno.test("a change of a draft leaves the one before as it was", () => {
  const before = typed([["sku"], "a"]);

  withDraft(FORM, before, ["sku"], "b");

  assert.equal((read(before).payload as { sku: string }).sku, "a");
});

Deno.test("places read as in JavaScript", () => {
  assert.equal(placeName([]), "payload");
  assert.equal(placeName(["items", 2, "name"]), "items[2].name");
  assert.equal(placeName([0]), "[0]");
});
