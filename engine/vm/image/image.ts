/**
 * What a guest boots: a kernel and an initramfs.
 *
 * The initramfs is a cpio archive with busybox, the kernel modules, the init script and the probe
 * below. It is built from files of this machine, never downloaded, and cached until one of its
 * parts changes (a new engine version brings another init). It is not compressed: in software
 * emulation decompressing it takes longer than reading it.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import { publishFolder } from "./cache_files.ts";
import guestInit from "./guest_init.sh" with { type: "text" };
import type { StoredKernel } from "./kernel_store.ts";

/** A kernel and its initramfs, ready for QEMU. */
export interface Image {
  /** The kernel's version, such as `6.1.0-56-amd64`. */
  readonly version: string;
  /** Absolute path of a `vmlinux` or a `vmlinuz`. */
  readonly kernel: string;
  /** Absolute path of the initramfs. */
  readonly initrd: string;
}

/** A file, a folder or a character device in a cpio archive. */
export interface CpioEntry {
  /** Without a leading slash; a folder precedes its content. */
  readonly path: string;
  /** Content of a file; absent for a folder or a device. */
  readonly bytes?: Uint8Array;
  /** Major and minor number of a character device. */
  readonly device?: readonly [number, number];
  /** Default: `false`. */
  readonly executable?: boolean;
}

/** Program in every image that reports that it runs, loads the modules and powers off. */
export const PROBE_PATH = "/probe";
/** Line that the probe prints as soon as it runs. */
export const PROBE_RUNS = "engine-probe: runs";
/** Line that the probe prints last, when every module is loaded. */
export const PROBE_LOADED = "engine-probe: modules loaded";

const PROBE = `#!/busybox sh
echo "${PROBE_RUNS}"
while read -r name; do
  /busybox insmod "/modules/$name.ko" || echo "engine-probe: module $name failed"
done < /modules/order
echo "${PROBE_LOADED}"
/busybox reboot -f
`;

const ARCHIVE = "initrd.cpio";
/** File with the SHA-256 of the archive, which reveals damage. */
const CHECKSUM = "initrd.sha256";

// File types and permissions in a cpio archive.
const FOLDER = 0o040755;
const DEVICE = 0o020600;
const FILE = 0o100644;
const PROGRAM = 0o100755;
const TRAILER = "TRAILER!!!";

/**
 * Returns the image of a kernel; builds it if the cache does not have it.
 *
 * @param busybox Path of a static busybox.
 * @param init Script that runs as the guest's init; tests pass another one.
 * @throws {Error} When a part cannot be read or the cache cannot be written.
 */
export async function prepareImage(
  cache: string,
  kernel: StoredKernel,
  busybox: string,
  init: string = guestInit,
): Promise<Image> {
  const shell = await Deno.readFile(busybox);
  const folder = `${cache}/images/${kernel.id}-${imageHash(kernel, shell, init)}`;
  const image = { version: kernel.version, kernel: kernel.kernel, initrd: `${folder}/${ARCHIVE}` };
  if (await isWhole(folder)) return image;
  const archive = cpioArchive([
    ...["dev", "modules", "proc", "sys"].map((path) => ({ path })),
    // The output of init goes here until it has mounted /dev.
    { path: "dev/console", device: [5, 1] as const },
    { path: "busybox", bytes: shell, executable: true },
    { path: "init", bytes: textBytes(init), executable: true },
    { path: "probe", bytes: textBytes(PROBE), executable: true },
    ...await moduleEntries(kernel),
  ]);
  await publishFolder(folder, async (temporary) => {
    await Deno.writeFile(`${temporary}/${ARCHIVE}`, archive);
    await Deno.writeTextFile(`${temporary}/${CHECKSUM}`, sha256(archive));
  }, () => isWhole(folder));
  return image;
}

async function moduleEntries(kernel: StoredKernel): Promise<CpioEntry[]> {
  const order = kernel.modules.map(({ name }) => `${name}\n`).join("");
  const files = await Promise.all(kernel.modules.map(async ({ name, path }) => ({
    path: `modules/${name}.ko`,
    bytes: await Deno.readFile(path),
  })));
  return [{ path: "modules/order", bytes: textBytes(order) }, ...files];
}

/** Hash over everything that goes into the archive. */
function imageHash(kernel: StoredKernel, busybox: Uint8Array, init: string): string {
  const hash = nodeCrypto.createHash("sha256").update(busybox);
  for (const text of [init, PROBE, ...kernel.modules.map(({ name }) => name)]) {
    hash.update(`\0${text}`);
  }
  return hash.digest("hex").slice(0, 16);
}

async function isWhole(folder: string): Promise<boolean> {
  try {
    const expected = await Deno.readTextFile(`${folder}/${CHECKSUM}`);
    return sha256(await Deno.readFile(`${folder}/${ARCHIVE}`)) === expected;
  } catch {
    return false; // Missing or incomplete.
  }
}

function sha256(bytes: Uint8Array): string {
  return nodeCrypto.createHash("sha256").update(bytes).digest("hex");
}

/**
 * Encodes a cpio archive (`newc`), the format that the kernel unpacks at boot.
 *
 * Equal entries give equal bytes: times are zero, root owns everything, inodes are counted.
 */
export function cpioArchive(entries: readonly CpioEntry[]): Uint8Array<ArrayBuffer> {
  const parts = entries.flatMap((entry, i) => record(entry, modeOf(entry), i + 1));
  parts.push(...record({ path: TRAILER }, 0, 0));
  return concat(parts);
}

function modeOf(entry: CpioEntry): number {
  if (entry.device) return DEVICE;
  if (entry.bytes === undefined) return FOLDER;
  return entry.executable ? PROGRAM : FILE;
}

/** Header with name, then content, each padded to a multiple of four bytes. */
function record(entry: CpioEntry, mode: number, inode: number): Uint8Array[] {
  const name = textBytes(`${entry.path}\0`);
  const bytes = entry.bytes ?? new Uint8Array();
  const [major, minor] = entry.device ?? [0, 0];
  // Inode, mode, uid, gid, links, mtime, size, device of the file (2), rdev (2), name size, check.
  const fields = [inode, mode, 0, 0, 1, 0, bytes.length, 0, 0, major, minor, name.length, 0];
  const header = "070701" + fields.map((field) => field.toString(16).padStart(8, "0")).join("");
  return [concat([textBytes(header), name], 4), concat([bytes], 4)];
}

/** Joins the parts, padded with zeros to a multiple of `alignment` bytes. */
function concat(parts: readonly Uint8Array[], alignment = 1): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const joined = new Uint8Array(Math.ceil(length / alignment) * alignment);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
