/**
 * Sees edits of a worker's files.
 *
 * The system's notices say when to look, a comparison of what lies there says what changed: notices
 * get lost when much happens, comparisons do not. Several changes in short order are told as one. A
 * directory that is not there, or that is deleted and made again, is found when it comes. No turn
 * of this takes long, however much lies there.
 *
 * @module
 */
import { EDIT_DEBOUNCE_MS } from "../../sdk/typescript/wire/limits.ts";
import { isDependencyFile } from "../install/runtimes/mod.ts";
import { MANIFEST } from "../install/worker_files.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import {
  EDIT_HOLD_MS,
  WATCH_FILES_MAX,
  WATCH_FOLDERS_MAX,
  WATCH_RETRY_MS,
} from "../supervisor/limits.ts";
import { FolderNotices } from "./folder_notices.ts";
import { WatchPatterns } from "./patterns.ts";
import { inSlices, kindOf, scanSources, type SourceScan, type Steps } from "./source_scan.ts";

/** What to watch. */
export interface WorkerWatchOptions {
  /** Absolute. */
  readonly directory: string;
  /** As {@linkcode WatchPatterns} takes them; empty: nothing. */
  readonly watch: readonly string[];
  /** Whether the worker cannot write elsewhere: links that lead out are left alone. */
  readonly isContained?: boolean;
  readonly clock: Clock;
  /** Told some time after the last change of several. */
  onChange(change: WorkerChange): void;
  /** Told when edits go unseen or are seen later, and what to do; all else goes on. */
  onFailure(reason: string): void;
}

/** Some files were edited, made, renamed or removed. */
export interface WorkerChange {
  /** Relative to the worker's directory, sorted; of many the first few. */
  readonly paths: readonly string[];
  /** Whether one of all of them says what to install. */
  readonly dependencies: boolean;
  /** When the last of them changed, in milliseconds since 1970. */
  readonly changedAtMs: number;
}

/** Watches until it is closed. */
export type WatchWorker = (options: WorkerWatchOptions) => Disposable;

/** Paths that a change names. */
const PATHS_TOLD = 20;
/** So many notices in short order, and others may be lost: Deno keeps no more. */
const FLOOD = 16;
/** Times of files move on in such steps. */
const TICK_MS = 10;
/** Looks that no edit asks for take one part of the time in so many. */
const LOOKS_SHARE = 10;
/** It looks so often at once while folders keep changing; then a moment later. */
const READS_AT_ONCE = 3;

/** Watches with the system's own notices. Files that do not exist yet are seen when they come. */
export const watchWorker: WatchWorker = (options) => new FileWatch(options);

