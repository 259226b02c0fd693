/**
 * @module
 */
import assert from "node:assert/strict";
import { patchMessage, QueryState } from "./query_state.ts";

const LIST = { function_id: "list", items: "rows", key: ["ns", "id"] };
const row = (id: string, value = 0, ns = "default") => ({ ns, id, value });

Deno.test("QueryState reports the first result whole", () => {
  const state = new QueryState(LIST);
  assert.equal(state.isKnown, false);

  const change = state.update({ rows: [row("a"), row("b")] });

  assert.deepEqual(change, { type: "all" });
  assert.deepEqual(JSON.parse(state.wholeMessage(7)), {
    type: "snapshot",
    id: 7,
    items: [row("a"), row("b")],
  });
});

Deno.test("QueryState reports changed, new and removed items", () => {
  const state = new QueryState(LIST);
  const rows = ["a", "b", "c", "d", "e"].map((id) => row(id));
  state.update({ rows });

  const change = state.update({ rows: [row("a"), row("b", 1), row("d"), row("e"), row("f")] });

  assert.ok(change.type === "patch");
  assert.deepEqual(JSON.parse(patchMessage(3, change)), {
    type: "patch",
    id: 3,
    set: [row("b", 1), row("f")],
    gone: ['["default","c"]'],
  });
  assert.deepEqual(state.update({ rows: [row("a"), row("b", 1), row("d"), row("e"), row("f")] }), {
    type: "none",
  });
});

Deno.test("QueryState separates items that differ in one member of the key", () => {
  const state = new QueryState(LIST);
  const rows = [row("a"), row("a", 0, "other"), row("b"), row("c")];
  state.update({ rows });

  const change = state.update({ rows: rows.slice(1) });

  assert.deepEqual(change, { type: "patch", set: [], gone: ['["default","a"]'] });
});

Deno.test("QueryState reports everything when most items changed", () => {
  const state = new QueryState(LIST);
  state.update({ rows: [row("a"), row("b")] });

  assert.deepEqual(state.update({ rows: [row("c"), row("b")] }), { type: "all" });
  assert.deepEqual(state.update({ rows: [] }), { type: "all" });
  assert.equal(state.wholeMessage(1), '{"type":"snapshot","id":1,"items":[]}');
});

Deno.test("QueryState keeps the last of two items with the same key", () => {
  const state = new QueryState(LIST);
  state.update({ rows: [row("a", 1), row("a", 2)] });

  assert.deepEqual(state.update({ rows: [row("a", 1), row("a", 2)] }), { type: "none" });
  assert.deepEqual(JSON.parse(state.wholeMessage(1)).items, [row("a", 2)]);
});

Deno.test("QueryState uses null for a missing member of the key", () => {
  const state = new QueryState(LIST);
  const rows = [row("a"), row("b"), row("c"), "text", { id: "d" }];
  state.update({ rows });

  const change = state.update({ rows: rows.slice(0, 3) });

  const gone = ["[null,null]", '[null,"d"]'];
  assert.deepEqual(change, { type: "patch", set: [], gone });
});

Deno.test("QueryState without a key reports everything on any change, and keeps equal items", () => {
  const state = new QueryState({ function_id: "list", items: "rows" });
  state.update({ rows: [1, 1, 2] });

  assert.deepEqual(state.update({ rows: [1, 1, 2] }), { type: "none" });
  assert.deepEqual(state.update({ rows: [1, 1, 2, 3] }), { type: "all" });
  assert.equal(state.wholeMessage(1), '{"type":"snapshot","id":1,"items":[1,1,2,3]}');
});

Deno.test("QueryState of a whole value reports it when it changed", () => {
  const state = new QueryState({ function_id: "get" });

  assert.deepEqual(state.update(undefined), { type: "all" });
  assert.equal(state.wholeMessage(1), '{"type":"value","id":1,"value":null}');
  assert.deepEqual(state.update(null), { type: "none" });
  assert.deepEqual(state.update({ a: 1 }), { type: "all" });
  assert.equal(state.wholeMessage(1), '{"type":"value","id":1,"value":{"a":1}}');
});

Deno.test("QueryState refuses a result without its list", () => {
  const state = new QueryState(LIST);

  for (const answer of [undefined, null, 1, "rows", [], {}, { rows: {} }, { rows: null }]) {
    assert.throws(() => state.update(answer), { code: "INVALID_ARGUMENTS" });
  }
});

Deno.test("QueryState.forget() makes the next result count as new", () => {
  const state = new QueryState(LIST);
  state.update({ rows: [row("a")] });

  state.forget();

  assert.equal(state.isKnown, false);
  assert.deepEqual(state.update({ rows: [row("a")] }), { type: "all" });
});
