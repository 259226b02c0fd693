/**
 * Reports edits of a worker's files.
 *
 * File system events say when to scan, and the comparison of two scans says what changed, because
 * events get lost when many arrive. Edits in quick succession are reported as one. A directory that
 * does not exist, or is deleted and created again, is found when it appears. {@linkcode EditWatch}
 * keeps the watch of a worker on the paths in its manifest.
 *
 * @module
 */
import { MANIFEST } from "../install/worker_files.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { FolderWatcher } from "./folder_watcher.ts";
import { WatchPatterns } from "./patterns.ts";
import {
  type ChunkedWork,
  kindOf,
  runChunked,
  scanSources,
  type SourceScan,
  WATCH_FILES_MAX,
  WATCH_FOLDERS_MAX,
} from "./source_scan.ts";

/** A folder is scanned after this long without another edit. */
const EDIT_DEBOUNCE_MS = 150;
/** Continuous edits are reported after so long. */
const EDIT_HOLD_MS = 5_000;
/** Interval between scans where the system reports no events. */
const WATCH_RETRY_MS = 1_000;

/** What {@linkcode EditWatch} works with. */
export interface EditWatchTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly watch: WatchWorker;
}

/** The watch of one worker, whose manifest determines the paths. */
export class EditWatch implements Disposable {
  readonly #tools: EditWatchTools;
  readonly #name: string;
  readonly #onChange: (change: WorkerChange) => void;
  #watching: Disposable | undefined;
  #directory = "";
  #paths = "";
  #isClosed = false;

  constructor(tools: EditWatchTools, name: string, onChange: (change: WorkerChange) => void) {
    this.#tools = tools;
    this.#name = name;
    this.#onChange = onChange;
  }

  /** Watches the whole directory until its manifest is known. */
  watchDirectory(directory: string, isContained: boolean): void {
    if (this.#directory !== directory) this.#watch(directory, ["."], isContained);
  }

  /** Watches the paths of a manifest and the manifest itself; nothing for an empty list. */
  watchPaths(directory: string, watch: readonly string[], isContained: boolean): void {
    const isWhole = watch.length === 0 || watch.includes(".");
    this.#watch(directory, isWhole ? watch : [...watch, MANIFEST], isContained);
  }

  /** Ends the watch; later calls have no effect. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#watching?.[Symbol.dispose]();
    this.#watching = undefined;
  }

  #watch(directory: string, watch: readonly string[], isContained: boolean): void {
    const paths = JSON.stringify([watch, isContained]);
    if (this.#isClosed) return;
    if (this.#directory === directory && this.#paths === paths) return;
    this.#watching?.[Symbol.dispose]();
    this.#directory = directory;
    this.#paths = paths;
    const { clock, log } = this.#tools;
    this.#watching = this.#tools.watch({
      directory,
      watch,
      isContained,
      clock,
      onChange: this.#onChange,
      onFailure: (reason) =>
        log.warn("the engine does not see all edits of a worker", { worker: this.#name, reason }),
    });
  }
}

/** What to watch, and where to report. */
export interface WorkerWatchOptions {
  /** Absolute. */
  readonly directory: string;
  /** Patterns of {@linkcode WatchPatterns}; empty: nothing is watched. */
  readonly watch: readonly string[];
  /** Whether the worker is contained; links out of its directory are not followed then. */
  readonly isContained?: boolean;
  readonly clock: Clock;
  /** Called some time after the last of several edits. */
  onChange(change: WorkerChange): void;
  /** Called when edits may be missed or seen late, with what to do about it. */
  onFailure(reason: string): void;
}

/** Some files were edited, created, renamed or removed. */
export interface WorkerChange {
  /** Relative to the worker's directory, sorted; the first few of many. */
  readonly paths: readonly string[];
  /** When the last of them changed, in milliseconds since 1970. */
  readonly changedAtMs: number;
}

/** Watches until the result is disposed of. */
export type WatchWorker = (options: WorkerWatchOptions) => Disposable;

/** Most paths in a report. */
const PATHS_MAX = 20;
/** Events in quick succession after which Deno may lose further ones. */
const EVENTS_KEPT = 16;
/** Resolution of the times of files. */
const TICK_MS = 10;
/** Scans that no event causes take at most one part of the time in so many. */
const SCAN_SHARE = 10;
/** Scans in a row while folders keep changing; the next one comes later. */
const SCANS_AT_ONCE = 3;

/** Watches with events of the system. Files that do not exist yet are reported when they appear. */
export const watchWorker: WatchWorker = (options) => new FileWatch(options);

/** One worker's watch. */
class FileWatch implements Disposable {
  readonly #options: WorkerWatchOptions;
  readonly #patterns: WatchPatterns;
  readonly #watcher: FolderWatcher;
  #scan: SourceScan | undefined;
  /** When the last scan began, in milliseconds since 1970. */
  #scannedAtMs = 0;
  /** How long the last scan took. */
  #scanMs = 0;
  /** Names of files in events since the last scan. */
  readonly #inEvents = new Set<string>();
  /** Times of changes that were not reported yet, by name. */
  readonly #changed = new Map<string, number>();
  /** The first event since the last scan: on the clock, and in milliseconds since 1970. */
  #firstEvent: { readonly at: number; readonly atMs: number } | undefined;
  #otherEvents = 0;
  #isScanning = false;
  #isClosed = false;
  #reported = "";
  #cancelTimer: () => void = () => {};
  #cancelRetry: () => void = () => {};

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
    this.#patterns = new WatchPatterns(options.watch);
    this.#watcher = new FolderWatcher({
      onEvent: (event) => this.#onEvent(event),
      platform: Deno.build.os,
    });
    if (options.watch.length > 0) void this.#rescan();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#cancelRetry();
    void runChunked(this.#watcher.close(), () => true);
  }

