import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  FAKE_VERSION,
  fakeModule,
  temporaryFolder,
  writeFakeKernel,
} from "../../../tests/fakes/fake_kernel.ts";
import { findModules } from "./kernel_modules.ts";
import { createUnpack } from "./kernel_file.ts";

const unpack = createUnpack(undefined);

Deno.test("findModules() puts each module after what it depends on, once", async () => {
  await using folder = await temporaryFolder();
  const modules = { a_x: ["b", "c"], b: ["d"], c: ["d"], d: [], e: ["d"], unasked: [] };
  const { modules: directory } = await writeFakeKernel(folder.path, { modules });

  const found = await findModules(directory, ["a-x", "e"], unpack);

  assert.deepEqual(found.modules.map(({ name }) => name), ["d", "b", "c", "a_x", "e"]);
  assert.deepEqual(found.modules[3]!.depends, ["b", "c"]);
  assert.equal(found.modules[0]!.kernel, FAKE_VERSION);
  assert.deepEqual(found.missing, []);
});

Deno.test("findModules() tells what is part of the kernel from what is missing", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, {
    modules: { a: ["inside", "nowhere"] },
    builtin: ["inside", "other-one"],
  });

  const found = await findModules(modules, ["a", "other_one", "lost"], unpack);

  assert.deepEqual(found.modules.map(({ name }) => name), ["a"]);
  assert.deepEqual(found.builtin, ["inside", "other_one"]);
  assert.deepEqual(found.missing, ["nowhere", "lost"]);
});

Deno.test("findModules() unpacks modules", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: {} });
  await Deno.writeFile(`${modules}/kernel/a.ko.gz`, gzipSync(fakeModule("a", ["b"])));
  await Deno.writeFile(`${modules}/kernel/b.ko.zst`, zstdCompressSync(fakeModule("b")));

  const found = await findModules(modules, ["a"], unpack);

  assert.deepEqual(found.modules.map(({ bytes }) => bytes), [
    fakeModule("b"),
    fakeModule("a", ["b"]),
  ]);
});

Deno.test("findModules() survives modules that depend on each other", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: { a: ["b"], b: ["a"] } });

  const found = await findModules(modules, ["a"], unpack);

  assert.deepEqual(found.modules.map(({ name }) => name), ["b", "a"]);
});

Deno.test("findModules() names the file that is no module, and follows no links", async () => {
  await using folder = await temporaryFolder();
  const { modules } = await writeFakeKernel(folder.path, { modules: {} });
  await Deno.writeTextFile(`${modules}/kernel/a.ko`, "nothing of the kind");
  await Deno.symlink("/", `${modules}/build`);

  await assert.rejects(findModules(modules, ["a"], unpack), /a\.ko: it is not a kernel module/);
  await assert.rejects(findModules(`${modules}/none`, ["a"], unpack), /No such file/);
});
