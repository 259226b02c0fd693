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
import { Buffer } from "node:buffer";
import manifest from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url).pathname;
/** The command of the task. */
const TASK = manifest.tasks.compile.split(" ");
/** Files that a binary has to carry, because users get copies of them. */
const EMBEDDED = [
  "sdk/python/src/engine_sdk/_worker.py",
  "sdk/npm/engine_sdk.js",
  "templates/quickstart/workers/math-worker/math_worker.py",
  "workers/console/dist/console.html",
  // Nobody names these where `deno compile` looks.
  "cli/program.ts",
  "engine/engine.ts",
];

Deno.test("deno compile embeds the templates, both SDKs and the console page", async () => {
  const directory = await Deno.makeTempDir({ prefix: "engine-binary-" });

  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: TASK.slice(1).map((word) => word === "dist/engine" ? `${directory}/engine` : word),
    cwd: ROOT,
    env: { DENORT_BIN: await Deno.realPath(Deno.execPath()), NO_COLOR: "1" },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  const binary = Buffer.from(await Deno.readFile(`${directory}/engine`));
  await Deno.remove(directory, { recursive: true });

  for (const path of EMBEDDED) {
    const text = await Deno.readTextFile(ROOT + path);
    assert.ok(binary.includes(text), `${path} is not embedded`);
  }
});