  /** Scans some time after the last of several events, but not later than `EDIT_HOLD_MS`. */
  #schedule(quietMs = EDIT_DEBOUNCE_MS): void {
    const { clock } = this.#options;
    const now = clock.now();
    this.#firstEvent ??= { at: now, atMs: Date.now() };
    this.#cancelTimer();
    const ms = Math.max(0, Math.min(quietMs, this.#firstEvent.at + EDIT_HOLD_MS - now));
    this.#cancelTimer = clock.after(ms, () => void this.#rescan());
  }

  async #rescan(): Promise<void> {
    if (this.#isScanning) return this.#schedule();
    this.#isScanning = true;
    const eventAtMs = this.#firstEvent?.atMs;
    this.#firstEvent = undefined;
    this.#otherEvents = 0;
    const began = this.#options.clock.now();
    try {
      await runChunked(this.#compare(eventAtMs), () => !this.#isClosed);
    } catch (thrown) {
      this.#fail(String(thrown));
    }
    this.#scanMs = this.#options.clock.now() - began;
    this.#isScanning = false;
    if (this.#isClosed) return;
    if (eventAtMs !== undefined) this.#report();
    else if (this.#changed.size > 0) this.#schedule(); // More edits may follow.
  }

  /** Scans, records differences, and watches new folders. */
  *#compare(eventAtMs: number | undefined): ChunkedWork<void> {
    for (let i = 0; i < SCANS_AT_ONCE; i++) {
      const scannedAtMs = Date.now();
      const { directory, isContained } = this.#options;
      const scan = yield* scanSources(directory, this.#patterns, isContained);
      if (this.#scan) this.#noteChanges(this.#scan, scan, eventAtMs ?? scannedAtMs);
      this.#scan = scan;
      this.#scannedAtMs = scannedAtMs;
      this.#scheduleRetry(scan);
      if (this.#watcher.isWatching(scan)) return;
      yield* this.#watcher.watch(scan);
    }
    this.#schedule();
  }

  #noteChanges(before: SourceScan, now: SourceScan, atMs: number): void {
    for (const [name, { stamp, changedAtMs }] of now.files) {
      const old = before.files.get(name);
      // Two edits within the resolution look the same; one may have come after the last scan.
      const mayDiffer = this.#inEvents.has(name) && changedAtMs >= this.#scannedAtMs - TICK_MS;
      if (old === undefined) {
        // A file that was moved here counts from its arrival.
        this.#changed.set(name, Math.max(changedAtMs, atMs));
      } else if (old.stamp !== stamp || mayDiffer) this.#changed.set(name, changedAtMs);
    }
    for (const name of before.files.keys()) if (!now.files.has(name)) this.#changed.set(name, atMs);
    this.#inEvents.clear();
  }

  /** Scans again after some time where no event will come. */
  #scheduleRetry({ exists, isCut }: SourceScan): void {
    const { failure } = this.#watcher;
    if (isCut) {
      this.#fail(
        `it has more than ${WATCH_FOLDERS_MAX} folders or ${WATCH_FILES_MAX} files, and those ` +
          "beyond are left out; name those that matter under watch",
      );
    }
    if (failure !== null) {
      const remedy = Deno.build.os === "linux" ? "; raise fs.inotify.max_user_watches" : "";
      this.#fail(
        `the system watches no more folders (${failure}), so its files are read every ` +
          `${WATCH_RETRY_MS / 1_000} s instead${remedy}`,
      );
    }
    this.#cancelRetry();
    if (exists && failure === null) return;
    const ms = Math.max(WATCH_RETRY_MS, this.#scanMs * SCAN_SHARE);
    this.#cancelRetry = this.#options.clock.after(ms, () => void this.#rescan());
  }

  /** Reports each reason once. */
  #fail(reason: string): void {
    if (this.#reported.includes(reason)) return;
    this.#reported += `${reason}\n`;
    this.#options.onFailure(reason);
  }

  #onEvent({ kind, paths, flag }: Deno.FsEvent): void {
    if (flag === "rescan") this.#watcher.invalidate(); // Events were lost.
    if (flag === "rescan" || paths.some((path) => this.#isRelevant(kind, path))) {
      return this.#schedule();
    }
    if (kind === "access" || ++this.#otherEvents !== EVENTS_KEPT || this.#firstEvent) return;
    this.#schedule(Math.max(EDIT_DEBOUNCE_MS, this.#scanMs * SCAN_SHARE));
  }

  #isRelevant(kind: Deno.FsEvent["kind"], path: string): boolean {
    if (kind === "access") return false;
    if (this.#scan?.targets.has(path)) return true;
    const name = this.#nameOf(path);
    if (name === undefined || !["create", "modify", "rename", "remove"].includes(kind)) {
      return false;
    }
    if (name !== "" && this.#patterns.counts(name)) {
      this.#inEvents.add(name);
      return true;
    }
    if (kind === "modify") return false;
    if (this.#scan?.folders.some((folder) => folder.path === path || folder.name === name)) {
      this.#watcher.invalidate(); // It may be gone and come again.
      return true;
    }
    const type = kindOf(path);
    return type === "link" || (type === "folder" && this.#patterns.reach(name) !== "outside");
  }

  /** The name of a path in the worker's directory; `undefined`: it lies elsewhere. */
  #nameOf(path: string): string | undefined {
    const { root, folders } = this.#scan!;
    if (path === root) return "";
    if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
    const folder = path.slice(0, path.lastIndexOf("/"));
    const linked = folders.find((one) => one.path === folder || one.path === path)?.name;
    if (linked === undefined) return undefined;
    return folders.some((one) => one.path === path)
      ? linked
      : `${linked}${path.slice(folder.length)}`;
  }

  #report(): void {
    if (this.#changed.size === 0) return;
    const names = [...this.#changed.keys()].sort();
    const changedAtMs = [...this.#changed.values()].reduce((last, at) => Math.max(last, at), 0);
    this.#changed.clear();
    this.#options.onChange({
      paths: names.slice(0, PATHS_MAX),
      changedAtMs,
    });
  }
}