/** One worker's watch. */
class FileWatch implements Disposable {
  readonly #options: WorkerWatchOptions;
  readonly #patterns: WatchPatterns;
  readonly #notices: FolderNotices;
  #scan: SourceScan | undefined;
  /** When that began, in milliseconds since 1970. */
  #scannedAtMs = 0;
  /** How long the last look took. */
  #lookedForMs = 0;
  /** Names of files of which a notice spoke. */
  readonly #noticed = new Set<string>();
  /** When what changed did so, by name. */
  readonly #changed = new Map<string, number>();
  /** When the first notice of several came, by the clock and by the calendar. */
  #woken: { readonly at: number; readonly atMs: number } | undefined;
  #otherNotices = 0;
  #isLooking = false;
  #isClosed = false;
  #failures = "";
  #cancelTimer: () => void = () => {};
  #cancelRetry: () => void = () => {};

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
    this.#patterns = new WatchPatterns(options.watch);
    this.#notices = new FolderNotices({
      onEvent: (event) => this.#onEvent(event),
      platform: Deno.build.os,
    });
    if (options.watch.length > 0) void this.#look();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#cancelRetry();
    void inSlices(this.#notices.close(), () => true);
  }

  /** Looks some time after the last of several notices, but not never. */
  #wake(quietMs = EDIT_DEBOUNCE_MS): void {
    const { clock } = this.#options;
    const now = clock.now();
    this.#woken ??= { at: now, atMs: Date.now() };
    this.#cancelTimer();
    const ms = Math.max(0, Math.min(quietMs, this.#woken.at + EDIT_HOLD_MS - now));
    this.#cancelTimer = clock.after(ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return this.#wake();
    this.#isLooking = true;
    const wokenAtMs = this.#woken?.atMs;
    this.#woken = undefined;
    this.#otherNotices = 0;
    const began = this.#options.clock.now();
    try {
      await inSlices(this.#compare(wokenAtMs), () => !this.#isClosed);
    } catch (thrown) {
      this.#fail(String(thrown));
    }
    this.#lookedForMs = this.#options.clock.now() - began;
    this.#isLooking = false;
    if (this.#isClosed) return;
    if (wokenAtMs !== undefined) this.#tell();
    else if (this.#changed.size > 0) this.#wake(); // There may be more in a moment.
  }

  /** Reads what lies there; notes what differs, and has the system watch what came. */
  *#compare(wokenAtMs: number | undefined): Steps<void> {
    for (let i = 0; i < READS_AT_ONCE; i++) {
      const scannedAtMs = Date.now();
      const { directory, isContained } = this.#options;
      const scan = yield* scanSources(directory, this.#patterns, isContained);
      if (this.#scan) this.#noteChanges(this.#scan, scan, wokenAtMs ?? scannedAtMs);
      this.#scan = scan;
      this.#scannedAtMs = scannedAtMs;
      this.#check(scan);
      if (this.#notices.isWatching(scan)) return;
      yield* this.#notices.watch(scan);
    }
    this.#wake();
  }

  #noteChanges(before: SourceScan, now: SourceScan, atMs: number): void {
    for (const [name, { stamp, changedAtMs }] of now.files) {
      const old = before.files.get(name);
      // Two edits in the same moment look the same: one may have come after the last look.
      const mayDiffer = this.#noticed.has(name) && changedAtMs >= this.#scannedAtMs - TICK_MS;
      if (old === undefined) {
        // What was moved here is as old as its arrival.
        this.#changed.set(name, Math.max(changedAtMs, atMs));
      } else if (old.stamp !== stamp || mayDiffer) this.#changed.set(name, changedAtMs);
    }
    for (const name of before.files.keys()) if (!now.files.has(name)) this.#changed.set(name, atMs);
    this.#noticed.clear();
  }

  /** Looks again by itself where no notice will come. */
  #check({ isThere, isCut }: SourceScan): void {
    const { failure } = this.#notices;
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
    if (isThere && failure === null) return;
    const ms = Math.max(WATCH_RETRY_MS, this.#lookedForMs * LOOKS_SHARE);
    this.#cancelRetry = this.#options.clock.after(ms, () => void this.#look());
  }

  /** Each reason is told once. */
  #fail(reason: string): void {
    if (this.#failures.includes(reason)) return;
    this.#failures += `${reason}\n`;
    this.#options.onFailure(reason);
  }

  #onEvent({ kind, paths, flag }: Deno.FsEvent): void {
    if (flag === "rescan") this.#notices.distrust(); // The system lost some.
    if (flag === "rescan" || paths.some((path) => this.#isOfInterest(kind, path))) {
      return this.#wake();
    }
    if (kind === "access" || ++this.#otherNotices !== FLOOD || this.#woken) return;
    this.#wake(Math.max(EDIT_DEBOUNCE_MS, this.#lookedForMs * LOOKS_SHARE));
  }

  #isOfInterest(kind: Deno.FsEvent["kind"], path: string): boolean {
    if (kind === "access") return false;
    if (this.#scan?.targets.has(path)) return true;
    const name = this.#nameOf(path);
    if (name === undefined || !["create", "modify", "rename", "remove"].includes(kind)) {
      return false;
    }
    if (name !== "" && this.#patterns.counts(name)) {
      this.#noticed.add(name);
      return true;
    }
    if (kind === "modify") return false;
    if (this.#scan?.folders.some((folder) => folder.path === path || folder.name === name)) {
      this.#notices.distrust(); // Perhaps it is gone and comes again.
      return true;
    }
    const is = kindOf(path);
    return is === "link" || (is === "folder" && this.#patterns.reach(name) !== "outside");
  }

  /** What a path is called in the worker's directory; `undefined`: it is none of its own. */
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

  #tell(): void {
    if (this.#changed.size === 0) return;
    const names = [...this.#changed.keys()].sort();
    const changedAtMs = [...this.#changed.values()].reduce((last, at) => Math.max(last, at), 0);
    this.#changed.clear();
    this.#options.onChange({
      paths: names.slice(0, PATHS_TOLD),
      dependencies: names.some((name) => isDependencyFile(name.slice(name.lastIndexOf("/") + 1))),
      changedAtMs,
    });
  }
}

/** What watching needs. */
export interface EditWatchTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly watch: WatchWorker;
}

/** The watch of one worker. */
export class EditWatch implements Disposable {
  readonly #tools: EditWatchTools;
  readonly #name: string;
  readonly #onChange: (change: WorkerChange) => void;
  #watching: Disposable | undefined;
  #directory = "";
  #paths = "";
  #isClosed = false;

  /** Watches nothing yet. */
  constructor(tools: EditWatchTools, name: string, onChange: (change: WorkerChange) => void) {
    this.#tools = tools;
    this.#name = name;
    this.#onChange = onChange;
  }

  /** Watches a directory whose manifest is not known yet. */
  look(directory: string, isContained: boolean): void {
    if (this.#directory !== directory) this.#watch(directory, ["."], isContained);
  }

  /** Watches what a manifest lists, and the manifest; an empty list is nothing at all. */
  follow(directory: string, watch: readonly string[], isContained: boolean): void {
    const isWhole = watch.length === 0 || watch.includes(".");
    this.#watch(directory, isWhole ? watch : [...watch, MANIFEST], isContained);
  }

  /** Watches nothing any more, whatever is read of the worker afterwards. */
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
        log.warn("edits of a worker are not seen", { worker: this.#name, reason }),
    });
  }
}
