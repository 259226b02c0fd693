/**
 * One look at a worker's directory: which files count, when they changed, and which folders the
 * system has to watch for the next edit to be noticed.
 *
 * Links are followed: what is reached over one counts under the name of the link. One that leads to
 * a folder around the worker is not, and in the directory of a contained worker none that leads
 * out: it could be one of its own making, and tell when somebody writes elsewhere. The work is
 * bounded, folders near the top come first.
 *
 * @module
 */
import { WATCH_FILES_MAX, WATCH_FOLDERS_MAX } from "../supervisor/limits.ts";
import type { WatchPatterns } from "./patterns.ts";

/** What was found. Names are relative to the worker's directory; empty for that itself. */
export interface SourceScan {
  /** Where the directory is, absolute, without links. */
  readonly root: string;
  /** Whether there is such a directory. */
  readonly isThere: boolean;
  /** Files that count, by name. */
  readonly files: ReadonlyMap<string, SourceFile>;
  /** Folders in which files may count, the directory itself first. */
  readonly folders: readonly SourceFolder[];
  /** Absolute paths of files that links lead to, and of the directory's own link. */
  readonly targets: ReadonlySet<string>;
  /** Whether something was left out, since there is more than a watch looks at. */
  readonly isCut: boolean;
}

/** A file that counts. */
export interface SourceFile {
  /** Differs after each change. */
  readonly stamp: string;
  /** When it was last written, renamed or replaced, in milliseconds since 1970. */
  readonly changedAtMs: number;
}

/** A folder to watch; those below it are listed by themselves. */
export interface SourceFolder {
  /** Absolute, without links. */
  readonly path: string;
  /** What it is called in the worker's directory; `undefined`: only links lead to files in it. */
  readonly name: string | undefined;
  /** Differs when the folder was deleted and made again. */
  readonly identity: string;
}

/** Lies in every virtual environment of Python. */
const ENVIRONMENT_FILE = "pyvenv.cfg";
/** A folder with more bytes of names than this is read on another thread. */
const LARGE_FOLDER_BYTES = 128 * 1024;

/** Looks at the directory (absolute) of a worker. */
export function* scanSources(
  directory: string,
  patterns: WatchPatterns,
  isContained = false,
): Steps<SourceScan> {
  const scanner = new Scanner(directory, patterns, isContained);
  yield* scanner.run();
  return scanner;
}

class Scanner implements SourceScan {
  readonly root: string;
  readonly files = new Map<string, SourceFile>();
  readonly folders: SourceFolder[] = [];
  readonly targets = new Set<string>();
  isThere = false;
  isCut = false;
  readonly #directory: string;
  readonly #patterns: WatchPatterns;
  readonly #isContained: boolean;
  /** Those near the top first; grows while it is read. */
  readonly #open: { readonly path: string; readonly name: string }[] = [];
  readonly #paths = new Set<string>();

  constructor(directory: string, patterns: WatchPatterns, isContained: boolean) {
    this.#directory = directory;
    this.#isContained = isContained;
    this.root = realPath(directory) ?? directory;
    this.#patterns = patterns;
  }

  *run(): Steps<void> {
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
    this.isThere = this.folders[0]?.path === this.root;
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
    if (target === undefined) return; // It leads nowhere yet.
    if (this.#isContained && !target.startsWith(`${this.root}/`)) return;
    if (kindOf(target) === "folder") {
      const isAround = `${this.root}/`.startsWith(target === "/" ? target : `${target}/`);
      if (!isAround && this.#patterns.reach(name) !== "outside") this.#add(target, name);
    } else if (this.#patterns.counts(name)) {
      this.#takeFile(path, name);
      this.targets.add(target);
    }
  }

  /** A virtual environment, unless it is asked for by name. */
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

function* entriesOf(path: string, bytes: number): Steps<readonly Deno.DirEntry[] | undefined> {
  try {
    if (bytes <= LARGE_FOLDER_BYTES) return [...Deno.readDirSync(path)];
  } catch {
    return undefined; // Gone again, no folder, or not ours to read.
  }
  let entries: Deno.DirEntry[] | undefined;
  yield Array.fromAsync(Deno.readDir(path)).then((read) => void (entries = read), () => {});
  return entries;
}

/** What a path itself is, without following a link; `undefined`: nothing. */
export function kindOf(path: string): "file" | "folder" | "link" | undefined {
  try {
    const { isDirectory, isSymlink } = Deno.lstatSync(path);
    return isSymlink ? "link" : isDirectory ? "folder" : "file";
  } catch {
    return undefined; // Gone, or not ours to see.
  }
}

/**
 * Deno tells of renames and replacements in whole seconds: the end of one counts, since an edit
 * taken for old would be lost.
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
    return undefined; // Gone.
  }
}

function infoOf(path: string): { identity: string; bytes: number } | undefined {
  try {
    const { dev, ino, birthtime, size } = Deno.statSync(path);
    return { identity: `${dev} ${ino} ${birthtime?.getTime()}`, bytes: size };
  } catch {
    return undefined; // Gone.
  }
}

function realPath(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch {
    return undefined; // Nothing there.
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** Work that may be interrupted where it yields; a promise is waited for. */
export type Steps<T> = Generator<Promise<unknown> | undefined, T, void>;

/** Work goes on for so long before others have their turn, in milliseconds. */
const SLICE_MS = 8;
/** Work of fewer steps ends in one turn, also on a machine that is busy. */
const STEPS_AT_LEAST = 32;

/** Does the work. `undefined`: it was no longer wanted when its turn came again. */
export async function inSlices<T>(
  steps: Steps<T>,
  isWanted: () => boolean,
): Promise<T | undefined> {
  let began = performance.now();
  for (let count = 1;; count++) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value !== undefined) await value;
    else if (count < STEPS_AT_LEAST || performance.now() - began < SLICE_MS) continue;
    else await new Promise((resolve) => setTimeout(resolve, 0));
    if (!isWanted()) return void steps.return(undefined as T);
    [began, count] = [performance.now(), 0];
  }
}
