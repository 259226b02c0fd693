/**
 * Finds the kernel modules that a guest needs, with their dependencies, in load order.
 *
 * Dependencies and kernel version come from each module's own `.modinfo`, not from `modules.dep`,
 * so a package that was unpacked but never installed works too.
 *
 * @module
 */
import type { Decompress } from "./kernel_file.ts";

/** A loadable module. */
export interface KernelModule {
  /** With underscores, as the kernel spells it. */
  readonly name: string;
  /** The decompressed file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Names of the modules to load before this one. */
  readonly depends: readonly string[];
  /** Kernel version that the module was built for. */
  readonly kernel: string;
}

/** The requested modules as a module folder has them. */
export interface FoundModules {
  /** Requested modules and their dependencies, each after the ones it depends on. */
  readonly modules: readonly KernelModule[];
  /** Requested modules and dependencies that are built into the kernel. */
  readonly builtin: readonly string[];
  /** Requested modules and dependencies that are neither files nor built in. */
  readonly missing: readonly string[];
}

/**
 * Reads the requested modules and their dependencies.
 *
 * @param directory Such as `/lib/modules/6.1.0-56-amd64`.
 * @throws {Error} When a module cannot be read; the message names the file.
 */
export async function findModules(
  directory: string,
  names: readonly string[],
  decompress: Decompress,
): Promise<FoundModules> {
  const files = await indexModules(directory);
  const inKernel = await builtinModules(directory);
  const found = new Map<string, KernelModule>();
  const builtin: string[] = [];
  const missing: string[] = [];
  const visited = new Set<string>();

  const visit = async (name: string): Promise<void> => {
    if (visited.has(name)) return;
    visited.add(name);
    const path = files.get(name);
    if (path === undefined) {
      (inKernel.has(name) ? builtin : missing).push(name);
      return;
    }
    const module = await readModule(name, path, decompress);
    for (const other of module.depends) await visit(other);
    found.set(name, module);
  };
  for (const name of names) await visit(moduleName(name));
  return { modules: [...found.values()], builtin, missing };
}

/** A module name as the kernel spells it. */
function moduleName(text: string): string {
  return text.replaceAll("-", "_");
}

async function indexModules(directory: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const walk = async (folder: string): Promise<void> => {
    for await (const entry of Deno.readDir(folder)) {
      const path = `${folder}/${entry.name}`;
      // Symbolic links such as `build` lead to sources and are not followed.
      if (entry.isDirectory) await walk(path);
      const name = entry.isFile ? /^(.+)\.ko(\.gz|\.xz|\.zst)?$/.exec(entry.name)?.[1] : undefined;
      if (name !== undefined) files.set(moduleName(name), path);
    }
  };
  await walk(directory);
  return files;
}

/** Names of the modules that are built into the kernel. */
async function builtinModules(directory: string): Promise<Set<string>> {
  const text = await Deno.readTextFile(`${directory}/modules.builtin`).catch(() => "");
  const names = text.split("\n").map((line) => /([^/]+)\.ko$/.exec(line)?.[1] ?? "");
  return new Set(names.filter((name) => name !== "").map(moduleName));
}

async function readModule(
  name: string,
  path: string,
  decompress: Decompress,
): Promise<KernelModule> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = await decompress(await Deno.readFile(path));
  } catch (thrown) {
    throw new Error(`${path}: ${(thrown as Error).message}`, { cause: thrown });
  }
  // The section .modinfo holds texts that each end with a zero byte.
  const text = new TextDecoder("latin1").decode(bytes);
  const field = (key: string) => new RegExp(`\\0${key}=([^\\0]*)\\0`).exec(text)?.[1];
  const depends = field("depends");
  const kernel = field("vermagic")?.split(" ")[0];
  if (depends === undefined || kernel === undefined) {
    throw new Error(`${path}: it is not a kernel module`);
  }
  const names = depends.split(",").filter((other) => other !== "").map(moduleName);
  return { name, bytes, depends: names, kernel };
}
