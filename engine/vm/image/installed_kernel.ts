/**
 * Finds a kernel on this machine that guests can boot as well.
 *
 * @module
 */
import { findModules } from "./kernel_modules.ts";
import { GUEST_MODULES, type KernelSource } from "./kernel_store.ts";
import type { Unpack } from "./unpack.ts";

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
