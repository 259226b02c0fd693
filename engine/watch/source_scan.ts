/**
 * One scan of a worker's directory: which files are sources, when they changed, and which folders
 * the system has to watch to report the next edit.
 *
 * Links are followed, and what they lead to counts under the name of the link. Not followed are
 * links to a folder that contains the worker, and in the directory of a contained worker all links
 * that lead out, since the worker could use them to observe other folders. A scan is bounded, with
 * folders near the top first, and it is {@linkcode ChunkedWork}, so that calls are routed in
 * between.
 *
 * @module
 */
import type { WatchPatterns } from "./patterns.ts";

/** Folders watched for one worker; edits in further ones are not seen, which is logged. */
export const WATCH_FOLDERS_MAX = 2_000;
/** Files watched for one worker; edits of further ones are not seen, which is logged. */
export const WATCH_FILES_MAX = 20_000;

/** The result of a scan. Names are relative to the worker's directory; that itself has "". */
export interface SourceScan {
  /** Where the directory is, absolute, without links. */
  readonly root: string;
  /** Whether the directory exists. */
  readonly exists: boolean;
  /** Sources, by name. */
  readonly files: ReadonlyMap<string, SourceFile>;
  /** Folders that may contain sources, the directory itself first. */
  readonly folders: readonly SourceFolder[];
  /** Absolute paths of files that links lead to, and of the directory's own link. */
  readonly targets: ReadonlySet<string>;
  /** Whether folders or files were left out because there are too many. */
  readonly isCut: boolean;
}

/** A source file. */
export interface SourceFile {
  /** Differs after each change. */
  readonly stamp: string;
  /** When it was last written, renamed or replaced, in milliseconds since 1970. */
  readonly changedAtMs: number;
}

/** A folder to watch, without the folders below it. */
export interface SourceFolder {
  /** Absolute, without links. */
  readonly path: string;
  /** Its name in the worker's directory; `undefined`: only links lead to files in it. */
  readonly name: string | undefined;
  /** Differs when the folder was deleted and created again. */
  readonly identity: string;
}

/** A file in every virtual environment of Python. */
const ENVIRONMENT_FILE = "pyvenv.cfg";
/** Bytes of names from which on a folder is read on another thread. */
const LARGE_FOLDER_BYTES = 128 * 1024;

/** Scans the directory (absolute) of a worker. */
export function* scanSources(
  directory: string,
  patterns: WatchPatterns,
  isContained = false,
): ChunkedWork<SourceScan> {
  const scanner = new Scanner(directory, patterns, isContained);
  yield* scanner.run();
  return scanner;
}

class Scanner implements SourceScan {
  readonly root: string;
  readonly files = new Map<string, SourceFile>();
  readonly folders: SourceFolder[] = [];
  readonly targets = new Set<string>();
  exists = false;
  isCut = false;
  readonly #directory: string;
  readonly #patterns: WatchPatterns;
  readonly #isContained: boolean;
  /** Folders to visit, near ones first; grows during the scan. */
  readonly #open: { readonly path: string; readonly name: string }[] = [];
  readonly #paths = new Set<string>();

  constructor(directory: string, patterns: WatchPatterns, isContained: boolean) {
    this.#directory = directory;
    this.#isContained = isContained;
    this.root = realPath(directory) ?? directory;
    this.#patterns = patterns;
  }

