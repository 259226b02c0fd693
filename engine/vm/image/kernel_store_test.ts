import assert from "node:assert/strict";
import {
  FAKE_VERSION,
  fakeElf,
  fakeVmlinuz,
  temporaryFolder,
  writeFakeKernel,
} from "../../../tests/fakes/fake_vm.ts";
import { findInstalledKernel, GUEST_MODULES, openKernel, storeKernel } from "./kernel_store.ts";
import { createDecompress } from "./kernel_file.ts";

const decompress = createDecompress(undefined);

async function setup() {
  const folder = await temporaryFolder();
  const cache = `${folder.path}/cache`;
  const source = await writeFakeKernel(folder.path);
  return { ...folder, cache, source };
}

Deno.test("openKernel() finds a stored kernel after its source is gone", async () => {
  await using at = await setup();
  const stored = await storeKernel(at.cache, at.source, decompress);
  await Deno.remove(`${at.path}/boot`, { recursive: true });
  await Deno.remove(`${at.path}/lib`, { recursive: true });

  const found = await openKernel(at.cache);

  assert.deepEqual(found, stored);
  assert.equal(stored.version, FAKE_VERSION);
  assert.equal(stored.origin, `linux-image-${FAKE_VERSION}`);
  assert.deepEqual(await Deno.readFile(stored.kernel), fakeElf());
});

Deno.test("the modules of a stored kernel are in load order", async () => {
  await using at = await setup();

  const { modules } = await storeKernel(at.cache, at.source, decompress);

  const names = modules.map(({ name }) => name);
  assert.deepEqual(names, [
    "virtio_ring",
    "virtio",
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9pnet",
    "9p",
    "virtio_net",
    "virtio_balloon",
  ]);
  for (const { path } of modules) assert.ok((await Deno.stat(path)).isFile, path);
});

Deno.test("storeKernel() rejects a kernel without a guest module and changes nothing", async () => {
  await using at = await setup();
  const before = await storeKernel(at.cache, at.source, decompress);
  const version = "6.1.0-7-cloud-amd64";
  const modules = Object.fromEntries(GUEST_MODULES.slice(0, 2).map((name) => [name, []]));
  const cloud = await writeFakeKernel(`${at.path}/cloud`, { version, modules });

  const storing = storeKernel(at.cache, cloud, decompress);

  await assert.rejects(
    storing,
    /cloud-amd64 does not have what guests need: module 9pnet_virtio, 9p/,
  );
  assert.deepEqual(await openKernel(at.cache), before);
});

Deno.test("built-in modules are not missing", async () => {
  await using at = await setup();
  const source = await writeFakeKernel(`${at.path}/own`, { modules: {}, builtin: GUEST_MODULES });

  const stored = await storeKernel(at.cache, source, decompress);

  assert.deepEqual(stored.modules, []);
  assert.deepEqual(await openKernel(at.cache), stored);
});

Deno.test("storeKernel() rejects kernel and modules of different versions", async () => {
  await using at = await setup();
  const source = await writeFakeKernel(`${at.path}/mixed`, { modulesFor: "6.1.0-8-amd64" });

  const storing = storeKernel(at.cache, source, decompress);

  await assert.rejects(storing, /do not belong together: .* is 6.1.0-7-amd64, .* 6.1.0-8-amd64/);
});

Deno.test("storeKernel() rejects a file that is missing or not a kernel", async () => {
  await using at = await setup();
  const text = `${at.path}/text`;
  await Deno.writeTextFile(text, "not a kernel");

  for (const kernel of [text, `${at.path}/none`, at.path]) {
    await assert.rejects(storeKernel(at.cache, { ...at.source, kernel }, decompress));
  }
  await assert.rejects(
    storeKernel(at.cache, { ...at.source, modules: `${at.path}/none` }, decompress),
  );
  assert.deepEqual(await openKernel(at.cache), { problem: "a guest kernel" });
});

Deno.test("storeKernel() stores the vmlinuz and prints why when it cannot be decompressed", async () => {
  await using at = await setup();
  const packed = fakeVmlinuz({ pvh: false });
  await Deno.writeFile(at.source.kernel, packed);
  const printed: string[] = [];

  const stored = await storeKernel(at.cache, at.source, decompress, (line) => printed.push(line));

  assert.equal(stored.form, "vmlinuz");
  assert.deepEqual(await Deno.readFile(stored.kernel), packed);
  assert.match(printed.join(), /as it is, which is slower: its vmlinux has no PVH entry/);
});

