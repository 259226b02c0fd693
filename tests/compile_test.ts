/**
 * What `deno compile` would put into the standalone binary.
 *
 * The base binary of `deno compile` is downloaded, so that the result starts can only be shown
 * where it can be had. With Deno itself in its place the module graph, the types and the embedded
 * files are checked all the same.
 *
 * @module
 */
import assert from "node:assert/strict";

Deno.test("deno compile embeds the templates and both SDKs", async () => {
  const output = await Deno.makeTempFile({ prefix: "engine-binary-" });
  const denort = await Deno.realPath(Deno.execPath());

  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["compile", "-A", "-o", output, "cli/main.ts"],
    cwd: new URL("../", import.meta.url).pathname,
    env: { DENORT_BIN: denort, NO_COLOR: "1" },
  }).output();
  await Deno.remove(output);

  const text = new TextDecoder().decode(stderr);
  assert.equal(code, 0, text);
  for (const name of ["_worker.py", "engine_sdk.js", "math_worker.py", "kv_store.ts"]) {
    assert.ok(text.includes(name), `${name} is not embedded:\n${text}`);
  }
});
