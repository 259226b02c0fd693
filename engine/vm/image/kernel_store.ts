/**
 * The kernel that guests boot, kept in the cache: its file and the modules that guests may need.
 *
 * It is copied there once, by `engine vm setup`, from an unpacked package or an installed kernel;
 * from then on nothing outside the cache matters. A kernel lies in a folder of its own that appears
 * in one step, and the file `current` names the folder in use, so that nobody sees half of one.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { publishFolder, publishText } from "./cache_files.ts";
import { bootFile, kernelVersion, type Unpack } from "./kernel_file.ts";
import { findModules, type KernelModule } from "./kernel_modules.ts";

/** What every guest loads; a kernel without one of them cannot be used. */
export const GUEST_MODULES: readonly string[] = [
  "virtio_pci",
  "virtio_console",
  "9pnet_virtio",
  "9p",
  "virtio_net",
  "virtio_balloon",
];

/** Kept besides, so that a later engine that wants one need not fetch the kernel again. */
const SPARE_MODULES: readonly string[] = [
  "overlay",
  "virtio_blk",
  "virtio_rng",
  "virtio_mmio",
  "vmw_vsock_virtio_transport",
  "virtiofs",
];

const FORMAT = 1;

/** Where a kernel comes from. */
export interface KernelSource {
  /** Path of its file, a `vmlinuz` or a `vmlinux`. */
  readonly kernel: string;
  /** The folder of its modules, such as `/lib/modules/6.1.0-56-amd64`. */
  readonly modules: string;
  /** For people: a package's name, or a path. */
  readonly origin: string;
}

/** A kernel in the cache. */
export interface StoredKernel {
  /** Such as `6.1.0-56-amd64-1f0c55aa`: its version and a part of the hash of its file. */
  readonly id: string;
  /** Such as `6.1.0-56-amd64`. */
  readonly version: string;
  /** Absolute path of what QEMU boots. */
  readonly kernel: string;
  readonly form: "vmlinux" | "vmlinuz";
  readonly origin: string;
  /** What guests load, each after what it depends on. */
  readonly modules: readonly StoredModule[];
}

/** A module in the cache. */
export interface StoredModule {
  readonly name: string;
  /** Absolute path of the unpacked file. */
  readonly path: string;
}

/** The file `kernel.json`. */
interface KernelRecord {
  readonly format: typeof FORMAT;
  readonly version: string;
  readonly form: "vmlinux" | "vmlinuz";
  readonly origin: string;
  readonly kernel_bytes: number;
  readonly modules: Readonly<Record<string, { bytes: number; depends: readonly string[] }>>;
  /** Modules that are part of the kernel, of those that guests may need. */
  readonly builtin: readonly string[];
}

/**
 * Copies a kernel into the cache and makes it the one in use.
 *
 * @param say Gets what is worth knowing on the way.
 * @throws {Error} Saying why the kernel cannot be used; the cache is as it was.
 */
export async function storeKernel(
  cache: string,
  source: KernelSource,
  unpack: Unpack,
  say: (line: string) => void = () => {},
): Promise<StoredKernel> {
  const file = await Deno.readFile(source.kernel);
  const needed = await findModules(source.modules, GUEST_MODULES, unpack);
  if (needed.missing.length > 0) {
    const names = needed.missing.join(", ");
    throw new Error(`${source.origin} does not have what guests need: module ${names}`);
  }
  const version = agreedVersion(source, kernelVersion(file), needed.modules);
  const boot = await bootFile(file, unpack);
  if (boot.reason) say(`guests boot ${source.kernel} as it is, which is slower: ${boot.reason}`);
  const spare = await findModules(source.modules, SPARE_MODULES, unpack);
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

/** The kernel in use; `problem` names what is missing, for people. */
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

/** The version that a kernel and all its modules are of. */
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

/** Whether each file of a kernel has the size it had. */
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

/** What `kernel.json` says; `undefined` when it is not one of this format. */
function parseRecord(text: string): KernelRecord | undefined {
  let value: Partial<KernelRecord> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // Half written, or not written at all.
  }
  if (value?.format !== FORMAT || typeof value.version !== "string") return undefined;
  if (value.form !== "vmlinux" && value.form !== "vmlinuz") return undefined;
  if (!value.modules || !Array.isArray(value.builtin)) return undefined;
  return value as KernelRecord;
}

/**
 * The newest installed kernel that this user may read and that has the modules guests need.
 *
 * @param root The folder in which `boot` and `lib/modules` lie; `""` for the machine's own.
 */
export async function findInstalledKernel(
  root: string,
  unpack: Unpack,
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
      const found = await findModules(modules, GUEST_MODULES, unpack).catch(() => undefined);
      if (found?.missing.length === 0) return { kernel, modules, origin: kernel };
    }
  }
  return undefined;
}

async function isReadable(path: string): Promise<boolean> {
  try {
    (await Deno.open(path)).close();
    return true;
  } catch {
    return false; // There is none, or only root may read it.
  }
}
