import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  callOf,
  emptyCall,
  inMode,
  noFormBecause,
  readCall,
  readTimeout,
  withField,
} from "./call_draft.ts";
import { fieldOf } from "./schema_form.ts";

const SCHEMA: Json = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, count: { type: "integer" } },
};
const FORM = fieldOf(SCHEMA);

Deno.test("a function with a schema begins with a form, one without with JSON", () => {
  assert.equal(emptyCall(FORM).mode, "form");
  assert.deepEqual(emptyCall(fieldOf(undefined)), { mode: "json", draft: undefined, text: "{}" });
});

Deno.test("what was typed goes along into the other view and back", () => {
  const filled = withField(FORM, emptyCall(FORM), ["name"], "Ann");
  const read = readCall(SCHEMA, FORM, filled);

  const json = inMode(FORM, filled, "json", read);
  const back = inMode(FORM, json, "form", readCall(SCHEMA, FORM, json));

  assert.deepEqual(JSON.parse(json.text), { name: "Ann" });
  assert.deepEqual(readCall(SCHEMA, FORM, back), { payload: { name: "Ann" }, problems: [] });
});

Deno.test("what a form would lose stays in the JSON view, and it is said why", () => {
  const json = (text: string) => ({ mode: "json" as const, draft: undefined, text });
  const stays = (text: string) => {
    const call = json(text);
    return inMode(FORM, call, "form", readCall(SCHEMA, FORM, call)) === call;
  };

  assert.equal(stays('{"name":7}'), true);
  assert.equal(noFormBecause(FORM, json('{"name":7}')), "The form cannot show all of this payload");
  assert.equal(stays("{"), true);
  assert.equal(noFormBecause(FORM, json("{")), "This is not JSON yet");
  assert.equal(stays('{"name":"x","more":1}'), false);
  assert.equal(noFormBecause(FORM, json('{"name":"x"}')), null);
  assert.equal(noFormBecause(FORM, json("")), null);
});

Deno.test("JSON is checked against the schema, and text that is none has no payload", () => {
  const read = (text: string) => readCall(SCHEMA, FORM, { mode: "json", draft: undefined, text });

  assert.deepEqual(read('{"count":1.5}').problems.map(({ path }) => path), [["name"], ["count"]]);
  assert.equal(read("{a").payload, undefined);
  assert.equal(read("{a").problems.length, 1);
  assert.deepEqual(read("  "), {
    payload: undefined,
    problems: [{ path: [], message: "must be an object" }],
  });
});

Deno.test("nothing at all may be sent to a function that does not say what it takes", () => {
  const field = fieldOf(undefined);

  assert.deepEqual(readCall(undefined, field, { mode: "json", draft: undefined, text: "" }), {
    payload: undefined,
    problems: [],
  });
});

Deno.test("a payload from before is a form where it fits into one", () => {
  assert.equal(callOf(FORM, { name: "Ann" }).mode, "form");
  assert.equal(callOf(FORM, { name: 7 }).mode, "json");
  assert.equal(callOf(fieldOf(undefined), { name: "Ann" }).mode, "json");
});

Deno.test("a time-out is a whole number of milliseconds up to a week, or left out", () => {
  assert.equal(readTimeout(""), 30_000);
  assert.equal(readTimeout(" 50 "), 50);
  for (const text of ["0", "-1", "1.5", "soon", "1e300", "604800001"]) {
    assert.equal(readTimeout(text), undefined, text);
  }
});