Deno.test("concurrent storeKernel() calls for the same kernel both succeed", async () => {
  await using at = await setup();

  const [one, two] = await Promise.all([
    storeKernel(at.cache, at.source, decompress),
    storeKernel(at.cache, at.source, decompress),
  ]);

  assert.deepEqual(one, two);
  assert.deepEqual(await openKernel(at.cache), one);
});

Deno.test("openKernel() rejects a kernel with a damaged file until it is stored again", async (t) => {
  const damages: Record<string, (folder: string) => Promise<void>> = {
    "half a kernel": (folder) => Deno.truncate(`${folder}/vmlinux`, 100),
    "no module": (folder) => Deno.remove(`${folder}/modules/9p.ko`),
    "half a module": (folder) => Deno.truncate(`${folder}/modules/9p.ko`, 3),
    "no record": (folder) => Deno.remove(`${folder}/kernel.json`),
    "half a record": (folder) => Deno.truncate(`${folder}/kernel.json`, 40),
    "a record of nothing": (folder) => Deno.writeTextFile(`${folder}/kernel.json`, "null"),
    "a record of another format": (folder) =>
      Deno.writeTextFile(`${folder}/kernel.json`, '{"format":99,"version":"6","form":"vmlinux"}'),
  };
  for (const [name, damage] of Object.entries(damages)) {
    await t.step(name, async () => {
      await using at = await setup();
      const stored = await storeKernel(at.cache, at.source, decompress);
      await damage(`${at.cache}/kernels/${stored.id}`);

      const found = await openKernel(at.cache);

      assert.match((found as { problem: string }).problem, /^a guest kernel \(.*is damaged\)$/);
      assert.deepEqual(await storeKernel(at.cache, at.source, decompress), stored);
      assert.deepEqual(await openKernel(at.cache), stored);
    });
  }
});

Deno.test("openKernel() reports a `current` file that names no stored kernel", async () => {
  await using at = await setup();
  await Deno.mkdir(`${at.cache}/kernels`, { recursive: true });

  for (const current of ["6.1.0-7-amd64-12345678", "../../etc", "\0"]) {
    await Deno.writeTextFile(`${at.cache}/kernels/current`, current);

    assert.match((await openKernel(at.cache) as { problem: string }).problem, /damaged/);
  }
});

Deno.test("openKernel() names the module that a kernel from an older engine lacks", async () => {
  await using at = await setup();
  const stored = await storeKernel(at.cache, at.source, decompress);
  const path = `${at.cache}/kernels/${stored.id}/kernel.json`;
  const record = JSON.parse(await Deno.readTextFile(path));
  delete record.modules["9p"];
  await Deno.writeTextFile(path, JSON.stringify(record));

  const found = await openKernel(at.cache);

  assert.match((found as { problem: string }).problem, /^a guest kernel with module 9p /);
});

Deno.test("findInstalledKernel() finds the newest kernel with all guest modules", async () => {
  await using root = await temporaryFolder();
  await writeFakeKernel(root.path, { version: "6.1.0-9-amd64" });
  const newest = await writeFakeKernel(root.path, { version: "6.1.0-10-amd64" });
  await writeFakeKernel(root.path, { version: "6.1.0-11-cloud-amd64", modules: {} });

  const found = await findInstalledKernel(root.path, decompress);

  assert.equal(found?.kernel, newest.kernel);
  assert.equal(found?.modules, newest.modules);
});

Deno.test("findInstalledKernel() finds a kernel in its module folder", async () => {
  await using root = await temporaryFolder();
  const { kernel, modules } = await writeFakeKernel(root.path);
  await Deno.rename(kernel, `${modules}/vmlinuz`);

  assert.equal(
    (await findInstalledKernel(root.path, decompress))?.kernel,
    `${modules}/vmlinuz`,
  );
});

Deno.test("findInstalledKernel() finds none without a kernel, with damaged modules or on an empty machine", async () => {
  await using root = await temporaryFolder();
  assert.equal(await findInstalledKernel(root.path, decompress), undefined);

  const { kernel, modules } = await writeFakeKernel(root.path);
  await Deno.writeTextFile(`${modules}/kernel/drivers/virtio/9p.ko`, "damaged");
  assert.equal(await findInstalledKernel(root.path, decompress), undefined);

  await writeFakeKernel(root.path);
  await Deno.remove(kernel);
  assert.equal(await findInstalledKernel(root.path, decompress), undefined);
});
