/**
 * Sees edits of a worker's files.
 *
 * A folder stands for the sources in it and below; what a program writes there (caches, data,
 * logs) does not count. A file that is named counts whatever it is. Several changes in short
 * order are told as one.
 *
 * @module
 */
import { EDIT_DEBOUNCE_MS } from "../../sdk/typescript/limits.ts";
import type { Clock } from "../ports/clock.ts";
import { isDependencyFile } from "./dependency_hash.ts";

/** What to watch. */
export interface WorkerWatchOptions {
  /** Absolute. */
  readonly directory: string;
  /** Files and folders, relative to the directory; empty: nothing. */
  readonly watch: readonly string[];
  readonly clock: Clock;
  /** Told some time after the last change of several. */
  onChange(change: WorkerChange): void;
  /** Told when the system gives no watch: edits go unseen, all else goes on. */
  onFailure(reason: string): void;
}

/** Some files were edited, made, renamed or removed. */
export interface WorkerChange {
  /** Relative to the worker's directory, sorted. */
  readonly paths: readonly string[];
  /** Whether one of them says what to install. */
  readonly dependencies: boolean;
  /** When the last of them changed, in milliseconds since 1970; the present for removed ones. */
  readonly changedAtMs: number;
}

/** Watches until it is closed. */
export type WatchWorker = (options: WorkerWatchOptions) => Disposable;

/** Folders that programs fill. */
const IGNORED_FOLDERS = new Set([
  ".engine",
  ".git",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".venv",
  "__pycache__",
  "node_modules",
  "venv",
]);
const SOURCE =
  /\.(py|pyi|ts|mts|cts|tsx|js|mjs|cjs|jsx|html|css|sql|graphql|toml|ini|cfg)$|^\.env$/;
/** What editors leave for a moment. */
const TEMPORARY = /^(\.#|#)|~$|\.(swp|swx|tmp)$/;
/** Folders watched for one worker; beyond it the rest goes unseen. */
const FOLDERS_MAX = 2_000;

/** Watches with the system's own notices. Files that do not exist yet are seen when they come. */
export const watchWorker: WatchWorker = (options) => new FileWatch(options);

/** One worker's watch; it starts anew when a folder is made. */
class FileWatch implements Disposable {
  readonly #options: WorkerWatchOptions;
  /** The directory without links: that is how the system names what changed. */
  readonly #root: string;
  /** Absolute paths of what is watched. */
  readonly #roots: readonly string[];
  readonly #changed = new Set<string>();
  #watcher: Deno.FsWatcher | undefined;
  #cancelTimer: () => void = () => {};

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
    this.#root = realPath(options.directory);
    this.#roots = options.watch.map((path) => realPath(join(this.#root, path)));
    this.#open();
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #open(): void {
    try {
      let folders = this.#folders();
      if (folders.size === 0) return;
      let watcher = Deno.watchFs([...folders], { recursive: false });
      // A folder that was made after its parent was read and before it was watched goes unseen.
      for (let now = this.#folders(); !isWithin(now, folders); now = this.#folders()) {
        watcher.close();
        folders = now;
        watcher = Deno.watchFs([...folders], { recursive: false });
      }
      this.#watcher = watcher;
      void this.#follow(watcher);
    } catch (thrown) {
      this.#options.onFailure(String(thrown));
    }
  }

  #folders(): Set<string> {
    const folders = new Set(this.#roots.flatMap((path) => isFolder(path) ? [] : [parentOf(path)]));
    for (const path of this.#roots) addFolders(folders, path);
    return folders;
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    for await (const { kind, paths } of watcher) {
      if (kind === "access" || kind === "any" || kind === "other") continue;
      for (const path of paths) this.#note(path);
      const made = kind === "create" || kind === "rename" ? paths.filter(isWatchable) : [];
      if (made.length === 0 || this.#watcher !== watcher) continue;
      // The new watch comes before the old one ends, so nothing falls between the two.
      this.#open();
      for (const path of made.flatMap(filesBelow)) this.#note(path);
      break;
    }
  }

  #note(path: string): void {
    if (!this.#counts(path)) return;
    this.#changed.add(path);
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(EDIT_DEBOUNCE_MS, () => this.#tell());
  }

  #counts(path: string): boolean {
    const name = nameOf(path);
    if (this.#roots.includes(path)) return !isFolder(path);
    const folders = path.slice(this.#root.length + 1).split("/");
    if (folders.some((part) => IGNORED_FOLDERS.has(part)) || TEMPORARY.test(name)) return false;
    return this.#roots.some((root) => path.startsWith(`${root}/`)) &&
      (SOURCE.test(name) || isDependencyFile(name));
  }

  #tell(): void {
    const paths = [...this.#changed].sort();
    this.#changed.clear();
    if (this.#watcher === undefined) return;
    this.#options.onChange({
      paths: paths.map((path) => path.slice(this.#root.length + 1)),
      dependencies: paths.some((path) => isDependencyFile(nameOf(path))),
      changedAtMs: Math.max(...paths.map((path) => changeTime(path) ?? Date.now())),
    });
  }
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((path) => all.has(path));
}

/** The folder and those below it that are not left out. */
function addFolders(folders: Set<string>, path: string): void {
  if (!isFolder(path) || folders.size >= FOLDERS_MAX) return;
  folders.add(path);
  for (const { name, isDirectory } of entriesOf(path)) {
    if (isDirectory && !IGNORED_FOLDERS.has(name)) addFolders(folders, `${path}/${name}`);
  }
}

function filesBelow(folder: string): string[] {
  return entriesOf(folder).flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (!isDirectory) return [path];
    return IGNORED_FOLDERS.has(name) ? [] : filesBelow(path);
  });
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return []; // Gone again, or not ours to read.
  }
}

function isWatchable(path: string): boolean {
  return isFolder(path) && !IGNORED_FOLDERS.has(nameOf(path));
}

function isFolder(path: string): boolean {
  try {
    return Deno.lstatSync(path).isDirectory;
  } catch {
    return false; // Gone.
  }
}

/**
 * When the file was last written, renamed or replaced. Deno tells the latter two in whole seconds:
 * of those the end counts, since an edit taken for old would be lost.
 */
function changeTime(path: string): number | undefined {
  try {
    const { ctime, mtime } = Deno.statSync(path);
    const writtenMs = mtime?.getTime() ?? 0;
    const changedMs = ctime?.getTime() ?? writtenMs;
    return changedMs <= writtenMs ? writtenMs : changedMs + 999;
  } catch {
    return undefined; // Removed.
  }
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path; // Not there yet.
  }
}

function join(directory: string, path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return [directory, ...parts].join("/");
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
