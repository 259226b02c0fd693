/**
 * File system events in some folders, from the system.
 *
 * Events are hints. Deno drops most of them when many arrive, and a folder that was deleted and
 * created again causes none until it is watched anew.
 *
 * Deno has one watch for the whole process. It compares each event with the paths of every
 * `watchFs`, one after the other until one contains it, with system calls each time. The watcher
 * that is read therefore names few paths; the folders themselves are named in silent watchers that
 * are never read, after a path that contains everything.
 *
 * @module
 */
import type { ChunkedWork, SourceScan } from "./source_scan.ts";

/** How to watch. */
export interface FolderWatcherOptions {
  onEvent(event: Deno.FsEvent): void;
  readonly platform: typeof Deno.build.os;
  /** Replaces `Deno.watchFs` in tests. */
  readonly watch?: typeof Deno.watchFs;
}

/** What to watch: see {@linkcode SourceScan}. */
export type Watched = Pick<SourceScan, "root" | "folders">;

/** Folders per silent watcher; each takes some 0.15 ms. */
const FOLDERS_AT_ONCE = 200;

/** Watches the folders of a scan. */
export class FolderWatcher {
  readonly #options: FolderWatcherOptions;
  #listener: Deno.FsWatcher | undefined;
  #silent: Deno.FsWatcher[] = [];
  /** Settles when the listener has ended. */
  #end: Promise<void> = Promise.resolve();
  #watched = "";
  #failure: string | null = null;
  #isClosed = false;

  constructor(options: FolderWatcherOptions) {
    this.#options = options;
  }

  /** Why the system does not watch all folders; `null`: it does. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Whether exactly these folders are watched, and none was deleted and created again. */
  isWatching(watched: Watched): boolean {
    return this.#watched === keyOf(watched);
  }

  /** A watched folder may be gone, so the next watch() starts anew. */
  invalidate(): void {
    this.#watched = "";
  }

  /** Watches exactly these folders. Events during the change may be lost. */
  *watch(watched: Watched): ChunkedWork<void> {
    const isFirst = this.#listener === undefined;
    yield* this.#closeAll();
    if (!isFirst) yield this.#end; // Until then Deno regards the paths as watched.
    this.#watched = keyOf(watched);
    this.#failure = null;
    const { root } = watched;
    const paths = watched.folders.map(({ path }) => path);
    if (this.#isClosed || paths.length === 0) return;
    // Other systems watch folders recursively.
    const isRecursive = this.#options.platform !== "linux";
    const outside = paths.filter((path) => !`${path}/`.startsWith(`${root}/`));
    this.#listener = this.#open([...paths.includes(root) ? [root] : [], ...outside], isRecursive);
    if (this.#listener) this.#end = this.#follow(this.#listener);
    for (let i = 0; i < paths.length && !isRecursive && !this.#isClosed; i += FOLDERS_AT_ONCE) {
      yield;
      const silent = this.#open(["/", ...paths.slice(i, i + FOLDERS_AT_ONCE)], false);
      if (silent) this.#silent.push(silent);
    }
  }

  /** Stops; no event is reported from now on. */
  *close(): ChunkedWork<void> {
    this.#isClosed = true;
    yield* this.#closeAll();
  }

  *#closeAll(): ChunkedWork<void> {
    this.#listener?.close();
    this.#listener = undefined;
    for (let silent = this.#silent.pop(); silent; silent = this.#silent.pop()) {
      silent.close();
      yield;
    }
  }

  #open(paths: readonly string[], recursive: boolean): Deno.FsWatcher | undefined {
    const watch = this.#options.watch ?? Deno.watchFs;
    for (let left = paths; left.length > 0;) {
      try {
        return watch([...left], { recursive });
      } catch (thrown) {
        const there = left.filter(isFolder);
        if (there.length === left.length) {
          const text = thrown instanceof Error ? thrown.message : String(thrown);
          this.#failure ??= text.replace(/\.? about \[.*$/s, "");
          return undefined;
        }
        left = there;
      }
    }
    return undefined;
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    try {
      for await (const event of watcher) if (!this.#isClosed) this.#options.onEvent(event);
    } catch {
      // Treated as lost events: the receiver scans and watches anew.
      if (!this.#isClosed) this.#options.onEvent({ kind: "other", paths: [], flag: "rescan" });
    }
  }
}

function keyOf({ root, folders }: Watched): string {
  return JSON.stringify([
    root,
    ...folders.map(({ path, identity }) => `${path} ${identity}`).sort(),
  ]);
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false; // It is gone.
  }
}
