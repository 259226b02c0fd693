/**
 * The kernels in the cache: files and modules that guests boot.
 *
 * `engine vm setup` copies a kernel here once, from an unpacked package or an installed kernel;
 * afterwards guests need nothing outside the cache. Each kernel has a folder that is created
 * atomically, and the file `current` names the one in use, so readers never see a partial kernel.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import { publishFolder, publishText } from "./cache_files.ts";
import { bootFile, type Decompress, kernelVersion } from "./kernel_file.ts";
import { findModules, type KernelModule } from "./kernel_modules.ts";

/** Modules that every guest loads; a kernel must have all of them. */
export const GUEST_MODULES: readonly string[] = [
  "virtio_pci",
  "virtio_console",
  "9pnet_virtio",
  "9p",
  "virtio_net",
  "virtio_balloon",
];

/** Stored as well, so that a later engine that needs one does not fetch the kernel again. */
const SPARE_MODULES: readonly string[] = [
  "overlay",
  "virtio_blk",
  "virtio_rng",
  "virtio_mmio",
  "vmw_vsock_virtio_transport",
  "virtiofs",
];

const FORMAT = 1;

/** A kernel outside the cache. */
export interface KernelSource {
  /** Path of a `vmlinuz` or a `vmlinux`. */
  readonly kernel: string;
  /** Folder of its modules, such as `/lib/modules/6.1.0-56-amd64`. */
  readonly modules: string;
  /** Package name or path, shown to users. */
  readonly origin: string;
}

/** A kernel in the cache. */
export interface StoredKernel {
  /** Version and part of the hash of the file, such as `6.1.0-56-amd64-1f0c55aa`. */
  readonly id: string;
  /** Such as `6.1.0-56-amd64`. */
  readonly version: string;
  /** Absolute path of the file that QEMU boots. */
  readonly kernel: string;
  readonly form: "vmlinux" | "vmlinuz";
  readonly origin: string;
  /** Modules in load order. */
  readonly modules: readonly StoredModule[];
}

/** A module in the cache. */
export interface StoredModule {
  readonly name: string;
  /** Absolute path of the decompressed file. */
  readonly path: string;
}

/** Content of `kernel.json`. */
interface KernelRecord {
  readonly format: typeof FORMAT;
  readonly version: string;
  readonly form: "vmlinux" | "vmlinuz";
  readonly origin: string;
  readonly kernel_bytes: number;
  readonly modules: Readonly<Record<string, { bytes: number; depends: readonly string[] }>>;
  /** Modules from the two lists above that are built into the kernel. */
  readonly builtin: readonly string[];
}

/**
 * Copies a kernel into the cache and makes it the one in use.
 *
 * @param print Receives remarks for the user.
 * @throws {Error} With the reason when guests cannot use the kernel; the cache stays unchanged.
 */
export async function storeKernel(
  cache: string,
  source: KernelSource,
  decompress: Decompress,
  print: (line: string) => void = () => {},
): Promise<StoredKernel> {
  const file = await Deno.readFile(source.kernel);
  const needed = await findModules(source.modules, GUEST_MODULES, decompress);
  if (needed.missing.length > 0) {
    const names = needed.missing.join(", ");
    throw new Error(`${source.origin} does not have what guests need: module ${names}`);
  }
  const version = agreedVersion(source, kernelVersion(file), needed.modules);
  const boot = await bootFile(file, decompress);
  if (boot.reason) print(`guests boot ${source.kernel} as it is, which is slower: ${boot.reason}`);
  const spare = await findModules(source.modules, SPARE_MODULES, decompress);
  const all = new Map([...needed.modules, ...spare.modules].map((module) => [module.name, module]));
  const record: KernelRecord = {
    format: FORMAT,
    version,
    form: boot.form,
    origin: source.origin,
    kernel_bytes: boot.bytes.length,
    modules: Object.fromEntries(
      [...all.values()].map(({ name, bytes, depends }) => [name, { bytes: bytes.length, depends }]),
    ),
    builtin: [...needed.builtin, ...spare.builtin],
  };
  const text = JSON.stringify(record, null, 2);
  const id = `${version}-${nodeCrypto.createHash("sha256").update(file).digest("hex").slice(0, 8)}`;
  await publishFolder(`${cache}/kernels/${id}`, async (folder) => {
    await Deno.mkdir(`${folder}/modules`);
    await Deno.writeFile(`${folder}/${boot.form}`, boot.bytes);
    for (const { name, bytes } of all.values()) {
      await Deno.writeFile(`${folder}/modules/${name}.ko`, bytes);
    }
    await Deno.writeTextFile(`${folder}/kernel.json`, text);
  }, async () => {
    const folder = `${cache}/kernels/${id}`;
    const found = await Deno.readTextFile(`${folder}/kernel.json`).catch(() => "");
    return found === text && await hasFiles(folder, record);
  });
  await publishText(`${cache}/kernels/current`, id);
  return storedKernel(cache, id, record);
}

