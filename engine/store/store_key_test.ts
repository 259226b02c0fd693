import assert from "node:assert/strict";
import {
  checkKey,
  compareKeys,
  isBelow,
  keyBytes,
  keyId,
  STORE_KEY_BYTES_MAX,
} from "./store_key.ts";

Deno.test("keyId() differs for keys that look alike when their parts are joined", () => {
  const keys = [["a", "b"], ["ab"], ["a", "b", ""], ["", "ab"], ["1:a"], ["a:1", "b"], ["a:1b"]];

  assert.equal(new Set(keys.map(keyId)).size, keys.length);
  assert.equal(keyId(["a", "b"]), keyId(["a", "b"]));
});

Deno.test("compareKeys() sorts as Deno KV does", async () => {
  const parts = ["", "\0", "\0\0", "a", "a\0", "ab", "é", "☃", "\ud7ff", "\ue000", "\uffff", "😀"];
  const keys = parts.flatMap((first) => [[first], ...parts.map((second) => [first, second])]);
  using kv = await Deno.openKv(":memory:");
  for (const key of keys.toReversed()) await kv.set(key, 1);

  const expected: string[][] = [];
  for await (const { key } of kv.list({ prefix: [] })) expected.push(key as string[]);

  assert.deepEqual(keys.toSorted(compareKeys), expected);
});

Deno.test("isBelow() is true for longer keys that start with all parts", () => {
  assert.ok(isBelow(["a", "b"], ["a"]));
  assert.ok(isBelow(["a"], []));
  assert.ok(!isBelow(["a"], ["a"]));
  assert.ok(!isBelow(["ab", "c"], ["a"]));
  assert.ok(!isBelow([], ["a"]));
});

Deno.test("checkKey() takes what Deno KV takes, and not more than the limit", async () => {
  using kv = await Deno.openKv(":memory:");
  for (const sign of ["x", "\0", "é", "☃", "😀"]) {
    const cost = keyBytes([sign]) - 2;
    const key = ["", sign.repeat(Math.floor((STORE_KEY_BYTES_MAX - 4) / cost))];

    checkKey(key);
    await kv.set(["entry", ...key], 1);
    assert.throws(() => checkKey(["", key[1]! + sign.repeat(4)]), { code: "INVALID_ARGUMENTS" });
  }
});

Deno.test("keyBytes() counts as UTF-8 does, a zero twice and 2 for each part", () => {
  const encoder = new TextEncoder();
  for (const part of ["", "abc", "é", "\u07ff\u0800", "☃", "😀😀", "\ud7ff\ue000\uffff"]) {
    assert.equal(keyBytes([part, part]), 2 * (encoder.encode(part).length + 2), part);
  }
  assert.equal(keyBytes(["\0"]), 4);
});
