/**
 * The interface between the engine and a language that workers are written in.
 *
 * A {@linkcode Runtime} describes one language: how its workers are recognized, which
 * {@linkcode Toolchain}s install and start them, and what those need inside a microVM. `mod.ts`
 * lists all runtimes; adding a language means adding one there. Toolchains find programs on the
 * host with the functions at the end of this file.
 *
 * @module
 */
import type { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import {
  askProgram,
  findProgram,
  isWithin,
  type Program,
  realPath,
} from "../../process/programs.ts";

/** One language. */
export interface Runtime {
  /** Endings of files that a worker can be started from. */
  readonly entryEndings: readonly string[];
  /** Names of such files without ending, preferred ones first. */
  readonly entryNames: readonly string[];
  /** Endings of source files; an edit of one restarts a worker. */
  readonly sourceEndings: readonly string[];
  /** Folders that tools of the language write; edits in them are ignored. */
  readonly generatedFolders: readonly string[];
  /** Toolchains by the name of their package manager; the first is the default. */
  readonly toolchains: Readonly<Record<string, Toolchain>>;
}

/** A package manager together with the program that runs workers. */
export interface Toolchain {
  /** Programs that it may run. */
  readonly programs: readonly Program[];
  /** Names of files that declare dependencies. */
  readonly dependencyFiles: readonly (string | RegExp)[];
  /** Whether it installs into {@linkcode PlanRequest.packageFolder}, not where the worker lies. */
  readonly usesPackageFolder: boolean;
  /** Environment variables that configure it and that a guest receives. */
  readonly settings: RegExp;
  /** Variables among them that name places of the host, which a guest does not receive. */
  readonly hostPlaces?: RegExp;
  /** Variables that make it keep what it downloads in a folder. */
  cacheEnv(folder: string): Readonly<Record<string, string>>;
  /** The shell command that starts an entry file, or what the manifest has to say instead. */
  startCommand(entry: string): string | { readonly expected: string };
  /** The shell command that starts a worker without an entry file, if its directory names one. */
  ownStartCommand?(directory: string): string | undefined;
  /**
   * Inspects the program that a plain process would run.
   *
   * @throws {EngineError} `launch_failed` when it is missing, too old or does not run.
   */
  inspect?(request: InspectRequest): Promise<RuntimeFacts>;
  /**
   * Plans an installation.
   *
   * @throws {EngineError} `launch_failed` when a program is missing.
   */
  plan(request: PlanRequest): Promise<InstallPlan>;
  /**
   * Finds the programs on the host and the folders that a guest has to see to run them.
   *
   * @throws {EngineError} `launch_failed` when one is missing, too old or does not run.
   */
  locate(request: LocateRequest): Promise<GuestRuntime>;
}

/** What an installation depends on besides the worker's own files. */
export interface RuntimeFacts {
  /** Packages are installed again when any of these texts changes. */
  readonly fingerprint: readonly string[];
  /** Why nothing can be installed; thrown only when something has to be. */
  readonly installProblem?: EngineError;
}

/** Which program to inspect. */
export interface InspectRequest {
  /** Name of the worker, for messages. */
  readonly name: string;
  /** Where to run the program: version managers look for their settings there. */
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** What to install. */
export interface PlanRequest extends InspectRequest {
  /** The worker's entry file, relative; `null`: it has none. */
  readonly entry: string | null;
  /** The manifest's own install command; `null`: it has none. */
  readonly install: string | null;
  readonly dataDirectory: string;
  readonly isContained: boolean;
  /** Folder for the packages of this installation. */
  readonly packageFolder: string;
  /** Where a contained package manager keeps what it downloads. */
  readonly cacheFolder: string;
}

/** How to install. */
export interface InstallPlan {
  /** Shell commands to run in order; empty: there is nothing to install. */
  readonly commands: readonly string[];
  /** What the worker needs in its environment to find its packages. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether everything that a finished installation left behind is still there. */
  isComplete(): Promise<boolean>;
}

/** Where to look for programs. */
export interface LocateRequest {
  /** Name of the worker, for messages. */
  readonly name: string;
  /** The PATH, without folders that a contained worker can write. */
  readonly path: string;
  /** Copies of single programs are kept in `runtimes` below it. */
  readonly dataDirectory: string;
}

/** What a worker's programs need in a guest besides the system's. */
export interface GuestRuntime {
  /** Folders outside the system's that the guest has to read. */
  readonly folders: readonly string[];
  /** Folders that come first on the guest's PATH. */
  readonly bins: readonly string[];
  readonly facts?: RuntimeFacts;
}

/** The system's programs and libraries; every guest sees this folder. */
export const SYSTEM = "/usr";

/** Package managers whose programs need each other's folders, so that all of it is shared. */
const SHARED_PREFIXES = ["/nix/store", "/home/linuxbrew/.linuxbrew"];
const ELF = [0x7f, 0x45, 0x4c, 0x46];

/**
 * The real path that a program prints about itself. A script on the PATH may belong to a version
 * manager that a guest does not see. The program runs in `/`, away from files of workers.
 */
export async function askPath(
  { name, path }: LocateRequest,
  program: Program,
  args: readonly string[],
): Promise<string> {
  const question = { worker: name, program: program.name, args, directory: "/" };
  const read = (text: string): string | undefined => text.startsWith("/") ? text : undefined;
  return await realPath(await askProgram({ ...question, env: { PATH: path } }, read));
}

/** The folders among these that a guest does not see anyway, with and without links resolved. */
export async function outsideSystem(prefixes: readonly string[]): Promise<string[]> {
  const folders = new Set<string>();
  for (const prefix of prefixes) {
    for (const path of [prefix, await realPath(prefix)]) {
      const shared = SHARED_PREFIXES.find((shared) => isWithin(path, shared));
      if (!isWithin(path, SYSTEM)) folders.add(shared ?? path);
    }
  }
  return [...folders];
}

/**
 * A folder that holds only this program: other programs lie beside the original, and a guest must
 * not see them.
 */
export async function singleProgramFolder(
  { dataDirectory }: LocateRequest,
  { name }: Program,
  file: string,
): Promise<string> {
  if (isWithin(file, SYSTEM)) return folderOf(file);
  const { size, mtime, ino } = await Deno.stat(file);
  const facts = new TextEncoder().encode(JSON.stringify([file, size, mtime, ino]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", facts));
  const folder = `${dataDirectory}/runtimes/${name}-${digest.toHex().slice(0, 16)}`;
  if (await exists(`${folder}/${name}`)) return folder;
  await Deno.mkdir(folder, { recursive: true });
  const temporary = `${folder}/${crypto.randomUUID().slice(0, 8)}.tmp`;
  // Linking fails across disks, and where the system refuses links to other users' files.
  await Deno.link(file, temporary).catch(() => Deno.copyFile(file, temporary));
  await Deno.rename(temporary, `${folder}/${name}`);
  return folder;
}

/** The first of these files that is an ELF binary rather than a script, without links. */
export async function firstBinary(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) {
    const real = await realPath(file);
    if (await isBinary(real)) return real;
  }
  return undefined;
}

/** The real path of a program on a PATH; `undefined` when it is not there. */
export async function findReal(name: string, path: string): Promise<string | undefined> {
  const file = await findProgram(name, path);
  return file === undefined ? undefined : await realPath(file);
}

/** The folder that a file lies in. */
export function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf("/")) || "/";
}

/** Whether there is a file or folder at a path. */
export function exists(path: string): Promise<boolean> {
  return Deno.stat(path).then(() => true, () => false);
}

async function isBinary(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path);
    const head = new Uint8Array(ELF.length);
    return await file.read(head) === ELF.length && ELF.every((byte, i) => head[i] === byte);
  } catch {
    return false; // A file that cannot be read cannot be shared either.
  }
}