/** The kernel in use; `problem` names what is missing, as text for users. */
export async function openKernel(cache: string): Promise<StoredKernel | { problem: string }> {
  const id = await Deno.readTextFile(`${cache}/kernels/current`).catch(() => "");
  if (id === "") return { problem: "a guest kernel" };
  if (!/^[\w.+~-]+$/.test(id)) {
    return { problem: `a guest kernel (${cache}/kernels/current is damaged)` };
  }
  const folder = `${cache}/kernels/${id}`;
  const record = parseRecord(await Deno.readTextFile(`${folder}/kernel.json`).catch(() => ""));
  if (record === undefined || !await hasFiles(folder, record)) {
    return { problem: `a guest kernel (the one in ${folder} is damaged)` };
  }
  const known = new Set([...Object.keys(record.modules), ...record.builtin]);
  const missing = GUEST_MODULES.filter((name) => !known.has(name));
  if (missing.length > 0) {
    const names = missing.join(", ");
    return { problem: `a guest kernel with module ${names} (the one in ${folder} has none)` };
  }
  return storedKernel(cache, id, record);
}

/**
 * Finds the newest installed kernel that this user may read and that has all guest modules.
 *
 * @param root Folder that contains `boot` and `lib/modules`; `""` for the root of this machine.
 */
export async function findInstalledKernel(
  root: string,
  decompress: Decompress,
): Promise<KernelSource | undefined> {
  const folder = `${root}/lib/modules`;
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []);
  const versions = entries.map(({ name }) => name);
  versions.sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  for (const version of versions) {
    const modules = `${folder}/${version}`;
    const places = [`${root}/boot/vmlinuz-${version}`, `${modules}/vmlinuz`];
    for (const kernel of places) {
      if (!await isReadable(kernel)) continue;
      const found = await findModules(modules, GUEST_MODULES, decompress).catch(() => undefined);
      if (found?.missing.length === 0) return { kernel, modules, origin: kernel };
    }
  }
  return undefined;
}

/** The version that the kernel and all its modules share. */
function agreedVersion(
  source: KernelSource,
  version: string | undefined,
  modules: readonly KernelModule[],
): string {
  const agreed = version ?? modules[0]?.kernel ?? "unknown";
  const other = modules.find(({ kernel }) => kernel !== agreed);
  if (other) {
    const found = `${source.kernel} is ${agreed}, ${source.modules} is for ${other.kernel}`;
    throw new Error(`kernel and modules do not belong together: ${found}`);
  }
  if (!/^[\w.+~-]+$/.test(agreed)) throw new Error(`${source.kernel} has no version`);
  return agreed;
}

function storedKernel(cache: string, id: string, record: KernelRecord): StoredKernel {
  const folder = `${cache}/kernels/${id}`;
  const { version, form, origin } = record;
  const order = new Set<string>();
  const visit = (name: string): void => {
    const module = record.modules[name];
    if (module === undefined || order.has(name)) return;
    for (const other of module.depends) visit(other);
    order.add(name);
  };
  GUEST_MODULES.forEach(visit);
  const modules = [...order].map((name) => ({ name, path: `${folder}/modules/${name}.ko` }));
  return { id, version, kernel: `${folder}/${form}`, form, origin, modules };
}

/** Whether each file of a kernel has its recorded size. */
async function hasFiles(folder: string, record: KernelRecord): Promise<boolean> {
  const files: [string, number][] = [[`${folder}/${record.form}`, record.kernel_bytes]];
  for (const [name, { bytes }] of Object.entries(record.modules)) {
    files.push([`${folder}/modules/${name}.ko`, bytes]);
  }
  const found = await Promise.all(files.map(async ([path, bytes]) => {
    const info = await Deno.stat(path).catch(() => undefined);
    return info?.size === bytes;
  }));
  return found.every((same) => same);
}

/** Parses `kernel.json`; `undefined` when it is damaged or of another format. */
function parseRecord(text: string): KernelRecord | undefined {
  let value: Partial<KernelRecord> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // Missing or damaged.
  }
  if (value?.format !== FORMAT || typeof value.version !== "string") return undefined;
  if (value.form !== "vmlinux" && value.form !== "vmlinuz") return undefined;
  if (!value.modules || !Array.isArray(value.builtin)) return undefined;
  return value as KernelRecord;
}

async function isReadable(path: string): Promise<boolean> {
  try {
    (await Deno.open(path)).close();
    return true;
  } catch {
    return false; // Missing, or readable by root only.
  }
}
