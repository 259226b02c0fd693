import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  addToHistory,
  forgetHistory,
  historyOf,
  type PastCall,
  readHistory,
  type TextStore,
} from "./invoke_history.ts";

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
