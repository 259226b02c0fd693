import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { findProgram } from "../../process/programs.ts";
import { createUnpack, packingOf } from "./unpack.ts";

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
