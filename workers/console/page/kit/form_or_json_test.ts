import assert from "node:assert/strict";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import { fieldOf } from "./form.ts";
import {
  draftOfValue,
  emptyDraft,
  noFormReason,
  readValueDraft,
  switchMode,
  withFieldDraft,
} from "./form_or_json.ts";

const SCHEMA: Json = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, count: { type: "integer" } },
};
const FORM = fieldOf(SCHEMA);

Deno.test("emptyDraft() is a form with a schema, JSON without one", () => {
  assert.equal(emptyDraft(FORM).mode, "form");
  assert.deepEqual(emptyDraft(fieldOf(undefined)), { mode: "json", draft: undefined, text: "{}" });
});

Deno.test("switchMode() keeps what was typed, in both directions", () => {
  const filled = withFieldDraft(FORM, emptyDraft(FORM), ["name"], "Ann");
  const read = readValueDraft(SCHEMA, FORM, filled);

  const json = switchMode(FORM, filled, "json", read);
  const back = switchMode(FORM, json, "form", readValueDraft(SCHEMA, FORM, json));

  assert.deepEqual(JSON.parse(json.text), { name: "Ann" });
  assert.deepEqual(readValueDraft(SCHEMA, FORM, back), { payload: { name: "Ann" }, problems: [] });
});

Deno.test("switchMode() keeps JSON that a form would lose, with a reason", () => {
  const json = (text: string) => ({ mode: "json" as const, draft: undefined, text });
  const stays = (text: string) => {
    const call = json(text);
    return switchMode(FORM, call, "form", readValueDraft(SCHEMA, FORM, call)) === call;
  };

  assert.equal(stays('{"name":7}'), true);
  assert.equal(noFormReason(FORM, json('{"name":7}')), "The form cannot show all of this value");
  assert.equal(stays("{"), true);
  assert.equal(noFormReason(FORM, json("{")), "This is not JSON yet");
  assert.equal(stays('{"name":"x","more":1}'), false);
  assert.equal(noFormReason(FORM, json('{"name":"x"}')), null);
  assert.equal(noFormReason(FORM, json("")), null);
});

Deno.test("readValueDraft() checks JSON against the schema, and has no payload for other text", () => {
  const read = (text: string) =>
    readValueDraft(SCHEMA, FORM, { mode: "json", draft: undefined, text });

  assert.deepEqual(read('{"count":1.5}').problems.map(({ path }) => path), [["name"], ["count"]]);
  assert.equal(read("{a").payload, undefined);
  assert.equal(read("{a").problems.length, 1);
  assert.deepEqual(read("  "), {
    payload: undefined,
    problems: [{ path: [], message: "must be an object" }],
  });
});

Deno.test("readValueDraft() allows no payload without a schema", () => {
  const field = fieldOf(undefined);

  assert.deepEqual(
    readValueDraft(undefined, field, { mode: "json", draft: undefined, text: "" }),
    {
      payload: undefined,
      problems: [],
    },
  );
});

Deno.test("draftOfValue() is a form where the payload fits into one", () => {
  assert.equal(draftOfValue(FORM, { name: "Ann" }).mode, "form");
  assert.equal(draftOfValue(FORM, { name: 7 }).mode, "json");
  assert.equal(draftOfValue(fieldOf(undefined), { name: "Ann" }).mode, "json");
});
