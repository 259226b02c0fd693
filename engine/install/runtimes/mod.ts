/**
 * Which Python, Node, Deno or uv a worker in a microVM runs, and the folders that hold it.
 *
 * A version switcher's script on the PATH is nothing to a guest that does not see the switcher, so
 * programs are asked here what they really are. Nothing that a contained worker can write is run
 * for that, nor found by what its manifest says: outside its machine a worker has no say.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import {
  askProgram,
  findProgram,
  pathOutside,
  type ProgramName,
  requireProgram,
} from "../../process/programs.ts";
import type { WorkerSpec } from "../manifest.ts";
import { containedFolders } from "../containment.ts";
import { probePython, type PythonFacts } from "./python.ts";
import { isWithin, realPath, SYSTEM } from "../guest_access.ts";

/** What a worker's programs need besides the system's. */
export interface GuestRuntime {
  /** Folders outside the system's that the guest has to read. */
  readonly folders: readonly string[];
  /** Folders that come first on the guest's PATH. */
  readonly bins: readonly string[];
  /** The Python of a Python worker. */
  readonly python: PythonFacts | undefined;
}

/** Whose runtime to find, and where to look. */
export interface RuntimeRequest {
  /** Name of the worker, for messages. */
  readonly name: string;
  readonly spec: WorkerSpec;
  /** Where to look for programs: the PATH of the engine or of config.yaml, never the worker's. */
  readonly path: string;
  /** Single programs are kept in `runtimes` below it. */
  readonly dataDirectory: string;
}

/** Managers of packages whose programs need each other's folders, as a whole. */
const WORLDS = ["/nix/store", "/home/linuxbrew/.linuxbrew"];
const PROGRAMS: readonly ProgramName[] = ["python3", "uv", "node", "npm", "deno"];
const ELF = [0x7f, 0x45, 0x4c, 0x46];

/**
 * Finds the programs for a kind of worker.
 *
 * @throws {EngineError} `launch_failed` when one is missing, too old or does not run here.
 */
export async function findRuntime(request: RuntimeRequest): Promise<GuestRuntime> {
  const { spec, dataDirectory } = request;
  const theirs = [spec.directory, ...await containedFolders(dataDirectory)];
  const path = await pathOutside(request.path, theirs, PROGRAMS);
  switch (spec.packageManager) {
    case "pip":
      return await findPython(request, path);
    case "uv": {
      const python = await findPython(request, path);
      const uv = await findUv(request, path, python);
      return { ...python, folders: [...python.folders, uv], bins: [...python.bins, uv] };
    }
    case "npm":
      return await findNode(request, path);
    case "deno":
      return await findDeno(request, path);
  }
}

async function findPython({ name }: RuntimeRequest, path: string): Promise<GuestRuntime> {
  const python = await probePython({ name, directory: "/", env: { PATH: path }, isolated: true });
  const bins = [folderOf(python.executable)];
  const folders = await outside([python.prefix, python.basePrefix]);
  const base = `${python.basePrefix}/bin`;
  if (!bins.includes(base)) bins.push(base);
  return { folders, bins, python };
}

async function findNode({ name }: RuntimeRequest, path: string): Promise<GuestRuntime> {
  await requireProgram("node", path, name);
  const node = await ask(name, "node", path, ["-p", "process.execPath"]);
  const bin = folderOf(node);
  const bins = [bin];
  const folders = await outside([folderOf(bin)]);
  // An npm of another Node, or one that was installed by itself.
  const npm = await findProgram("npm", `${bin}:${path}`);
  const script = npm === undefined ? undefined : await Deno.realPath(npm);
  if (script?.endsWith("/lib/node_modules/npm/bin/npm-cli.js")) {
    const prefix = script.slice(0, -"/lib/node_modules/npm/bin/npm-cli.js".length);
    const own = await outside([prefix]);
    folders.push(...own);
    if (own.length > 0) bins.push(`${prefix}/bin`);
  }
  return { folders: [...new Set(folders)], bins: [...new Set(bins)], python: undefined };
}

async function findDeno(request: RuntimeRequest, path: string): Promise<GuestRuntime> {
  await requireProgram("deno", path, request.name);
  const found = await Deno.realPath((await findProgram("deno", path))!);
  const args = ["eval", "--no-config", "console.log(Deno.execPath())"];
  const deno = await isBinary(found) ? found : await ask(request.name, "deno", path, args);
  const folder = await folderFor(request, "deno", deno);
  return { folders: await outside([folder]), bins: [folder], python: undefined };
}

async function findUv(
  request: RuntimeRequest,
  path: string,
  { python }: GuestRuntime,
): Promise<string> {
  const { name } = request;
  await requireProgram("uv", path, name);
  const places = [(await findProgram("uv", path))!, `${python!.prefix}/bin/uv`];
  for (const place of places) {
    const real = await realPath(place);
    if (await isBinary(real)) return await folderFor(request, "uv", real);
  }
  const message = `Worker ${name} needs uv, and ${places[0]} only leads to it; put the folder of ` +
    "the program itself on the PATH, or set runtime.package_manager to pip";
  throw new EngineError("launch_failed", message, { details: { program: "uv" } });
}

/** The path that a program says of itself, run where nothing of the worker's lies. */
async function ask(
  worker: string,
  program: ProgramName,
  path: string,
  args: readonly string[],
): Promise<string> {
  const question = { worker, program, args, directory: "/", env: { PATH: path } };
  const read = (text: string): string | undefined => text.startsWith("/") ? text : undefined;
  return await realPath(await askProgram(question, read));
}

/** Those that a guest does not see anyway, as a whole where their parts need each other. */
async function outside(prefixes: readonly string[]): Promise<string[]> {
  const folders = new Set<string>();
  for (const prefix of prefixes) {
    for (const path of [prefix, await realPath(prefix)]) {
      const world = WORLDS.find((world) => isWithin(path, world));
      if (!isWithin(path, SYSTEM)) folders.add(world ?? path);
    }
  }
  return [...folders];
}

/**
 * A folder that holds a single program and nothing else: its own lies among others that are
 * nobody's business.
 */
async function folderFor(
  { dataDirectory }: RuntimeRequest,
  program: ProgramName,
  file: string,
): Promise<string> {
  if (isWithin(file, SYSTEM)) return folderOf(file);
  const { size, mtime, ino } = await Deno.stat(file);
  const facts = new TextEncoder().encode(JSON.stringify([file, size, mtime, ino]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", facts));
  const folder = `${dataDirectory}/runtimes/${program}-${digest.toHex().slice(0, 16)}`;
  if (await Deno.stat(`${folder}/${program}`).then(() => true, () => false)) return folder;
  await Deno.mkdir(folder, { recursive: true });
  const temporary = `${folder}/${crypto.randomUUID().slice(0, 8)}.tmp`;
  // Another disk, or a system that lets nobody link to files of others.
  await Deno.link(file, temporary).catch(() => Deno.copyFile(file, temporary));
  await Deno.rename(temporary, `${folder}/${program}`);
  return folder;
}

async function isBinary(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path);
    const head = new Uint8Array(ELF.length);
    return await file.read(head) === ELF.length && ELF.every((byte, i) => head[i] === byte);
  } catch {
    return false; // Then it cannot be shared either.
  }
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf("/")) || "/";
}
