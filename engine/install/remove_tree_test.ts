/**
 * Folders as a worker could leave them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { removeOthers, removeTree } from "./remove_tree.ts";

function isThere(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => true, () => false);
}

Deno.test("removeTree() removes what is there, and nothing that links lead to", async () => {
  const base = await Deno.makeTempDir();
  await Deno.mkdir(`${base}/kept/sub`, { recursive: true });
  await Deno.mkdir(`${base}/-rf ' $x/sub`, { recursive: true });
  await Deno.symlink(`${base}/kept`, `${base}/-rf ' $x/sub/link`);
  await Deno.symlink(`${base}/kept`, `${base}/link`);

  await removeTree(`${base}/-rf ' $x`);
  await removeTree(`${base}/link`);
  await removeTree(`${base}/missing`);

  assert.ok(await isThere(`${base}/kept/sub`));
  assert.deepEqual((await Array.fromAsync(Deno.readDir(base))).map(({ name }) => name), ["kept"]);
  await Deno.remove(base, { recursive: true });
});

Deno.test("removeOthers() removes all but what is to stay", async () => {
  const base = await Deno.makeTempDir();
  await Promise.all(
    Array.from({ length: 450 }, (_, i) => Deno.mkdir(`${base}/f${i}/g`, { recursive: true })),
  );
  await Deno.writeTextFile(`${base}/file`, "");

  await removeOthers(base, ["f7", "f449", "missing"]);
  await removeOthers(`${base}/nowhere`, []);

  const left = (await Array.fromAsync(Deno.readDir(base))).map(({ name }) => name).sort();
  assert.deepEqual(left, ["f449", "f7"]);
  await removeTree(base);
});

Deno.test("removeTree() leaves the engine alone when a worker's folders are very deep", async () => {
  const base = await Deno.makeTempDir();
  const script = `const depth = 20_000;
    Deno.chdir(${JSON.stringify(base)});
    for (let i = 0; i < depth; i++) { Deno.mkdirSync("a"); Deno.chdir("a"); }`;
  const made = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
  assert.ok(made.success);

  await removeTree(`${base}/a`);

  assert.equal(await isThere(`${base}/a`), false);
  await Deno.remove(base);
});
