import assert from "node:assert/strict";
import * as api from "./mod.ts";

Deno.test("startEngine() and vmStatus() of engine/mod.ts are the real ones", async () => {
  await assert.rejects(api.startEngine({ configPath: "/nowhere/config.yaml" }), {
    code: "config_invalid",
  });
  assert.equal(typeof (await api.vmStatus()).ready, "boolean");
});

Deno.test("writeProjectFiles() of engine/mod.ts writes both SDKs", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await api.writeProjectFiles(directory);

    assert.ok(await Deno.stat(`${directory}/sdk/python/engine_sdk/__init__.py`));
    assert.ok(await Deno.stat(`${directory}/sdk/typescript/engine_sdk.js`));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("operatorUrl() of engine/mod.ts leaves an address as it is without a key", async () => {
  const console = "http://127.0.0.1:3113";
  assert.equal(await api.operatorUrl(console, "ws://127.0.0.1:9"), console);
});
