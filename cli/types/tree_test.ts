import assert from "node:assert/strict";
import { Names } from "./shape.ts";
import { readApi } from "./tree.ts";

Deno.test("readApi() makes a tree of ids, the same whatever their order", () => {
  const functions = ["b::c", "a", "b", "b::c::d"].map((function_id) => ({ function_id }));

  const { root } = readApi(functions, new Names([]));
  const other = readApi(functions.toReversed(), new Names([]));

  assert.deepEqual([...root.below.keys()], ["a", "b"]);
  const b = root.below.get("b")!;
  assert.equal(b.call?.id, "b");
  assert.equal(b.below.get("c")?.below.get("d")?.call?.id, "b::c::d");
  assert.deepEqual(other.root, root);
});

Deno.test("readApi() knows which types are those of payloads, and keeps names apart", () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  const functions = ["a::b", "a:b"].map((function_id) => {
    return { function_id, request_schema: schema, response_schema: schema };
  });

  const { definitions, inputs } = readApi(functions, new Names([]));

  assert.deepEqual([...definitions.keys()], ["ABPayload", "ABResult", "ABPayload2", "ABResult2"]);
  assert.deepEqual([...inputs], ["ABPayload", "ABPayload2"]);
});
