/**
 * Reads kernel files: what version a `vmlinuz` is, and the `vmlinux` (ELF) packed in it.
 *
 * QEMU boots a `vmlinux` with a PVH entry about twice as fast as the `vmlinuz`, which would unpack
 * itself in the guest. Without such an entry the `vmlinuz` is what boots.
 *
 * @module
 */

const BOOT_FLAG = 0xaa55;
const HEADER_MAGIC = 0x53726448; // "HdrS"
/** From this version of the boot protocol on, a header says where the packed kernel lies. */
const PAYLOAD_PROTOCOL = 0x0208;
const ELF_MAGIC = 0x464c457f;
const ELF_X86_64 = 62;
const PT_INTERP = 3;
const PT_NOTE = 4;
/** Type of the note `Xen` that holds the entry point for PVH. */
const PVH_ENTRY = 18;

/** What a guest boots, and how. */
export interface BootFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** `vmlinux`: boots directly; `vmlinuz`: unpacks itself in the guest, which takes longer. */
  readonly form: "vmlinux" | "vmlinuz";
  /** Why it is not a `vmlinux`. */
  readonly reason?: string;
}

/** The version in the header of a `vmlinuz`, such as `6.1.0-56-amd64`; `undefined` elsewhere. */
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
 * What to boot of a kernel file, `vmlinuz` or `vmlinux`.
 *
 * @throws {Error} Saying why no x86-64 machine can boot it.
 */
export async function bootFile(
  bytes: Uint8Array<ArrayBuffer>,
  unpack: Unpack,
): Promise<BootFile> {
  if (isElf(bytes)) {
    if (hasPvhEntry(bytes)) return { bytes, form: "vmlinux" };
    throw new Error("it is a vmlinux without a PVH entry; use the vmlinuz of the same kernel");
  }
  if (!isBzImage(viewOf(bytes))) throw new Error("it is not a Linux kernel for x86-64");
  try {
    const { packed, length } = payloadOf(bytes);
    const vmlinux = await unpack(packed);
    if (vmlinux.length !== length) throw new Error("it is damaged");
    if (hasPvhEntry(vmlinux)) return { bytes: vmlinux, form: "vmlinux" };
    return { bytes, form: "vmlinuz", reason: "its vmlinux has no PVH entry" };
  } catch (thrown) {
    return { bytes, form: "vmlinuz", reason: (thrown as Error).message };
  }
}

/** Whether a program needs no libraries, so that it runs where there is nothing else. */
export function isStaticProgram(bytes: Uint8Array): boolean {
  return isElf(bytes) && ![...programHeaders(bytes)].some(({ type }) => type === PT_INTERP);
}

function isBzImage(view: DataView): boolean {
  return view.byteLength > 0x260 && view.getUint16(0x1fe, true) === BOOT_FLAG &&
    view.getUint32(0x202, true) === HEADER_MAGIC;
}

/** The packed `vmlinux` inside a `vmlinuz`, and how long it is when it is unpacked. */
function payloadOf(
  bytes: Uint8Array<ArrayBuffer>,
): { packed: Uint8Array<ArrayBuffer>; length: number } {
  const view = viewOf(bytes);
  if (view.getUint16(0x206, true) < PAYLOAD_PROTOCOL) throw new Error("its header is too old");
  const start = ((bytes[0x1f1] || 4) + 1) * 512 + view.getUint32(0x248, true);
  const end = start + view.getUint32(0x24c, true);
  if (end > bytes.length || end < start + 4) throw new Error("it is cut off");
  const payload = bytes.subarray(start, end);
  const packing = packingOf(payload);
  if (packing === "none") throw new Error("it is packed in a way that is not known here");
  // The length stands at the end: gzip has it itself, the others are followed by it.
  const length = view.getUint32(end - 4, true);
  return { packed: packing === "gzip" ? payload : payload.subarray(0, -4), length };
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
