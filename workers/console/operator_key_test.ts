/**
 * @module
 */
import assert from "node:assert/strict";
import { addressKey, operatorKeyOf } from "./operator_key.ts";

/** A file with this text. */
async function setup(text: string) {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, text);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

Deno.test("operatorKeyOf() is what the command line makes of the same key", async () => {
  const key = "0123456789abcdef".repeat(4);
  await using file = await setup(JSON.stringify({ url: "ws://127.0.0.1:1", pid: 1, key }));

  const found = await operatorKeyOf({ path: file.path, problem: null });

  assert.equal(found, await addressKey(key));
  assert.notEqual(found, key);
});

Deno.test("operatorKeyOf() is none when there is no key, or none that can be read", async () => {
  await using empty = await setup("{}");
  await using broken = await setup("not JSON");
  const missing = `${empty.path}.gone`;

  for (const path of [empty.path, broken.path, missing]) {
    assert.equal(await operatorKeyOf({ path, problem: null }), undefined);
  }
  assert.equal(await operatorKeyOf({ path: empty.path, problem: "no room" }), undefined);
});
