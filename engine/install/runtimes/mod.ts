/**
 * The languages that workers can be written in.
 *
 * Everything that depends on the language asks here: the manifest for entry files and start
 * commands, the installation for commands, microVMs for folders and variables, the file watch for
 * names. To add a language, describe it as a {@linkcode Runtime} and add it to `RUNTIMES`.
 *
 * @module
 */
import { pathOutside } from "../../process/programs.ts";
import { containedFolders } from "../containment.ts";
import { MANIFEST } from "../worker_files.ts";
import { javascript, typescript } from "./javascript.ts";
import { python } from "./python.ts";
import type { GuestRuntime, LocateRequest, Runtime, Toolchain } from "./runtime.ts";

const RUNTIMES = { python, typescript, javascript } as const satisfies Record<string, Runtime>;

/** A language, as manifests name it. */
export type Kind = keyof typeof RUNTIMES;

/** All languages. */
export const KINDS = Object.keys(RUNTIMES) as Kind[];

const TOOLCHAINS: readonly Toolchain[] = Object.values(RUNTIMES)
  .flatMap(({ toolchains }) => Object.values(toolchains));
const SOURCE_ENDINGS: ReadonlySet<string> = new Set(
  Object.values(RUNTIMES).flatMap(({ sourceEndings }) => sourceEndings),
);

/** The package managers of a language, or of all; a language's default comes first. */
export function packageManagers(kind?: Kind): string[] {
  const runtimes = kind === undefined ? Object.values(RUNTIMES) : [RUNTIMES[kind]];
  return [...new Set(runtimes.flatMap(({ toolchains }) => Object.keys(toolchains)))];
}

/** The toolchain of a language and one of its package managers. */
export function toolchainOf(kind: Kind, packageManager: string): Toolchain {
  const { toolchains }: Runtime = RUNTIMES[kind];
  return toolchains[packageManager]!;
}

/** Files that a worker is started from when its manifest names none, preferred ones first. */
export function usualEntries(kind: Kind): string[] {
  const { entryNames, entryEndings }: Runtime = RUNTIMES[kind];
  const files = entryNames.flatMap((name) => entryEndings.map((ending) => `${name}.${ending}`));
  return [...files, ...files.map((file) => `src/${file}`)];
}

/** Whether a file in a worker's directory declares dependencies. */
export function isDependencyFile(name: string): boolean {
  const matches = (file: string | RegExp): boolean =>
    typeof file === "string" ? file === name : file.test(name);
  return name === MANIFEST ||
    TOOLCHAINS.some(({ dependencyFiles }) => dependencyFiles.some(matches));
}

/** Whether a file is a source of some language, by its name. */
export function isSourceFile(name: string): boolean {
  const dot = name.lastIndexOf(".");
  return dot >= 0 && SOURCE_ENDINGS.has(name.slice(dot + 1));
}

/** Folders that tools of any language write. */
export function generatedFolders(): string[] {
  return Object.values(RUNTIMES).flatMap(({ generatedFolders }) => [...generatedFolders]);
}

/** Whether a variable configures a toolchain, and its value means the same in a guest. */
export function isGuestSetting(variable: string): boolean {
  return TOOLCHAINS.some(({ settings }) => settings.test(variable)) &&
    !TOOLCHAINS.some(({ hostPlaces }) => hostPlaces?.test(variable));
}

/**
 * Variables that make every toolchain, and not only the worker's own, keep what it downloads in a
 * folder: an install script may run any of them.
 */
export function cacheEnv(folder: string): Record<string, string> {
  return Object.assign(
    { XDG_CACHE_HOME: folder },
    ...TOOLCHAINS.map((toolchain) => toolchain.cacheEnv(folder)),
  );
}

/** Whose runtime to find. */
export interface RuntimeRequest extends LocateRequest {
  readonly kind: Kind;
  readonly packageManager: string;
  /** Absolute path of the worker, which can write there. */
  readonly directory: string;
}

/**
 * Finds the programs that run a worker in a microVM, and the folders that hold them.
 *
 * `path` is the engine's or config.yaml's, never the manifest's, and folders that a contained
 * worker can write are taken out: otherwise a worker could choose a program that runs on the host.
 *
 * @throws {EngineError} `launch_failed` when a program is missing, too old or does not run.
 */
export async function findRuntime(request: RuntimeRequest): Promise<GuestRuntime> {
  const { name, kind, packageManager, directory, dataDirectory } = request;
  const writable = [directory, ...await containedFolders(dataDirectory)];
  const programs = TOOLCHAINS.flatMap(({ programs }) => programs).map(({ name }) => name);
  const path = await pathOutside(request.path, writable, [...new Set(programs)]);
  return await toolchainOf(kind, packageManager).locate({ name, path, dataDirectory });
}
