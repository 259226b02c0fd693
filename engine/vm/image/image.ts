/**
 * What a guest boots: a kernel, and the files it starts with.
 *
 * The files are busybox, the modules and the two programs below, in one archive. It is made of what
 * is on this machine, whenever one of its parts has changed (a new engine brings another init), and
 * kept in the cache; nothing is ever downloaded for it. The archive is not compressed: in software
 * emulation unpacking it would take longer than reading it.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { publishFolder } from "./cache_files.ts";
import guestInit from "./guest_init.sh" with { type: "text" };
import type { StoredKernel } from "./kernel_store.ts";

/** A kernel and its first files, ready for QEMU. */
export interface Image {
  /** The kernel's version, such as `6.1.0-56-amd64`. */
  readonly version: string;
  /** Absolute path of a `vmlinux` or a `vmlinuz`. */
  readonly kernel: string;
  /** Absolute path of the archive. */
  readonly initrd: string;
}

/** A program in every image that says that it runs, loads the modules and ends. */
export const PROBE_PATH = "/probe";
/** What that prints as soon as it runs. */
export const PROBE_RUNS = "engine-probe: runs";
/** What it prints when every module is loaded; nothing else follows. */
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
/** Holds the hash of the archive, to tell a damaged one. */
const CHECK = "initrd.sha256";

/**
 * The image of a kernel, from the cache or made now.
 *
 * @param busybox Path of a static busybox.
 * @param init The first program of a guest; tests lend another one.
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
    // Where the first program's output goes, before it has mounted anything.
    { path: "dev/console", device: [5, 1] as const },
    { path: "busybox", bytes: shell, executable: true },
    { path: "init", bytes: textBytes(init), executable: true },
    { path: "probe", bytes: textBytes(PROBE), executable: true },
    ...await moduleEntries(kernel),
  ]);
  await publishFolder(folder, async (temporary) => {
    await Deno.writeFile(`${temporary}/${ARCHIVE}`, archive);
    await Deno.writeTextFile(`${temporary}/${CHECK}`, sha256(archive));
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

/** Differs whenever the archive would. */
function imageHash(kernel: StoredKernel, busybox: Uint8Array, init: string): string {
  const hash = nodeCrypto.createHash("sha256").update(busybox);
  for (const text of [init, PROBE, ...kernel.modules.map(({ name }) => name)]) {
    hash.update(`\0${text}`);
  }
  return hash.digest("hex").slice(0, 16);
}

async function isWhole(folder: string): Promise<boolean> {
  try {
    const expected = await Deno.readTextFile(`${folder}/${CHECK}`);
    return sha256(await Deno.readFile(`${folder}/${ARCHIVE}`)) === expected;
  } catch {
    return false; // Not made yet, or by halves.
  }
}

function sha256(bytes: Uint8Array): string {
  return nodeCrypto.createHash("sha256").update(bytes).digest("hex");
}

function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A file, a folder or a character device in an archive. */
export interface CpioEntry {
  /** Without a slash at its beginning; folders come before what lies in them. */
  readonly path: string;
  /** What a file holds; left out for a folder or a device. */
  readonly bytes?: Uint8Array;
  /** Major and minor number of a character device. */
  readonly device?: readonly [number, number];
  /** Whether it can be run; `false` if left out. */
  readonly executable?: boolean;
}

const FOLDER = 0o040755;
const DEVICE = 0o020600;
const FILE = 0o100644;
const PROGRAM = 0o100755;
const TRAILER = "TRAILER!!!";

/** The archive of the entries, in their order. */
export function cpioArchive(entries: readonly CpioEntry[]): Uint8Array<ArrayBuffer> {
  const parts = entries.flatMap((entry, i) => record(entry, modeOf(entry), i + 1));
  parts.push(...record({ path: TRAILER }, 0, 0));
  const archive = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    archive.set(part, at);
    at += part.length;
  }
  return archive;
}

function modeOf(entry: CpioEntry): number {
  if (entry.device) return DEVICE;
  if (entry.bytes === undefined) return FOLDER;
  return entry.executable ? PROGRAM : FILE;
}

/** Header with name, and content, each filled up to a multiple of four bytes. */
function record(entry: CpioEntry, mode: number, inode: number): Uint8Array[] {
  const name = new TextEncoder().encode(`${entry.path}\0`);
  const bytes = entry.bytes ?? new Uint8Array();
  const [major, minor] = entry.device ?? [0, 0];
  // Inode, mode, owner, group, links, time, size, where the file lies, the device, name, check.
  const fields = [inode, mode, 0, 0, 1, 0, bytes.length, 0, 0, major, minor, name.length, 0];
  const head = "070701" + fields.map((field) => field.toString(16).padStart(8, "0")).join("");
  return [filled([new TextEncoder().encode(head), name]), filled([bytes])];
}

function filled(parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Uint8Array(Math.ceil(length / 4) * 4);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
