import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  FAKE_VERSION,
  fakeModule,
  temporaryFolder,
  writeFakeKernel,
} from "../../../tests/fakes/fake_vm.ts";
import { findModules } from "./kernel_modules.ts";
import { createDecompress } from "./kernel_file.ts";

const decompress = createDecompress(undefined);

Deno.test("findModules() lists each module once, after its dependencies", async () => {
  await using folder = await temporaryFolder();
  const modules = { a_x: ["b", "c"], b: ["d"], c: ["d"], d: [], e: ["d"], unused: [] };
  const { modules: directory } = await writeFakeKernel(folder.path, { modules });

  const found = await findModules(directory, ["a-x", "e"], decompress);

  assert.deepEqual(found.modules.map(({ name }) => name), ["d", "b", "c", "a_x", "e"]);
  assert.deepEqual(found.modules[3]!.depends, ["b", "c"]);
  assert.equal(found.modules[0]!.kernel, FAKE_VERSION);
  assert.deepEqual(found.missing, []);
});

Deno.test("findModules() distinguishes built-in modules from missing ones", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, {
    modules: { a: ["inside", "nowhere"] },
    builtin: ["inside", "other-one"],
  });

  const found = await findModules(modules, ["a", "other_one", "lost"], decompress);

  assert.deepEqual(found.modules.map(({ name }) => name), ["a"]);
  assert.deepEqual(found.builtin, ["inside", "other_one"]);
  assert.deepEqual(found.missing, ["nowhere", "lost"]);
});

Deno.test("findModules() decompresses modules", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: {} });
  await Deno.writeFile(`${modules}/kernel/a.ko.gz`, gzipSync(fakeModule("a", ["b"])));
  await Deno.writeFile(`${modules}/kernel/b.ko.zst`, zstdCompressSync(fakeModule("b")));

  const found = await findModules(modules, ["a"], decompress);

  assert.deepEqual(found.modules.map(({ bytes }) => bytes), [
    fakeModule("b"),
    fakeModule("a", ["b"]),
  ]);
});

Deno.test("findModules() terminates on circular dependencies", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: { a: ["b"], b: ["a"] } });

  const found = await findModules(modules, ["a"], decompress);

  assert.deepEqual(found.modules.map(({ name }) => name), ["b", "a"]);
});

Deno.test("findModules() names a file that is not a module, and follows no symbolic links", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: {} });
  await Deno.writeTextFile(`${modules}/kernel/a.ko`, "nothing of the kind");
  await Deno.symlink("/", `${modules}/build`);

  await assert.rejects(findModules(modules, ["a"], decompress), /a\.ko: it is not a kernel module/);
  await assert.rejects(findModules(`${modules}/none`, ["a"], decompress), /No such file/);
});
