/**
 * Kernels and modules that nothing can boot, but that have the form of real ones.
 *
 * @module
 */
import { gzipSync, zstdCompressSync } from "node:zlib";
import { GUEST_MODULES } from "../../engine/vm/image/kernel_store.ts";

/** What a fake kernel is like. */
export interface FakeKernelOptions {
  /** Default: `6.1.0-7-amd64`. */
  readonly version?: string;
  /** Which modules there are, and what each depends on. Default: all that guests need. */
  readonly modules?: Readonly<Record<string, readonly string[]>>;
  /** The version that the modules are for. Default: that of the kernel. */
  readonly modulesFor?: string;
  /** Names in `modules.builtin`. */
  readonly builtin?: readonly string[];
  /** How the kernel is packed. Default: `gzip`. */
  readonly packing?: "gzip" | "zstd";
  /** Whether it can be booted without unpacking itself. Default: `true`. */
  readonly pvh?: boolean;
}

/** The version of a fake kernel that says nothing else. */
export const FAKE_VERSION = "6.1.0-7-amd64";

/** A program for x86-64, as far as its headers go. */
export function fakeElf({ type = 4, note = true }: { type?: number; note?: boolean } = {}) {
  const bytes = new Uint8Array(256);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  view.setUint16(18, 62, true); // x86-64
  view.setBigUint64(32, 64n, true); // One program header, right behind this one.
  view.setUint16(54, 56, true);
  view.setUint16(56, 1, true);
  view.setUint32(64, type, true);
  view.setBigUint64(64 + 8, 128n, true);
  view.setBigUint64(64 + 32, 44n, true);
  // Two notes: another one of Xen's, then the entry.
  for (const [at, kind] of [[128, 6], [148, note ? 18 : 7]] as const) {
    view.setUint32(at, 4, true);
    view.setUint32(at + 4, 4, true);
    view.setUint32(at + 8, kind, true);
    bytes.set(new TextEncoder().encode("Xen\0"), at + 12);
  }
  return bytes;
}

/** A `vmlinuz` with a packed payload. */
export function fakeVmlinuz(
  { version = FAKE_VERSION, packing = "gzip", pvh = true }: FakeKernelOptions = {},
): Uint8Array<ArrayBuffer> {
  const vmlinux = fakeElf({ note: pvh });
  const size = new Uint8Array(new Uint32Array([vmlinux.length]).buffer);
  const payload = packing === "gzip"
    ? gzipSync(vmlinux)
    : new Uint8Array([...zstdCompressSync(vmlinux), ...size]);
  const offset = 64;
  const bytes = new Uint8Array(5 * 512 + offset + payload.length + 32);
  const view = new DataView(bytes.buffer);
  view.setUint16(0x1fe, 0xaa55, true);
  bytes.set(new TextEncoder().encode("HdrS"), 0x202);
  view.setUint16(0x206, 0x020f, true);
  view.setUint16(0x20e, 0x100, true);
  bytes.set(new TextEncoder().encode(`${version} (somebody@somewhere) #1\0`), 0x300);
  view.setUint32(0x248, offset, true);
  view.setUint32(0x24c, payload.length, true);
  bytes.set(payload, 5 * 512 + offset);
  return bytes;
}

/** A module's file. */
export function fakeModule(
  name: string,
  depends: readonly string[] = [],
  kernel = FAKE_VERSION,
): Uint8Array<ArrayBuffer> {
  const texts = ["license=GPL", `depends=${depends.join(",")}`, `name=${name}`];
  const info = [...texts, `vermagic=${kernel} SMP mod_unload`].join("\0");
  return new TextEncoder().encode(`ELF of ${name}\0${info}\0`);
}

/** What guests need, each depending on what real ones depend on. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  virtio_ring: [],
  virtio: ["virtio_ring"],
  "9pnet": [],
  ...Object.fromEntries(GUEST_MODULES.map((name) => [name, ["virtio", "virtio_ring"]])),
  "9p": ["9pnet"],
};

/** Writes a kernel below a folder, as a package would; returns its paths. */
export async function writeFakeKernel(
  root: string,
  options: FakeKernelOptions = {},
): Promise<{ kernel: string; modules: string; origin: string }> {
  const { version = FAKE_VERSION, modules = MODULES, builtin = [] } = options;
  const folder = `${root}/lib/modules/${version}`;
  await Deno.mkdir(`${folder}/kernel/drivers/virtio`, { recursive: true });
  await Deno.mkdir(`${root}/boot`, { recursive: true });
  for (const [name, depends] of Object.entries(modules)) {
    const bytes = fakeModule(name, depends, options.modulesFor ?? version);
    // As in real kernels, the name of the file has dashes.
    const file = `${name.replaceAll("_", "-")}.ko`;
    await Deno.writeFile(`${folder}/kernel/drivers/virtio/${file}`, bytes);
  }
  const lines = builtin.map((name) => `kernel/lib/${name}.ko\n`);
  await Deno.writeTextFile(`${folder}/modules.builtin`, lines.join(""));
  const kernel = `${root}/boot/vmlinuz-${version}`;
  await Deno.writeFile(kernel, fakeVmlinuz(options));
  return { kernel, modules: folder, origin: `linux-image-${version}` };
}

/** A folder that is gone at the end of a test. */
export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "engine-vm-" });
  return {
    path,
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}
