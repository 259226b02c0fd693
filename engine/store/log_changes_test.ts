import assert from "node:assert/strict";
import { decodeChanges, encodeChanges, type LogChange } from "./log_changes.ts";

Deno.test("decodeChanges() gives what encodeChanges() got", () => {
  const changes: LogChange[] = [
    ["set", ["head"], { format: 2, version: 2 ** 52, id: "☃" }],
    ["delete", ["entry", "a", "b"]],
    ["restored"],
    ["set", ["part", 17, 0], new Uint8Array([1, 2, 3])],
    ["set", ["entry", "\u0000", ""], new Uint8Array()],
    ["set", ["debris", 9], [{ version: 1, count: 2 }]],
    ["set", ["part", 17, 1], new Uint8Array(70_000).fill(7)],
  ];

  assert.deepEqual(decodeChanges(encodeChanges(changes)), changes);
  assert.deepEqual(decodeChanges(encodeChanges([])), []);
});

Deno.test("decodeChanges() refuses bytes that are cut, lengthened or flipped to no changes", () => {
  const bytes = encodeChanges([["set", ["a"], new Uint8Array(20)], ["delete", ["b"]]]);
  const row = (text: string): Uint8Array => {
    const head = new TextEncoder().encode(text);
    return new Uint8Array([0, 0, 0, head.length, ...head]);
  };

  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => decodeChanges(bytes.subarray(0, length)), { code: "store_unavailable" });
  }
  const wrong = [
    new Uint8Array([...bytes, 0]),
    ...["{}", "[1]", "[[0]]", '[[4,["a"]]]', "[[0,[]]]", "[[0,[true]]]", '[[2,["a"],-1]]'].map(row),
  ];
  for (const one of wrong) {
    assert.throws(() => decodeChanges(one), { code: "store_unavailable" });
  }
});
