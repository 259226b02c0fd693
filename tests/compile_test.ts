/**
 * What `deno compile` would put into the standalone binary.
 *
 * The base binary of `deno compile` is downloaded, so that the result starts can only be shown
 * where it can be had. With Deno itself in its place the module graph and the embedded files are
 * checked all the same; what the embedded program does, built_test.ts shows.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import manifest from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url).pathname;
/** The commands of the task; the first makes room. */
const [, BUILD, COMPILE] = manifest.tasks.compile.split(" && ");

Deno.test("deno compile embeds all files of the build, late ones too", async () => {
  const directory = await Deno.makeTempDir({ prefix: "engine-binary-" });
  const built = `${directory}/binary`;

  await run(BUILD!, directory);
  await run(COMPILE!, directory);
  const binary = Buffer.from(await Deno.readFile(`${directory}/engine`));
  const [names, missing] = [[] as string[], [] as string[]];
  for await (const { name } of Deno.readDir(built)) {
    const text = await Deno.readTextFile(`${built}/${name}`);
    (binary.includes(text) ? names : missing).push(name);
  }
  await Deno.remove(directory, { recursive: true });

  assert.deepEqual(missing, []);
  assert.ok(names.includes("built.js") && names.length > 3, `${names}`);
});

/** Runs a command of the task, with another directory in place of `dist`. */
async function run(command: string, directory: string): Promise<void> {
  const args = command.split(" ").slice(1).map((word) => word.replace(/^dist(?=\/)/, directory));
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: ROOT,
    env: { DENORT_BIN: await Deno.realPath(Deno.execPath()), NO_COLOR: "1" },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
}
