import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  addToHistory,
  draftOfPayload,
  emptyDraft,
  forgetHistory,
  historyOf,
  noFormReason,
  type PastCall,
  readDraftedCall,
  readHistory,
  readTimeout,
  switchMode,
  type TextStore,
  withFieldDraft,
} from "./call_draft.ts";
import { fieldOf } from "./form.ts";

const SCHEMA: Json = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, count: { type: "integer" } },
};
const FORM = fieldOf(SCHEMA);

Deno.test("a function with a schema begins with a form, one without with JSON", () => {
  assert.equal(emptyDraft(FORM).mode, "form");
  assert.deepEqual(emptyDraft(fieldOf(undefined)), { mode: "json", draft: undefined, text: "{}" });
});

Deno.test("what was typed goes along into the other view and back", () => {
  const filled = withFieldDraft(FORM, emptyDraft(FORM), ["name"], "Ann");
  const read = readDraftedCall(SCHEMA, FORM, filled);

  const json = switchMode(FORM, filled, "json", read);
  const back = switchMode(FORM, json, "form", readDraftedCall(SCHEMA, FORM, json));

  assert.deepEqual(JSON.parse(json.text), { name: "Ann" });
  assert.deepEqual(readDraftedCall(SCHEMA, FORM, back), { payload: { name: "Ann" }, problems: [] });
});

Deno.test("what a form would lose stays in the JSON view, and it is said why", () => {
  const json = (text: string) => ({ mode: "json" as const, draft: undefined, text });
  const stays = (text: string) => {
    const call = json(text);
    return switchMode(FORM, call, "form", readDraftedCall(SCHEMA, FORM, call)) === call;
  };

  assert.equal(stays('{"name":7}'), true);
  assert.equal(noFormReason(FORM, json('{"name":7}')), "The form cannot show all of this payload");
  assert.equal(stays("{"), true);
  assert.equal(noFormReason(FORM, json("{")), "This is not JSON yet");
  assert.equal(stays('{"name":"x","more":1}'), false);
  assert.equal(noFormReason(FORM, json('{"name":"x"}')), null);
  assert.equal(noFormReason(FORM, json("")), null);
});

Deno.test("JSON is checked against the schema, and text that is none has no payload", () => {
  const read = (text: string) =>
    readDraftedCall(SCHEMA, FORM, { mode: "json", draft: undefined, text });

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

  assert.deepEqual(
    readDraftedCall(undefined, field, { mode: "json", draft: undefined, text: "" }),
    {
      payload: undefined,
      problems: [],
    },
  );
});

Deno.test("a payload from before is a form where it fits into one", () => {
  assert.equal(draftOfPayload(FORM, { name: "Ann" }).mode, "form");
  assert.equal(draftOfPayload(FORM, { name: 7 }).mode, "json");
  assert.equal(draftOfPayload(fieldOf(undefined), { name: "Ann" }).mode, "json");
});

Deno.test("a time-out is a whole number of milliseconds up to a week, or left out", () => {
  assert.equal(readTimeout(""), 30_000);
  assert.equal(readTimeout(" 50 "), 50);
  for (const text of ["0", "-1", "1.5", "soon", "1e300", "604800001"]) {
    assert.equal(readTimeout(text), undefined, text);
  }
});

function setup(text?: string): TextStore & { text(): string } {
  const kept = new Map(text === undefined ? [] : [["invocations", text]]);
  return {
    read: (name) => kept.get(name) ?? null,
    write: (name, text) => void kept.set(name, text),
    text: () => [...kept.values()].join(),
  };
}

function call(payload: Json, function_id = "a::b", at_ms = 1): PastCall {
  return { function_id, namespace: "default", payload, at_ms, duration_ms: 2, error_code: null };
}

Deno.test("the newest call is the first, and is there after the page was left", () => {
  const store = setup();

  addToHistory(store, call({ n: 1 }));
  addToHistory(store, call({ n: 2 }));

  assert.deepEqual(readHistory(store).map(({ payload }) => payload), [{ n: 2 }, { n: 1 }]);
});

Deno.test("the same payload is there once, as it was called last", () => {
  const store = setup();

  addToHistory(store, call({ n: 1, m: 2 }, "a::b", 1));
  addToHistory(store, call({ n: 2 }));
  addToHistory(store, call({ m: 2, n: 1 }, "a::b", 3));

  assert.deepEqual(readHistory(store).map(({ at_ms }) => at_ms), [3, 1]);
});

Deno.test("functions are kept apart, also those of one name in two namespaces", () => {
  const store = setup();
  addToHistory(store, call(1));
  addToHistory(store, call(1, "c::d"));
  const all = addToHistory(store, { ...call(1), namespace: "shop" });

  assert.equal(historyOf(all, "default", "a::b").length, 1);
  assert.equal(historyOf(all, "shop", "a::b").length, 1);
  assert.equal(historyOf(forgetHistory(store, "default", "a::b"), "default", "a::b").length, 0);
  assert.equal(readHistory(store).length, 2);
});

Deno.test("entries and characters are bounded", () => {
  const store = setup();
  for (let i = 0; i < 30; i++) addToHistory(store, call(i));
  assert.equal(readHistory(store).length, 20);

  for (let i = 0; i < 300; i++) addToHistory(store, call(i, `f${i}`));
  assert.equal(readHistory(store).length, 200);

  for (let i = 0; i < 100; i++) addToHistory(store, call(`${i}${"x".repeat(16_000)}`, `f${i}`));
  assert.ok(store.text().length <= 512 * 1024);
  assert.ok(readHistory(store).length > 10);
});

Deno.test("a large payload is not kept", () => {
  const store = setup();

  addToHistory(store, call("x".repeat(20_000)));

  assert.deepEqual(readHistory(store), []);
});

Deno.test("what is in the store and not ours is left aside", () => {
  for (const text of ["", "{", "7", "null", '{"a":1}', '[1,null,{"function_id":"a"}]']) {
    assert.deepEqual(readHistory(setup(text)), []);
  }
  const mixed = setup(JSON.stringify([call(1), { function_id: 7 }]));
  assert.equal(readHistory(mixed).length, 1);
});

Deno.test("a browser that keeps nothing has a history until the page is left", () => {
  const store: TextStore = { read: () => null, write: () => {} };

  assert.equal(addToHistory(store, call(1)).length, 1);
  assert.deepEqual(readHistory(store), []);
});
