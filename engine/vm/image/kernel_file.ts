/**
 * Reads kernel files: the version of a `vmlinuz`, and the compressed `vmlinux` (ELF) in it; and
 * decompresses what kernels and modules are compressed with.
 *
 * QEMU boots a `vmlinux` with a PVH entry about twice as fast as a `vmlinuz`, which decompresses
 * itself in the guest. If the `vmlinux` has no such entry, guests boot the `vmlinuz`.
 *
 * @module
 */

/** First bytes of each compression format. */
const MAGIC: readonly (readonly [Compression, readonly number[]])[] = [
  ["gzip", [0x1f, 0x8b]],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
];
const BOOT_FLAG = 0xaa55;
const HEADER_MAGIC = 0x53726448; // "HdrS"
/** First version of the boot protocol whose header locates the compressed kernel. */
const PAYLOAD_PROTOCOL = 0x0208;
const ELF_MAGIC = 0x464c457f;
const ELF_X86_64 = 62;
const PT_INTERP = 3;
const PT_NOTE = 4;
/** Type of the note `Xen` that holds the entry point for PVH. */
const PVH_ENTRY = 18;

/** Compression format; `none` for every other content. */
export type Compression = "gzip" | "xz" | "zstd" | "none";

/** Decompresses; returns bytes in no known format as they are. */
export type Decompress = (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>>;

/** The file that a guest boots. */
export interface BootFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** A `vmlinux` boots directly; a `vmlinuz` first decompresses itself, which takes longer. */
  readonly form: "vmlinux" | "vmlinuz";
  /** Why `form` is not `vmlinux`. */
  readonly reason?: string;
}

/** Version in the header of a `vmlinuz`, such as `6.1.0-56-amd64`; `undefined` without one. */
export function kernelVersion(bytes: Uint8Array): string | undefined {
  const view = viewOf(bytes);
  if (!isBzImage(view)) return undefined;
  const pointer = view.getUint16(0x20e, true);
  if (pointer === 0) return undefined;
  const at = 0x200 + pointer;
  const text = new TextDecoder().decode(bytes.subarray(at, at + 256));
  return /^[^\s\0]+/.exec(text)?.[0];
}

/**
 * Chooses what to boot of a kernel file, a `vmlinuz` or a `vmlinux`.
 *
 * @throws {Error} With the reason when no x86-64 machine can boot it.
 */
export async function bootFile(
  bytes: Uint8Array<ArrayBuffer>,
  decompress: Decompress,
): Promise<BootFile> {
  if (isElf(bytes)) {
    if (hasPvhEntry(bytes)) return { bytes, form: "vmlinux" };
    throw new Error("it is a vmlinux without a PVH entry; use the vmlinuz of the same kernel");
  }
  if (!isBzImage(viewOf(bytes))) throw new Error("it is not a Linux kernel for x86-64");
  try {
    const { compressed, length } = payloadOf(bytes);
    const vmlinux = await decompress(compressed);
    if (vmlinux.length !== length) throw new Error("it is damaged");
    if (hasPvhEntry(vmlinux)) return { bytes: vmlinux, form: "vmlinux" };
    return { bytes, form: "vmlinuz", reason: "its vmlinux has no PVH entry" };
  } catch (thrown) {
    return { bytes, form: "vmlinuz", reason: (thrown as Error).message };
  }
}

/** Whether a program is statically linked, so that it runs in a guest without libraries. */
export function isStaticProgram(bytes: Uint8Array): boolean {
  return isElf(bytes) && ![...programHeaders(bytes)].some(({ type }) => type === PT_INTERP);
}

/**
 * Returns a {@linkcode Decompress} for gzip, xz and zstd. It throws an `Error` with the reason when
 * bytes are damaged or the program `xz` is needed and missing. For truncated zstd it returns what
 * it could decompress, so callers that know the length must compare it.
 *
 * The runtime has no xz, and busybox's does not support the filter that kernels are compressed
 * with, hence the program.
 *
 * @param xz Path of the program `xz`; `undefined` when it is not installed.
 */
