import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  addToHistory,
  forgetHistory,
  historyOf,
  type PastCall,
  readHistory,
  readTimeout,
  type TextStore,
} from "./call_draft.ts";

Deno.test("readTimeout() takes whole milliseconds up to a week, or nothing", () => {
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

Deno.test("addToHistory() stores the newest call first", () => {
  const store = setup();

  addToHistory(store, call({ n: 1 }));
  addToHistory(store, call({ n: 2 }));

  assert.deepEqual(readHistory(store).map(({ payload }) => payload), [{ n: 2 }, { n: 1 }]);
});

Deno.test("addToHistory() replaces a call with the same payload", () => {
  const store = setup();

  addToHistory(store, call({ n: 1, m: 2 }, "a::b", 1));
  addToHistory(store, call({ n: 2 }));
  addToHistory(store, call({ m: 2, n: 1 }, "a::b", 3));

  assert.deepEqual(readHistory(store).map(({ at_ms }) => at_ms), [3, 1]);
});

Deno.test("historyOf() separates functions, also equal ids in two namespaces", () => {
  const store = setup();
  addToHistory(store, call(1));
  addToHistory(store, call(1, "c::d"));
  const all = addToHistory(store, { ...call(1), namespace: "shop" });

  assert.equal(historyOf(all, "default", "a::b").length, 1);
  assert.equal(historyOf(all, "shop", "a::b").length, 1);
  assert.equal(historyOf(forgetHistory(store, "default", "a::b"), "default", "a::b").length, 0);
  assert.equal(readHistory(store).length, 2);
});

Deno.test("addToHistory() bounds entries and characters", () => {
  const store = setup();
  for (let i = 0; i < 30; i++) addToHistory(store, call(i));
  assert.equal(readHistory(store).length, 20);

  for (let i = 0; i < 300; i++) addToHistory(store, call(i, `f${i}`));
  assert.equal(readHistory(store).length, 200);

  for (let i = 0; i < 100; i++) addToHistory(store, call(`${i}${"x".repeat(16_000)}`, `f${i}`));
  assert.ok(store.text().length <= 512 * 1024);
  assert.ok(readHistory(store).length > 10);
});

Deno.test("addToHistory() does not store a large payload", () => {
  const store = setup();

  addToHistory(store, call("x".repeat(20_000)));

  assert.deepEqual(readHistory(store), []);
});

Deno.test("readHistory() ignores other stored values", () => {
  for (const text of ["", "{", "7", "null", '{"a":1}', '[1,null,{"function_id":"a"}]']) {
    assert.deepEqual(readHistory(setup(text)), []);
  }
  const mixed = setup(JSON.stringify([call(1), { function_id: 7 }]));
  assert.equal(readHistory(mixed).length, 1);
});

Deno.test("addToHistory() returns the call even without storage", () => {
  const store: TextStore = { read: () => null, write: () => {} };

  assert.equal(addToHistory(store, call(1)).length, 1);
  assert.deepEqual(readHistory(store), []);
});
