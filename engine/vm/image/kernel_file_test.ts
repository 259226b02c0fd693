import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { fakeElf, fakeVmlinuz } from "../../../tests/fakes/fake_kernel.ts";
import { Random } from "../../../tests/fakes/random.ts";
import { findProgram } from "../../process/programs.ts";
import {
  bootFile,
  createUnpack,
  isStaticProgram,
  kernelVersion,
  packingOf,
} from "./kernel_file.ts";

const unpack = createUnpack(undefined);

Deno.test("the version stands in the header of a vmlinuz", () => {
  assert.equal(kernelVersion(fakeVmlinuz({ version: "6.8.0-45-generic" })), "6.8.0-45-generic");
  assert.equal(kernelVersion(fakeElf()), undefined);
  assert.equal(kernelVersion(new Uint8Array(10)), undefined);
});

Deno.test("bootFile() takes the vmlinux out of a vmlinuz, however it is packed", async () => {
  for (const packing of ["gzip", "zstd"] as const) {
    const found = await bootFile(fakeVmlinuz({ packing }), unpack);

    assert.equal(found.form, "vmlinux");
    assert.deepEqual(found.bytes, fakeElf());
    assert.equal(found.reason, undefined);
  }
});

Deno.test("bootFile() takes a vmlinux as it is", async () => {
  assert.deepEqual(await bootFile(fakeElf(), unpack), { bytes: fakeElf(), form: "vmlinux" });
});

Deno.test("bootFile() leaves a vmlinuz packed when its vmlinux has no PVH entry", async () => {
  const bytes = fakeVmlinuz({ pvh: false });

  const found = await bootFile(bytes, unpack);

  assert.equal(found.form, "vmlinuz");
  assert.equal(found.bytes, bytes);
  assert.match(found.reason!, /no PVH entry/);
});

Deno.test("bootFile() leaves a vmlinuz packed when it cannot be unpacked, and says why", async () => {
  const xz = fakeVmlinuz();
  xz.set([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], 5 * 512 + 64);
  const strange = fakeVmlinuz();
  strange.set([1, 2, 3, 4], 5 * 512 + 64);
  const old = fakeVmlinuz();
  old.set([0x07, 0x02], 0x206);
  const cut = fakeVmlinuz();
  new DataView(cut.buffer).setUint32(0x24c, cut.length, true);

  const damaged = fakeVmlinuz({ packing: "zstd" });
  const end = 5 * 512 + 64 + new DataView(damaged.buffer).getUint32(0x24c, true);
  damaged[end - 4] = 9;

  const reasons = await Promise.all([xz, strange, old, cut, damaged].map(async (bytes) => {
    const { form, reason } = await bootFile(bytes, unpack);
    return `${form}: ${reason}`;
  }));

  assert.deepEqual(reasons, [
    "vmlinuz: it is packed with xz, and xz is not installed",
    "vmlinuz: it is packed in a way that is not known here",
    "vmlinuz: its header is too old",
    "vmlinuz: it is cut off",
    "vmlinuz: it is damaged",
  ]);
});

Deno.test("bootFile() refuses what no x86-64 machine boots", async () => {
  const arm = fakeElf();
  new DataView(arm.buffer).setUint16(18, 183, true);

  await assert.rejects(bootFile(fakeElf({ note: false }), unpack), /without a PVH entry/);
  await assert.rejects(bootFile(arm, unpack), /not a Linux kernel for x86-64/);
  await assert.rejects(bootFile(new Uint8Array(), unpack), /not a Linux kernel/);
  await assert.rejects(bootFile(new Uint8Array(10_000), unpack), /not a Linux kernel/);
});

Deno.test("a program is static when it names no interpreter", () => {
  assert.equal(isStaticProgram(fakeElf({ type: 1 })), true);
  assert.equal(isStaticProgram(fakeElf({ type: 3 })), false);
  assert.equal(isStaticProgram(new TextEncoder().encode("#!/bin/sh\nexit 0\n".repeat(9))), false);
});

Deno.test("kernels with any byte changed are read or refused, never a mistake of ours", async () => {
  const random = new Random(7);
  for (let i = 0; i < 2_000; i++) {
    const bytes = i % 2 === 0 ? fakeVmlinuz() : fakeElf();
    for (let n = 0; n < 4; n++) {
      bytes[random.below(Math.min(bytes.length, 700))] = random.below(256);
    }
    kernelVersion(bytes);
    isStaticProgram(bytes);
    await bootFile(bytes, unpack).catch((thrown) => {
      assert.match(thrown.message, /kernel|vmlinux/);
    });
  }
});

const TEXT = new TextEncoder().encode("a kernel module".repeat(1_000));
const xz = await findProgram("xz", Deno.env.get("PATH") ?? "");
if (xz === undefined) console.error("No test unpacks xz: it is not installed");

Deno.test("a packing is known by its first bytes, and short input is of none", () => {
  assert.equal(packingOf(gzipSync(TEXT)), "gzip");
  assert.equal(packingOf(zstdCompressSync(TEXT)), "zstd");
  assert.equal(packingOf(new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1])), "xz");
  assert.equal(packingOf(TEXT), "none");
  assert.equal(packingOf(new Uint8Array()), "none");
  assert.equal(packingOf(new Uint8Array([0x1f])), "none");
});

Deno.test("what was packed with gzip or zstd, or not at all, comes back", async () => {
  const unpack = createUnpack(undefined);

  assert.deepEqual(await unpack(new Uint8Array(gzipSync(TEXT))), TEXT);
  assert.deepEqual(await unpack(new Uint8Array(zstdCompressSync(TEXT))), TEXT);
  assert.deepEqual(await unpack(TEXT), TEXT);
});

Deno.test({
  name: "what was packed with xz comes back, also with the filter for programs",
  ignore: xz === undefined,
  async fn() {
    const path = await Deno.makeTempFile();
    await Deno.writeFile(path, TEXT);
    for (const filter of [["--lzma2"], ["--x86", "--lzma2"]]) {
      const { stdout } = await new Deno.Command(xz!, {
        args: ["-c", "--check=crc32", ...filter, path],
      }).output();

      assert.deepEqual(await createUnpack(xz)(stdout), TEXT);
    }
    await Deno.remove(path);
  },
});

Deno.test("xz that is not installed is said", async () => {
  const packed = new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1, 2, 3]);

  await assert.rejects(createUnpack(undefined)(packed), /packed with xz, and xz is not installed/);
});

Deno.test("damaged bytes are refused, whatever they were packed with", async () => {
  const unpack = createUnpack(xz ?? "/bin/false");
  const damaged = (bytes: Uint8Array) => new Uint8Array(bytes).fill(0xff, 6, 12);

  await assert.rejects(unpack(damaged(gzipSync(TEXT))));
  await assert.rejects(unpack(damaged(zstdCompressSync(TEXT))));
  await assert.rejects(unpack(new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1, 2, 3])));
});
