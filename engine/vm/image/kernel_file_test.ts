import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { fakeElf, fakeVmlinuz } from "../../../tests/fakes/fake_vm.ts";
import { Random } from "../../../tests/fakes/random.ts";
import { findProgram } from "../../process/programs.ts";
import {
  bootFile,
  compressionOf,
  createDecompress,
  isStaticProgram,
  kernelVersion,
} from "./kernel_file.ts";

const decompress = createDecompress(undefined);

Deno.test("kernelVersion() reads the header of a vmlinuz", () => {
  assert.equal(kernelVersion(fakeVmlinuz({ version: "6.8.0-45-generic" })), "6.8.0-45-generic");
  assert.equal(kernelVersion(fakeElf()), undefined);
  assert.equal(kernelVersion(new Uint8Array(10)), undefined);
});

Deno.test("bootFile() extracts the vmlinux from a vmlinuz in every supported compression", async () => {
  for (const packing of ["gzip", "zstd"] as const) {
    const found = await bootFile(fakeVmlinuz({ packing }), decompress);

    assert.equal(found.form, "vmlinux");
    assert.deepEqual(found.bytes, fakeElf());
    assert.equal(found.reason, undefined);
  }
});

Deno.test("bootFile() returns a vmlinux unchanged", async () => {
  assert.deepEqual(await bootFile(fakeElf(), decompress), { bytes: fakeElf(), form: "vmlinux" });
});

Deno.test("bootFile() returns the vmlinuz when its vmlinux has no PVH entry", async () => {
  const bytes = fakeVmlinuz({ pvh: false });

  const found = await bootFile(bytes, decompress);

  assert.equal(found.form, "vmlinuz");
  assert.equal(found.bytes, bytes);
  assert.match(found.reason!, /no PVH entry/);
});

Deno.test("bootFile() returns the vmlinuz with the reason when it cannot be decompressed", async () => {
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
    const { form, reason } = await bootFile(bytes, decompress);
    return `${form}: ${reason}`;
  }));

  assert.deepEqual(reasons, [
    "vmlinuz: it is compressed with xz, and xz is not installed",
    "vmlinuz: its compression format is not supported",
    "vmlinuz: its header is too old",
    "vmlinuz: it is truncated",
    "vmlinuz: it is damaged",
  ]);
});

Deno.test("bootFile() rejects files that no x86-64 machine boots", async () => {
  const arm = fakeElf();
  new DataView(arm.buffer).setUint16(18, 183, true);

  await assert.rejects(bootFile(fakeElf({ note: false }), decompress), /without a PVH entry/);
  await assert.rejects(bootFile(arm, decompress), /not a Linux kernel for x86-64/);
  await assert.rejects(bootFile(new Uint8Array(), decompress), /not a Linux kernel/);
  await assert.rejects(bootFile(new Uint8Array(10_000), decompress), /not a Linux kernel/);
});

Deno.test("isStaticProgram() is true for a program without an interpreter", () => {
  assert.equal(isStaticProgram(fakeElf({ type: 1 })), true);
  assert.equal(isStaticProgram(fakeElf({ type: 3 })), false);
  assert.equal(isStaticProgram(new TextEncoder().encode("#!/bin/sh\nexit 0\n".repeat(9))), false);
});

Deno.test("bootFile() reads or rejects a kernel with any byte changed, without an internal error", async () => {
  const random = new Random(7);
  for (let i = 0; i < 2_000; i++) {
    const bytes = i % 2 === 0 ? fakeVmlinuz() : fakeElf();
    for (let n = 0; n < 4; n++) {
      bytes[random.below(Math.min(bytes.length, 700))] = random.below(256);
    }
    kernelVersion(bytes);
    isStaticProgram(bytes);
    await bootFile(bytes, decompress).catch((thrown) => {
      assert.match(thrown.message, /kernel|vmlinux/);
    });
  }
});

const TEXT = new TextEncoder().encode("a kernel module".repeat(1_000));
const xz = await findProgram("xz", Deno.env.get("PATH") ?? "");
if (xz === undefined) console.error("No test unpacks xz: it is not installed");

Deno.test("compressionOf() recognises the magic bytes; short input is none", () => {
  assert.equal(compressionOf(gzipSync(TEXT)), "gzip");
  assert.equal(compressionOf(zstdCompressSync(TEXT)), "zstd");
  assert.equal(compressionOf(new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1])), "xz");
  assert.equal(compressionOf(TEXT), "none");
  assert.equal(compressionOf(new Uint8Array()), "none");
  assert.equal(compressionOf(new Uint8Array([0x1f])), "none");
});

Deno.test("createDecompress() decompresses gzip and zstd and returns other bytes unchanged", async () => {
  const decompress = createDecompress(undefined);

  assert.deepEqual(await decompress(new Uint8Array(gzipSync(TEXT))), TEXT);
  assert.deepEqual(await decompress(new Uint8Array(zstdCompressSync(TEXT))), TEXT);
  assert.deepEqual(await decompress(TEXT), TEXT);
});

Deno.test({
  name: "createDecompress() decompresses xz, also with the x86 filter",
  ignore: xz === undefined,
  async fn() {
    const path = await Deno.makeTempFile();
    await Deno.writeFile(path, TEXT);
    for (const filter of [["--lzma2"], ["--x86", "--lzma2"]]) {
      const { stdout } = await new Deno.Command(xz!, {
        args: ["-c", "--check=crc32", ...filter, path],
      }).output();

      assert.deepEqual(await createDecompress(xz)(stdout), TEXT);
    }
    await Deno.remove(path);
  },
});

Deno.test("createDecompress() rejects xz when the program is not installed", async () => {
  const packed = new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1, 2, 3]);

  await assert.rejects(
    createDecompress(undefined)(packed),
    /compressed with xz, and xz is not installed/,
  );
});

Deno.test("createDecompress() rejects damaged bytes in every format", async () => {
  const decompress = createDecompress(xz ?? "/bin/false");
  const damaged = (bytes: Uint8Array) => new Uint8Array(bytes).fill(0xff, 6, 12);

  await assert.rejects(decompress(damaged(gzipSync(TEXT))));
  await assert.rejects(decompress(damaged(zstdCompressSync(TEXT))));
  await assert.rejects(decompress(new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1, 2, 3])));
});
