import assert from "node:assert/strict";
import { temporaryFolder, writeFakeKernel } from "../../../tests/fakes/fake_kernel.ts";
import { findInstalledKernel } from "./installed_kernel.ts";
import { createUnpack } from "./unpack.ts";

const unpack = createUnpack(undefined);

Deno.test("the newest installed kernel that has what guests need is found", async () => {
  await using root = await temporaryFolder();
  await writeFakeKernel(root.path, { version: "6.1.0-9-amd64" });
  const newest = await writeFakeKernel(root.path, { version: "6.1.0-10-amd64" });
  await writeFakeKernel(root.path, { version: "6.1.0-11-cloud-amd64", modules: {} });

  const found = await findInstalledKernel(root.path, unpack);

  assert.equal(found?.kernel, newest.kernel);
  assert.equal(found?.modules, newest.modules);
});

Deno.test("a kernel beside its modules is found as well", async () => {
  await using root = await temporaryFolder();
  const { kernel, modules } = await writeFakeKernel(root.path);
  await Deno.rename(kernel, `${modules}/vmlinuz`);

  assert.equal((await findInstalledKernel(root.path, unpack))?.kernel, `${modules}/vmlinuz`);
});

Deno.test("modules without a kernel, damaged ones and an empty machine give none", async () => {
  await using root = await temporaryFolder();
  assert.equal(await findInstalledKernel(root.path, unpack), undefined);

  const { kernel, modules } = await writeFakeKernel(root.path);
  await Deno.writeTextFile(`${modules}/kernel/drivers/virtio/9p.ko`, "damaged");
  assert.equal(await findInstalledKernel(root.path, unpack), undefined);

  await writeFakeKernel(root.path);
  await Deno.remove(kernel);
  assert.equal(await findInstalledKernel(root.path, unpack), undefined);
});
