/**
 * Finds the modules of a kernel that a guest needs, with what they need, in the order of loading.
 *
 * Nothing but the folder of modules is read: each module says itself what it depends on and which
 * kernel it is for, so that a package can be used that was unpacked and never installed.
 *
 * @module
 */
import type { Unpack } from "./kernel_file.ts";

/** A module that can be loaded. */
export interface KernelModule {
  /** As the kernel prints it: with underscores. */
  readonly name: string;
  /** The unpacked file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Names of the modules that have to be loaded before. */
  readonly depends: readonly string[];
  /** Version of the kernel that it is for. */
  readonly kernel: string;
}

/** What a folder of modules has of those that were asked for. */
export interface FoundModules {
  /** What was asked for and what that needs, each after what it depends on. */
  readonly modules: readonly KernelModule[];
  /** Asked for, or needed by what was, and part of the kernel itself. */
  readonly builtin: readonly string[];
  /** Neither a file there nor part of the kernel. */
  readonly missing: readonly string[];
}

/**
 * Collects modules.
 *
 * @param directory Such as `/lib/modules/6.1.0-56-amd64`.
 * @throws {Error} When a module cannot be read; the message names the file.
 */
export async function findModules(
  directory: string,
  wanted: readonly string[],
  unpack: Unpack,
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
    const module = await readModule(name, path, unpack);
    for (const other of module.depends) await visit(other);
    found.set(name, module);
  };
  for (const name of wanted) await visit(moduleName(name));
  return { modules: [...found.values()], builtin, missing };
}

/** A module's name as the kernel has it. */
function moduleName(text: string): string {
  return text.replaceAll("-", "_");
}

async function indexModules(directory: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const walk = async (folder: string): Promise<void> => {
    for await (const entry of Deno.readDir(folder)) {
      const path = `${folder}/${entry.name}`;
      // Links such as `build` lead to sources.
      if (entry.isDirectory) await walk(path);
      const name = entry.isFile ? /^(.+)\.ko(\.gz|\.xz|\.zst)?$/.exec(entry.name)?.[1] : undefined;
      if (name !== undefined) files.set(moduleName(name), path);
    }
  };
  await walk(directory);
  return files;
}

/** Names of the modules that are part of the kernel itself. */
async function builtinModules(directory: string): Promise<Set<string>> {
  const text = await Deno.readTextFile(`${directory}/modules.builtin`).catch(() => "");
  const names = text.split("\n").map((line) => /([^/]+)\.ko$/.exec(line)?.[1] ?? "");
  return new Set(names.filter((name) => name !== "").map(moduleName));
}

async function readModule(name: string, path: string, unpack: Unpack): Promise<KernelModule> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = await unpack(await Deno.readFile(path));
  } catch (thrown) {
    throw new Error(`${path}: ${(thrown as Error).message}`, { cause: thrown });
  }
  // The section .modinfo is a list of texts, each ended by a zero.
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