export function createDecompress(xz: string | undefined): Decompress {
  return async (bytes) => {
    switch (compressionOf(bytes)) {
      case "none":
        return bytes;
      case "gzip":
        return await gunzip(bytes);
      case "zstd":
        return await decompressZstd(bytes);
      case "xz":
        if (xz === undefined) throw new Error("it is compressed with xz, and xz is not installed");
        return await pipe(xz, ["-dc"], bytes);
    }
  };
}

function isBzImage(view: DataView): boolean {
  return view.byteLength > 0x260 && view.getUint16(0x1fe, true) === BOOT_FLAG &&
    view.getUint32(0x202, true) === HEADER_MAGIC;
}

/** The compressed `vmlinux` in a `vmlinuz`, and its decompressed length in bytes. */
function payloadOf(
  bytes: Uint8Array<ArrayBuffer>,
): { compressed: Uint8Array<ArrayBuffer>; length: number } {
  const view = viewOf(bytes);
  if (view.getUint16(0x206, true) < PAYLOAD_PROTOCOL) throw new Error("its header is too old");
  const start = ((bytes[0x1f1] || 4) + 1) * 512 + view.getUint32(0x248, true);
  const end = start + view.getUint32(0x24c, true);
  if (end > bytes.length || end < start + 4) throw new Error("it is truncated");
  const payload = bytes.subarray(start, end);
  const format = compressionOf(payload);
  if (format === "none") throw new Error("its compression format is not supported");
  // The last four bytes are the length: part of gzip's own format, appended to the others.
  const length = view.getUint32(end - 4, true);
  return { compressed: format === "gzip" ? payload : payload.subarray(0, -4), length };
}

function isElf(bytes: Uint8Array): boolean {
  const view = viewOf(bytes);
  return view.byteLength > 64 && view.getUint32(0, true) === ELF_MAGIC &&
    view.getUint16(18, true) === ELF_X86_64;
}

function hasPvhEntry(bytes: Uint8Array): boolean {
  if (!isElf(bytes)) return false;
  for (const { type, offset, size } of programHeaders(bytes)) {
    if (type !== PT_NOTE) continue;
    for (const note of notes(bytes.subarray(offset, offset + size))) {
      if (note.name === "Xen" && note.type === PVH_ENTRY) return true;
    }
  }
  return false;
}

function* programHeaders(bytes: Uint8Array) {
  const view = viewOf(bytes);
  const table = Number(view.getBigUint64(32, true));
  const entrySize = view.getUint16(54, true);
  for (let i = 0; i < view.getUint16(56, true); i++) {
    const at = table + i * entrySize;
    if (entrySize < 56 || at + 56 > bytes.length) return;
    yield {
      type: view.getUint32(at, true),
      offset: Number(view.getBigUint64(at + 8, true)),
      size: Number(view.getBigUint64(at + 32, true)),
    };
  }
}

function* notes(bytes: Uint8Array) {
  const view = viewOf(bytes);
  const aligned = (length: number) => Math.ceil(length / 4) * 4;
  for (let at = 0; at + 12 <= bytes.length;) {
    const nameLength = view.getUint32(at, true);
    const name = new TextDecoder().decode(bytes.subarray(at + 12, at + 12 + nameLength));
    yield { name: name.replace(/\0$/, ""), type: view.getUint32(at + 8, true) };
    at += 12 + aligned(nameLength) + aligned(view.getUint32(at + 4, true));
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Recognises a compression format by its magic bytes. */
export function compressionOf(bytes: Uint8Array): Compression {
  const found = MAGIC.find(([, magic]) => magic.every((byte, i) => bytes[i] === byte));
  return found?.[0] ?? "none";
}

async function decompressZstd(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  // Imported here because loading node:zlib takes 25 ms, even with `import defer`.
  const { zstdDecompressSync } = await import("node:zlib");
  return new Uint8Array(zstdDecompressSync(bytes));
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).bytes();
}

/** Output of a program for the given input. */
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
  const written = new Blob([bytes]).stream().pipeTo(child.stdin)
    .catch(() => {}); // The program ended early; its exit code tells the reason.
  const [{ success, stdout, stderr }] = await Promise.all([child.output(), written]);
  if (success) return stdout;
  throw new Error(`${program}: ${new TextDecoder().decode(stderr).trim() || "failed"}`);
}
