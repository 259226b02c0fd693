/**
 * @module
 */
import assert from "node:assert/strict";
import { patchMessage, QueryState } from "./query_state.ts";

const LIST = { function_id: "list", items: "rows", key: ["ns", "id"] };
const row = (id: string, value = 0, ns = "default") => ({ ns, id, value });

Deno.test("QueryState says everything of a first answer", () => {
  const state = new QueryState(LIST);
  assert.equal(state.isKnown, false);

  const change = state.take({ rows: [row("a"), row("b")] });

  assert.deepEqual(change, { type: "all" });
  assert.deepEqual(JSON.parse(state.whole(7)), {
    type: "snapshot",
    id: 7,
    items: [row("a"), row("b")],
  });
});

Deno.test("QueryState says which items are other, new or gone", () => {
  const state = new QueryState(LIST);
  const rows = ["a", "b", "c", "d", "e"].map((id) => row(id));
  state.take({ rows });

  const change = state.take({ rows: [row("a"), row("b", 1), row("d"), row("e"), row("f")] });

  assert.ok(change.type === "patch");
  assert.deepEqual(JSON.parse(patchMessage(3, change)), {
    type: "patch",
    id: 3,
    set: [row("b", 1), row("f")],
    gone: ['["default","c"]'],
  });
  assert.deepEqual(state.take({ rows: [row("a"), row("b", 1), row("d"), row("e"), row("f")] }), {
    type: "none",
  });
});

Deno.test("QueryState tells items of one id in two namespaces apart", () => {
  const state = new QueryState(LIST);
  const rows = [row("a"), row("a", 0, "other"), row("b"), row("c")];
  state.take({ rows });

  const change = state.take({ rows: rows.slice(1) });

  assert.deepEqual(change, { type: "patch", set: [], gone: ['["default","a"]'] });
});

Deno.test("QueryState says everything when most of it is another", () => {
  const state = new QueryState(LIST);
  state.take({ rows: [row("a"), row("b")] });

  assert.deepEqual(state.take({ rows: [row("c"), row("b")] }), { type: "all" });
  assert.deepEqual(state.take({ rows: [] }), { type: "all" });
  assert.equal(state.whole(1), '{"type":"snapshot","id":1,"items":[]}');
});

Deno.test("QueryState takes the last of two items with one key", () => {
  const state = new QueryState(LIST);
  state.take({ rows: [row("a", 1), row("a", 2)] });

  assert.deepEqual(state.take({ rows: [row("a", 1), row("a", 2)] }), { type: "none" });
  assert.deepEqual(JSON.parse(state.whole(1)).items, [row("a", 2)]);
});

Deno.test("QueryState names items by null where a member of the key is missing", () => {
  const state = new QueryState(LIST);
  const rows = [row("a"), row("b"), row("c"), "text", { id: "d" }];
  state.take({ rows });

  const change = state.take({ rows: rows.slice(0, 3) });

  const gone = ["[null,null]", '[null,"d"]'];
  assert.deepEqual(change, { type: "patch", set: [], gone });
});

Deno.test("QueryState without a key says everything on any change, and keeps equal items", () => {
  const state = new QueryState({ function_id: "list", items: "rows" });
  state.take({ rows: [1, 1, 2] });

  assert.deepEqual(state.take({ rows: [1, 1, 2] }), { type: "none" });
  assert.deepEqual(state.take({ rows: [1, 1, 2, 3] }), { type: "all" });
  assert.equal(state.whole(1), '{"type":"snapshot","id":1,"items":[1,1,2,3]}');
});

Deno.test("QueryState of a whole value says it when it is another", () => {
  const state = new QueryState({ function_id: "get" });

  assert.deepEqual(state.take(undefined), { type: "all" });
  assert.equal(state.whole(1), '{"type":"value","id":1,"value":null}');
  assert.deepEqual(state.take(null), { type: "none" });
  assert.deepEqual(state.take({ a: 1 }), { type: "all" });
  assert.equal(state.whole(1), '{"type":"value","id":1,"value":{"a":1}}');
});

Deno.test("QueryState refuses an answer without its list", () => {
  const state = new QueryState(LIST);

  for (const answer of [undefined, null, 1, "rows", [], {}, { rows: {} }, { rows: null }]) {
    assert.throws(() => state.take(answer), { code: "INVALID_ARGUMENTS" });
  }
});

Deno.test("QueryState.forget() makes the next answer new", () => {
  const state = new QueryState(LIST);
  state.take({ rows: [row("a")] });

  state.forget();

  assert.equal(state.isKnown, false);
  assert.deepEqual(state.take({ rows: [row("a")] }), { type: "all" });
});
