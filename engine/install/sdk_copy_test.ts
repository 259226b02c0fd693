import assert from "node:assert/strict";
import { PYTHON_FILES, PYTHON_REQUIREMENT, TYPESCRIPT_FILES, writeSdkCopies } from "./sdk_copy.ts";

const SDK = new URL("../../sdk/", import.meta.url);

/** Names of the files in a directory of the sources, without what running them leaves there. */
function filesIn(path: string): string[] {
  return [...Deno.readDirSync(new URL(path, SDK))]
    .filter(({ name, isFile }) => isFile && !name.startsWith(".") && !name.endsWith(".pyc"))
    .map(({ name }) => name).sort();
}

Deno.test("PYTHON_FILES holds every file of the Python package", () => {
  assert.deepEqual(Object.keys(PYTHON_FILES).sort(), filesIn("python/src/engine_sdk"));
});

Deno.test("TYPESCRIPT_FILES holds every file of the npm package", () => {
  assert.deepEqual(Object.keys(TYPESCRIPT_FILES).sort(), filesIn("npm"));
});

Deno.test("PYTHON_REQUIREMENT is what the Python package asks for", async () => {
  const project = await Deno.readTextFile(new URL("python/pyproject.toml", SDK));

  assert.match(project, new RegExp(`^dependencies = \\["${PYTHON_REQUIREMENT}"\\]$`, "m"));
});

Deno.test("writeSdkCopies() writes both SDKs unchanged and removes old files", async () => {
  const directory = await Deno.makeTempDir();
  await Deno.mkdir(`${directory}/sdk/python/engine_sdk`, { recursive: true });
  await Deno.writeTextFile(`${directory}/sdk/python/engine_sdk/_gone.py`, "x = 1");

  await writeSdkCopies(directory);

  const names = [...Deno.readDirSync(`${directory}/sdk/python/engine_sdk`)];
  assert.deepEqual(names.map(({ name }) => name).sort(), Object.keys(PYTHON_FILES).sort());
  for (const [name, text] of Object.entries(TYPESCRIPT_FILES)) {
    assert.equal(await Deno.readTextFile(`${directory}/sdk/typescript/${name}`), text);
  }
  await Deno.remove(directory, { recursive: true });
});

Deno.test("writeSdkCopies() touches only files that differ", async () => {
  const directory = await Deno.makeTempDir();
  await writeSdkCopies(directory);
  const path = `${directory}/sdk/python/engine_sdk/__init__.py`;
  await Deno.utime(path, 1, 1);
  await Deno.writeTextFile(`${directory}/sdk/typescript/package.json`, "{}");

  await writeSdkCopies(directory);

  assert.equal((await Deno.stat(path)).mtime!.getTime(), 1_000);
  const restored = await Deno.readTextFile(`${directory}/sdk/typescript/package.json`);
  assert.equal(restored, TYPESCRIPT_FILES["package.json"]);
  await Deno.remove(directory, { recursive: true });
});
