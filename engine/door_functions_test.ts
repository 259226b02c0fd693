import assert from "node:assert/strict";
import * as door from "./mod.ts";
import { staticGraph } from "../tests/fakes/module_graph.ts";

Deno.test("the door reads neither the engine nor the set-up of microVMs before it is asked", async () => {
  const files = await staticGraph(new URL("./mod.ts", import.meta.url));

  const heavy = files.filter((file) => /engine\/(engine|console|core|launch|vm|line)\b/.test(file));
  assert.deepEqual(heavy, []);
});

Deno.test("startEngine() and vmStatus() of the door are those behind it", async () => {
  await assert.rejects(door.startEngine({ configPath: "/nowhere/config.yaml" }), {
    code: "config_invalid",
  });
  assert.equal(typeof (await door.vmStatus()).ready, "boolean");
});

Deno.test("writeSdkCopies() of the door writes both SDKs", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await door.writeSdkCopies(directory);

    assert.ok(await Deno.stat(`${directory}/sdk/python/engine_sdk/__init__.py`));
    assert.ok(await Deno.stat(`${directory}/sdk/typescript/engine_sdk.js`));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("operatorUrl() of the door leaves an address as it is without a key", async () => {
  const console = "http://127.0.0.1:3113";
  assert.equal(await door.operatorUrl(console, "ws://127.0.0.1:9"), console);
});
