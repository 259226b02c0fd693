/**
 * The system's notices that something happened in some folders.
 *
 * They are hints: when much happens, Deno drops most of them, and a folder that was deleted and
 * made again is watched no more until it is watched anew.
 *
 * Deno has one watch for the whole process and compares each notice with the paths of every
 * `watchFs`, one after the other until one contains it, each time with some calls of the system; so
 * what is listened to names few paths. The folders themselves are named in others that nobody
 * reads, behind a path that contains everything.
 *
 * @module
 */
import type { SourceScan, Steps } from "./source_scan.ts";

/** Who hears of what. */
export interface NoticesOptions {
  onEvent(event: Deno.FsEvent): void;
  readonly platform: typeof Deno.build.os;
  /** Another way to watch, for tests. */
  readonly watch?: typeof Deno.watchFs;
}

/** What to watch: see {@linkcode SourceScan}. */
export type Watched = Pick<SourceScan, "root" | "folders">;

/** Folders that are watched in one go; each takes some 0.15 ms. */
const FOLDERS_AT_ONCE = 200;

/** Watches the folders of a scan. */
export class FolderNotices {
  readonly #options: NoticesOptions;
  #listener: Deno.FsWatcher | undefined;
  #silent: Deno.FsWatcher[] = [];
  /** Settles when nothing is listened to any more. */
  #end: Promise<void> = Promise.resolve();
  #watched = "";
  #failure: string | null = null;
  #isClosed = false;

  /** Watches nothing yet. */
  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Why the system watches less than it was asked for; `null` when it watches all. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Whether these are watched, and none was deleted and made again since. */
  isWatching(watched: Watched): boolean {
    return this.#watched === keyOf(watched);
  }

  /** What is watched may be gone: the next watch() begins anew. */
  distrust(): void {
    this.#watched = "";
  }

  /** Watches these and no others. What happens meanwhile may go unseen. */
  *watch(watched: Watched): Steps<void> {
    const isFirst = this.#listener === undefined;
    yield* this.#closeAll();
    if (!isFirst) yield this.#end; // Until then Deno takes the paths for watched.
    this.#watched = keyOf(watched);
    this.#failure = null;
    const { root } = watched;
    const paths = watched.folders.map(({ path }) => path);
    if (this.#isClosed || paths.length === 0) return;
    // Other systems watch all below by themselves.
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

  /** Watches nothing any more; nothing is told from now on. */
  *close(): Steps<void> {
    this.#isClosed = true;
    yield* this.#closeAll();
  }

  *#closeAll(): Steps<void> {
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
      // As good as lost notices: whoever is told looks, and watches anew.
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
    return false; // Gone.
  }
}
