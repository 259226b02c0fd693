import assert from "node:assert/strict";
import { fakeElf, temporaryFolder, writeFakeKernel } from "../../../tests/fakes/fake_vm.ts";
import guestInit from "./guest_init.sh" with { type: "text" };
import { cpioArchive, prepareImage } from "./image.ts";
import { storeKernel } from "./kernel_store.ts";
import { createDecompress } from "./kernel_file.ts";

async function setup() {
  const folder = await temporaryFolder();
  const source = await writeFakeKernel(folder.path);
  const cache = `${folder.path}/cache`;
  const kernel = await storeKernel(cache, source, createDecompress(undefined));
  const busybox = `${folder.path}/busybox`;
  await Deno.writeFile(busybox, fakeElf({ type: 1 }));
  return { ...folder, cache, kernel, busybox };
}

async function archiveText(path: string): Promise<string> {
  return new TextDecoder("latin1").decode(await Deno.readFile(path));
}

Deno.test("an image has the kernel and an initramfs with busybox, init, probe and modules", async () => {
  await using at = await setup();

  const image = await prepareImage(at.cache, at.kernel, at.busybox);

  assert.equal(image.kernel, at.kernel.kernel);
  assert.equal(image.version, at.kernel.version);
  const text = await archiveText(image.initrd);
  assert.ok(text.includes(new TextDecoder("latin1").decode(new TextEncoder().encode(guestInit))));
  assert.ok(text.includes("virtio_ring\nvirtio\nvirtio_pci\n"), "the load order");
  for (const name of ["busybox\0", "init\0", "probe\0", "modules/9p.ko\0", "dev/console\0"]) {
    assert.ok(text.includes(name), name);
  }
});

Deno.test("prepareImage() builds an image once", async () => {
  await using at = await setup();
  const first = await prepareImage(at.cache, at.kernel, at.busybox);
  const built = await Deno.stat(first.initrd);

  const second = await prepareImage(at.cache, at.kernel, at.busybox);

  assert.deepEqual(second, first);
  assert.equal((await Deno.stat(second.initrd)).ino, built.ino);
});

Deno.test("another init or busybox gives another image, and the old one stays", async () => {
  await using at = await setup();
  const first = await prepareImage(at.cache, at.kernel, at.busybox, "#!/busybox sh\n# 1\n");

  const second = await prepareImage(at.cache, at.kernel, at.busybox, "#!/busybox sh\n# 2\n");
  await Deno.writeFile(at.busybox, new Uint8Array([...fakeElf({ type: 1 }), 1]));
  const third = await prepareImage(at.cache, at.kernel, at.busybox, "#!/busybox sh\n# 2\n");

  assert.equal(new Set([first.initrd, second.initrd, third.initrd]).size, 3);
  assert.ok((await archiveText(first.initrd)).includes("# 1"));
  assert.ok((await archiveText(second.initrd)).includes("# 2"));
});

Deno.test("prepareImage() rebuilds a damaged image", async () => {
  await using at = await setup();
  const image = await prepareImage(at.cache, at.kernel, at.busybox);
  const whole = await Deno.readFile(image.initrd);
  const folder = image.initrd.slice(0, image.initrd.lastIndexOf("/"));
  const damages = [
    () => Deno.truncate(image.initrd, 1_000),
    () => Deno.writeFile(image.initrd, whole.toReversed()),
    () => Deno.remove(image.initrd),
    () => Deno.remove(`${folder}/initrd.sha256`),
  ];

  for (const damage of damages) {
    await damage();
    assert.deepEqual(await prepareImage(at.cache, at.kernel, at.busybox), image);
    assert.deepEqual(await Deno.readFile(image.initrd), whole);
  }
});

Deno.test("concurrent builds of the same image all succeed", async () => {
  await using at = await setup();

  const images = await Promise.all(
    Array.from({ length: 12 }, () => prepareImage(at.cache, at.kernel, at.busybox)),
  );

  assert.equal(new Set(images.map(({ initrd }) => initrd)).size, 1);
  const left = await Array.fromAsync(Deno.readDir(`${at.cache}/images`));
  assert.equal(left.length, 1);
});

Deno.test("prepareImage() rejects when a part is missing", async () => {
  await using at = await setup();

  await assert.rejects(prepareImage(at.cache, at.kernel, `${at.path}/none`), /No such file/);
  await Deno.remove(at.kernel.modules[0]!.path);
  await assert.rejects(prepareImage(at.cache, at.kernel, at.busybox), /No such file/);
});

/** Decodes a cpio archive. */
function read(archive: Uint8Array) {
  const text = (from: number, to: number) =>
    new TextDecoder("latin1").decode(archive.subarray(from, to));
  const found: { path: string; mode: string; bytes: string; owner: number; device: string }[] = [];
  for (let at = 0; at < archive.length;) {
    assert.equal(text(at, at + 6), "070701");
    const field = (i: number) => parseInt(text(at + 6 + i * 8, at + 14 + i * 8), 16);
    const name = text(at + 110, at + 110 + field(11) - 1);
    const start = Math.ceil((at + 110 + field(11)) / 4) * 4;
    const bytes = text(start, start + field(6));
    const device = `${field(9)}:${field(10)}`;
    found.push({ path: name, mode: field(1).toString(8), bytes, owner: field(2), device });
    at = Math.ceil((start + field(6)) / 4) * 4;
  }
  return found;
}

Deno.test("cpioArchive() encodes folders, files, programs, devices and the trailer", () => {
  const bytes = new TextEncoder().encode("hello");

  const archive = cpioArchive([
    { path: "bin" },
    { path: "bin/sh", bytes, executable: true },
    { path: "note", bytes: new Uint8Array() },
    { path: "console", device: [5, 1] },
  ]);

  assert.deepEqual(read(archive), [
    { path: "bin", mode: "40755", bytes: "", owner: 0, device: "0:0" },
    { path: "bin/sh", mode: "100755", bytes: "hello", owner: 0, device: "0:0" },
    { path: "note", mode: "100644", bytes: "", owner: 0, device: "0:0" },
    { path: "console", mode: "20600", bytes: "", owner: 0, device: "5:1" },
    { path: "TRAILER!!!", mode: "0", bytes: "", owner: 0, device: "0:0" },
  ]);
});

Deno.test("cpioArchive() aligns entries to four bytes for names and contents of any length", () => {
  for (let length = 0; length < 9; length++) {
    const entries = [
      { path: "x".repeat(length + 1), bytes: new Uint8Array(length).fill(65) },
      { path: "next", bytes: new Uint8Array(1) },
    ];

    const found = read(cpioArchive(entries));

    assert.deepEqual(found.map(({ path }) => path), [entries[0]!.path, "next", "TRAILER!!!"]);
    assert.equal(found[0]!.bytes, "A".repeat(length));
  }
});

Deno.test("cpioArchive() gives equal bytes for equal entries", () => {
  const entries = [{ path: "a", bytes: new Uint8Array([1, 2, 3]) }, { path: "b" }];

  assert.deepEqual(cpioArchive(entries), cpioArchive(structuredClone(entries)));
});