  *run(): ChunkedWork<void> {
    this.#add(this.root, "");
    for (const { path, name } of this.#open) {
      this.isCut ||= this.folders.length >= WATCH_FOLDERS_MAX;
      if (this.folders.length >= WATCH_FOLDERS_MAX) break;
      const info = infoOf(path);
      const entries = info && (yield* entriesOf(path, info.bytes));
      if (!entries || this.#isEnvironment(name, entries)) continue;
      this.folders.push({ path, name, identity: info.identity });
      for (const [i, entry] of entries.entries()) {
        if (i % 100 === 99) yield;
        this.#take(entry, `${path}/${entry.name}`, name ? `${name}/${entry.name}` : entry.name);
      }
      yield;
    }
    this.exists = this.folders[0]?.path === this.root;
    if (kindOf(this.#directory) === "link") this.targets.add(this.#directory);
    this.#addTargets();
  }

  #add(path: string, name: string): void {
    if (this.#paths.has(path)) return;
    this.#paths.add(path);
    this.#open.push({ path, name });
  }

  #take({ isDirectory, isSymlink }: Deno.DirEntry, path: string, name: string): void {
    if (isSymlink) this.#takeLink(path, name);
    else if (!isDirectory) this.#takeFile(path, name);
    else if (this.#patterns.reach(name) !== "outside") this.#add(path, name);
  }

  #takeFile(path: string, name: string): void {
    if (!this.#patterns.counts(name)) return;
    if (this.files.size >= WATCH_FILES_MAX) return void (this.isCut = true);
    const file = sourceFile(path);
    if (file) this.files.set(name, file);
  }

  #takeLink(path: string, name: string): void {
    const target = realPath(path);
    if (target === undefined) return; // The target does not exist yet.
    if (this.#isContained && !target.startsWith(`${this.root}/`)) return;
    if (kindOf(target) === "folder") {
      const isAround = `${this.root}/`.startsWith(target === "/" ? target : `${target}/`);
      if (!isAround && this.#patterns.reach(name) !== "outside") this.#add(target, name);
    } else if (this.#patterns.counts(name)) {
      this.#takeFile(path, name);
      this.targets.add(target);
    }
  }

  /** A virtual environment, unless a pattern names it. */
  #isEnvironment(name: string, entries: readonly Deno.DirEntry[]): boolean {
    return entries.some((entry) => entry.name === ENVIRONMENT_FILE) &&
      this.#patterns.reach(name) === "below";
  }

  #addTargets(): void {
    for (const path of new Set([...this.targets].map(parentOf))) {
      const identity = infoOf(path)?.identity;
      if (identity === undefined || this.folders.some((folder) => folder.path === path)) continue;
      this.folders.push({ path, name: undefined, identity });
    }
  }
}

function* entriesOf(
  path: string,
  bytes: number,
): ChunkedWork<readonly Deno.DirEntry[] | undefined> {
  try {
    if (bytes <= LARGE_FOLDER_BYTES) return [...Deno.readDirSync(path)];
  } catch {
    return undefined; // It is gone, is no folder, or is not readable.
  }
  let entries: Deno.DirEntry[] | undefined;
  yield Array.fromAsync(Deno.readDir(path)).then((read) => void (entries = read), () => {});
  return entries;
}

/** The type of a path, without following a link; `undefined`: there is nothing. */
export function kindOf(path: string): "file" | "folder" | "link" | undefined {
  try {
    const { isDirectory, isSymlink } = Deno.lstatSync(path);
    return isSymlink ? "link" : isDirectory ? "folder" : "file";
  } catch {
    return undefined; // It is gone or not accessible.
  }
}

/**
 * Deno reports renames and replacements in whole seconds. The end of the second is used, since an
 * edit that seems too old would be ignored.
 */
function sourceFile(path: string): SourceFile | undefined {
  try {
    const { ctime, mtime, size, ino } = Deno.statSync(path);
    const writtenMs = mtime?.getTime() ?? 0;
    const changedMs = ctime?.getTime() ?? writtenMs;
    return {
      stamp: `${writtenMs} ${changedMs} ${size} ${ino}`,
      changedAtMs: changedMs <= writtenMs ? writtenMs : changedMs + 999,
    };
  } catch {
    return undefined; // It is gone.
  }
}

function infoOf(path: string): { identity: string; bytes: number } | undefined {
  try {
    const { dev, ino, birthtime, size } = Deno.statSync(path);
    return { identity: `${dev} ${ino} ${birthtime?.getTime()}`, bytes: size };
  } catch {
    return undefined; // It is gone.
  }
}

function realPath(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch {
    return undefined; // There is no such path.
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/**
 * Long work in short chunks: a generator that may be suspended where it yields. A promise that it
 * yields is awaited.
 */
export type ChunkedWork<T> = Generator<Promise<unknown> | undefined, T, void>;

/** How long a chunk lasts before other work of the event loop runs, in milliseconds. */
const CHUNK_MS = 8;
/** Shorter work runs in one chunk, also on a busy machine. */
const CHUNK_STEPS_MIN = 32;

/** Runs work, quick work at once; `undefined` when `isNeeded` returns false after a chunk. */
export async function runChunked<T>(
  work: ChunkedWork<T>,
  isNeeded: () => boolean,
): Promise<T | undefined> {
  let began = performance.now();
  for (let count = 1;; count++) {
    const { done, value } = work.next();
    if (done) return value;
    if (value !== undefined) await value;
    else if (count < CHUNK_STEPS_MIN || performance.now() - began < CHUNK_MS) continue;
    else await new Promise((resolve) => setTimeout(resolve, 0));
    if (!isNeeded()) return void work.return(undefined as T);
    [began, count] = [performance.now(), 0];
  }
}
