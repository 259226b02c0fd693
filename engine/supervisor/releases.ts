/**
 * What the replicas of a worker are started from: its checked manifest and its dependencies.
 *
 * One release serves all replicas; the first that asks causes the build. A new version needs a new
 * release, and so may a program that exited, since the release itself may be the cause. Builds
 * never overlap, because they write into the worker's directory.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { readManifest, type WorkerSpec } from "../install/manifest.ts";
import { type Prepared, prepareLaunch, type PrepareTools } from "../install/prepare.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { OutputLine } from "../ports/launcher.ts";
import { type StartSlots, untilAborted } from "./abortable.ts";

/** What programs are started from. */
export interface Release {
  /** Grows with every edit, change of the entry and restart by hand. */
  readonly version: number;
  readonly entry: DirectoryEntry;
  readonly spec: WorkerSpec;
  readonly prepared: Prepared;
}

/** What {@linkcode Releases} work with. */
export interface ReleaseTools extends PrepareTools {
  readonly slots: StartSlots;
  /** Replaces {@linkcode prepareLaunch} in tests. */
  readonly prepare?: typeof prepareLaunch;
}

/** Follows the build that a replica waits for. */
export interface BuildObserver {
  phase(state: "queued" | "installing", what: string | null): void;
  /** The installation printed a line. */
  line(line: OutputLine): void;
}

/** Events of builds. */
export interface ReleaseEvents {
  /** The manifest is about to be read. */
  reading(entry: DirectoryEntry): void;
  /** The manifest was read and is valid. */
  read(spec: WorkerSpec): void;
  /** The installation printed a line. */
  line(line: OutputLine): void;
}

/** A release that is being built or was built. */
interface Build {
  readonly version: number;
  readonly promise: Promise<Release>;
  readonly stopping: AbortController;
  isDone: boolean;
}

/** Builds the releases of one worker. */
export class Releases {
  readonly #tools: ReleaseTools;
  readonly #events: ReleaseEvents;
  readonly #observers = new Set<BuildObserver>();
  #build: Build | undefined;
  #phase: Parameters<BuildObserver["phase"]> = ["queued", null];
  #isStale = false;
  #reinstall = false;
  #seenAtMs = Infinity;

  constructor(tools: ReleaseTools, events: ReleaseEvents) {
    this.#tools = tools;
    this.#events = events;
  }

  /**
   * Edits before this moment, in milliseconds since 1970, cause no new version: programs that start
   * next see them, or the installation made them. `Infinity` while the newest version is built.
   */
  get seenAtMs(): number {
    return this.#seenAtMs;
  }

  /** Makes the next {@linkcode get} build anew. */
  invalidate(): void {
    this.#isStale = true;
  }

  /** Abandons the build for a new version; `reinstall` deletes cached dependencies first. */
  supersede(reinstall: boolean): void {
    this.#seenAtMs = Infinity;
    this.#isStale = true;
    this.#reinstall ||= reinstall;
    this.#build?.stopping.abort();
  }

  /**
   * The release of a version, built once for all callers; `undefined` once the signal aborts. A
   * build ends when all its callers have aborted.
   *
   * @throws {EngineError} `manifest_invalid`, `install_failed`, `launch_failed`,
   * `isolation_unavailable`.
   */
  async get(
    version: number,
    entry: DirectoryEntry,
    observer: BuildObserver,
    signal: AbortSignal,
  ): Promise<Release | undefined> {
    const build = this.#isUsable(version) ? this.#build! : this.#start(version, entry);
    if (build.isDone) return await build.promise;
    this.#observers.add(observer);
    observer.phase(...this.#phase);
    try {
      return await untilAborted(build.promise, signal);
    } finally {
      this.#observers.delete(observer);
      if (this.#observers.size === 0 && !build.isDone) build.stopping.abort();
    }
  }

  /** Settles when the current build has ended. */
  async idle(): Promise<void> {
    await this.#build?.promise.catch(() => {}); // Callers of get() receive the error.
  }

  #isUsable(version: number): boolean {
    const { version: present, isDone, stopping } = this.#build ?? { version: 0 };
    if (present !== version || stopping!.signal.aborted) return false;
    return !isDone || !this.#isStale;
  }

  #start(version: number, entry: DirectoryEntry): Build {
    const before = this.#build;
    before?.stopping.abort();
    this.#isStale = false;
    this.#phase = ["queued", null];
    const stopping = new AbortController();
    const promise = (before?.promise ?? Promise.resolve()).catch(() => {})
      .then(() => this.#run(version, entry, stopping.signal));
    const build: Build = { version, promise, stopping, isDone: false };
    const done = (): void => void (build.isDone = true);
    promise.then(done, done);
    this.#build = build;
    return build;
  }

  async #run(version: number, entry: DirectoryEntry, signal: AbortSignal): Promise<Release> {
    const releaseSlot = await this.#tools.slots.take(signal, "prepare");
    if (!releaseSlot) throw cancelled(entry.name);
    try {
      this.#report("installing", null);
      // The watch starts before the manifest is read, since an edit repairs an invalid one.
      this.#events.reading(entry);
      const spec = readManifest(entry.path);
      this.#events.read(spec);
      const prepared = await this.#prepare(entry, spec, signal);
      if (signal.aborted) throw cancelled(entry.name);
      if (prepared.dependencies === "installed") this.#seenAtMs = Infinity;
      return { version, entry, spec, prepared };
    } finally {
      // Building the same version again does not hide edits from replicas that run on.
      const isNew = this.#seenAtMs === Infinity;
      if (isNew && !signal.aborted) this.#seenAtMs = this.#tools.clock.wall();
      releaseSlot();
    }
  }

  async #prepare(
    entry: DirectoryEntry,
    spec: WorkerSpec,
    signal: AbortSignal,
  ): Promise<Prepared> {
    const reinstall = this.#reinstall;
    const prepare = this.#tools.prepare ?? prepareLaunch;
    const prepared = await prepare(this.#tools, {
      entry,
      spec,
      reinstall,
      signal,
      output: (line) => {
        this.#events.line(line);
        for (const observer of this.#observers) observer.line(line);
      },
      began: (what) => this.#report("installing", what),
    });
    if (reinstall && !signal.aborted) this.#reinstall = false;
    return prepared;
  }

  #report(...phase: Parameters<BuildObserver["phase"]>): void {
    this.#phase = phase;
    for (const observer of this.#observers) observer.phase(...phase);
  }
}

function cancelled(name: string): EngineError {
  return new EngineError("cancelled", `The preparation of ${name} was cancelled`);
}
