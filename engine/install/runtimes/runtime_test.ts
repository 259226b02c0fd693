import assert from "node:assert/strict";
import { exists, firstBinary, folderOf, outsideSystem, singleProgramFolder } from "./runtime.ts";

async function setup() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const remove = () => Deno.remove(root, { recursive: true });
  return { root, [Symbol.asyncDispose]: remove };
}

Deno.test("outsideSystem() keeps folders outside /usr, with and without links", async () => {
  await using there = await setup();
  await Deno.mkdir(`${there.root}/real`);
  await Deno.symlink(`${there.root}/real`, `${there.root}/link`);

  const folders = await outsideSystem(["/usr", "/usr/local", `${there.root}/link`, "/nix/store/a"]);

  assert.deepEqual(folders, [`${there.root}/link`, `${there.root}/real`, "/nix/store"]);
});

Deno.test("firstBinary() skips scripts, missing files and folders", async () => {
  await using there = await setup();
  const { root } = there;
  await Deno.writeTextFile(`${root}/script`, "#!/bin/sh\n");
  await Deno.writeFile(`${root}/elf`, new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2]));
  await Deno.symlink(`${root}/elf`, `${root}/link`);

  assert.equal(await firstBinary([root, `${root}/missing`, `${root}/script`]), undefined);
  assert.equal(await firstBinary([`${root}/script`, `${root}/link`]), `${root}/elf`);
});

Deno.test("singleProgramFolder() leaves a program of the system where it is", async () => {
  const request = { name: "w", path: "", dataDirectory: "/nowhere" };
  const program = { name: "deno", advice: "" };

  assert.equal(await singleProgramFolder(request, program, "/usr/bin/deno"), "/usr/bin");
});

Deno.test("folderOf() gives the root for a file in it, exists() follows links", async () => {
  await using there = await setup();
  await Deno.symlink(`${there.root}/nowhere`, `${there.root}/dead`);

  assert.deepEqual([folderOf("/a"), folderOf("/a/b/c")], ["/", "/a/b"]);
  assert.deepEqual([await exists(there.root), await exists(`${there.root}/dead`)], [true, false]);
});
