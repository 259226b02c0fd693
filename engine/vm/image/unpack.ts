/**
 * Unpacks what kernels and their modules are packed with: gzip, xz, zstd.
 *
 * There is no xz in the runtime, and busybox's does not know the filter that kernels are packed
 * with, so `xz` does that.
 *
 * @module
 */

/** How bytes are packed; `none` when by nothing that is known here. */
export type Packing = "gzip" | "xz" | "zstd" | "none";

const MAGIC: readonly (readonly [Packing, readonly number[]])[] = [
  ["gzip", [0x1f, 0x8b]],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
];

/** Recognises a packing by its first bytes. */
export function packingOf(bytes: Uint8Array): Packing {
  const found = MAGIC.find(([, magic]) => magic.every((byte, i) => bytes[i] === byte));
  return found?.[0] ?? "none";
}

/** Unpacks; bytes that are not packed come back as they are. */
export type Unpack = (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>>;

/**
 * Makes an {@linkcode Unpack}, which throws an `Error` that says why when bytes are damaged or
 * there is nothing to unpack them with. Of zstd that is cut off it gives what there is; who knows
 * the length has to compare.
 *
 * @param xz Path of the program `xz`; `undefined` when there is none.
 */
export function createUnpack(xz: string | undefined): Unpack {
  return async (bytes) => {
    switch (packingOf(bytes)) {
      case "none":
        return bytes;
      case "gzip":
        return await gunzip(bytes);
      case "zstd":
        return await unpackZstd(bytes);
      case "xz":
        if (xz === undefined) throw new Error("it is packed with xz, and xz is not installed");
        return await pipe(xz, ["-dc"], bytes);
    }
  };
}

async function unpackZstd(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  // Here: the module takes 25 ms, also when its import is deferred.
  const { zstdDecompressSync } = await import("node:zlib");
  return new Uint8Array(zstdDecompressSync(bytes));
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).bytes();
}

/** What a program prints when it is given bytes. */
async function pipe(
  program: string,
  args: readonly string[],
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const child = new Deno.Command(program, {
    args: [...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const given = new Blob([bytes]).stream().pipeTo(child.stdin)
    .catch(() => {}); // It ended before it had read all; its exit code says why.
  const [{ success, stdout, stderr }] = await Promise.all([child.output(), given]);
  if (success) return stdout;
  throw new Error(`${program}: ${new TextDecoder().decode(stderr).trim() || "failed"}`);
}
