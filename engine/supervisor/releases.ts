/**
 * What the replicas of a worker are started from: its manifest, read, and its dependencies, there.
 *
 * Made once for all replicas, when the first of them asks; made anew when another version is
 * wanted, or when a program ended in a way that may have to do with what it was started from. Two
 * are never made at once, since both would write into the worker's directory.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { OutputLine } from "../ports/launcher.ts";
import { readManifest, type WorkerSpec } from "../install/manifest.ts";
import { type Prepared, prepareLaunch, type PrepareTools } from "../install/prepare.ts";
import { type StartSlots, whileWanted } from "./abortable.ts";

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
  /** Prepares; a test may put something quicker in. */
  readonly prepare?: typeof prepareLaunch;
}

/** Somebody who waits for a release, and hears how far it is. */
export interface Waiting {
  at(state: "queued" | "installing", what: string | null): void;
  /** A line that the installation printed. */
  line(line: OutputLine): void;
}

/** Who is told what comes of making one. */
export interface ReleaseEvents {
  /** The manifest of a directory is about to be read. */
  reading(entry: DirectoryEntry): void;
  /** It was read, and fits. */
  read(spec: WorkerSpec): void;
  /** A line that the installation printed. */
  line(line: OutputLine): void;
}

/** One release on its way, or made. */
interface Making {
  readonly version: number;
  readonly promise: Promise<Release>;
  readonly stopping: AbortController;
  isDone: boolean;
}

/** Makes the releases of one worker. */
export class Releases {
  readonly #tools: ReleaseTools;
  readonly #events: ReleaseEvents;
  readonly #waiting = new Set<Waiting>();
  #making: Making | undefined;
  #phase: Parameters<Waiting["at"]> = ["queued", null];
  #isStale = false;
  #reinstall = false;
  #seenAtMs = Infinity;

  /** Makes nothing yet. */
  constructor(tools: ReleaseTools, events: ReleaseEvents) {
    this.#tools = tools;
    this.#events = events;
  }

  /**
   * Edits before this moment, in milliseconds since 1970, are no news: whoever starts next sees
   * them, or the installation made them. `Infinity` while the newest version is being made.
   */
  get seenAtMs(): number {
    return this.#seenAtMs;
  }

  /** What was made may not fit any more: the next who asks gets one that is made anew. */
  doubt(): void {
    this.#isStale = true;
  }

  /** Another version is wanted; `reinstall` throws the cached dependencies away first. */
  renew(reinstall: boolean): void {
    this.#seenAtMs = Infinity;
    this.#isStale = true;
    this.#reinstall ||= reinstall;
    this.#making?.stopping.abort();
  }

  /**
   * The release of a version, made for whoever asks first; `undefined` when the signal came before
   * it was made. When nobody waits any more, making it ends.
   *
   * @throws {EngineError} `manifest_invalid`, `install_failed`, `launch_failed`,
   * `isolation_unavailable`.
   */
  async get(
    version: number,
    entry: DirectoryEntry,
    waiting: Waiting,
    signal: AbortSignal,
  ): Promise<Release | undefined> {
    const making = this.#isUsable(version) ? this.#making! : this.#begin(version, entry);
    if (making.isDone) return await making.promise;
    this.#waiting.add(waiting);
    waiting.at(...this.#phase);
    try {
      return await whileWanted(making.promise, signal);
    } finally {
      this.#waiting.delete(waiting);
      if (this.#waiting.size === 0 && !making.isDone) making.stopping.abort();
    }
  }

  /** Settles when what is being made now has ended. */
  async idle(): Promise<void> {
    await this.#making?.promise.catch(() => {}); // Told to those who asked for it.
  }

  #isUsable(version: number): boolean {
    const { version: present, isDone, stopping } = this.#making ?? { version: 0 };
    if (present !== version || stopping!.signal.aborted) return false;
    return !isDone || !this.#isStale;
  }

  #begin(version: number, entry: DirectoryEntry): Making {
    const before = this.#making;
    before?.stopping.abort();
    this.#isStale = false;
    this.#phase = ["queued", null];
    const stopping = new AbortController();
    const promise = (before?.promise ?? Promise.resolve()).catch(() => {}) // Told to its own.
      .then(() => this.#make(version, entry, stopping.signal));
    const making: Making = { version, promise, stopping, isDone: false };
    const done = (): void => void (making.isDone = true);
    promise.then(done, done);
    this.#making = making;
    return making;
  }

  async #make(version: number, entry: DirectoryEntry, signal: AbortSignal): Promise<Release> {
    const release = await this.#tools.slots.take(signal, "prepare");
    if (!release) throw noLongerWanted(entry.name);
    try {
      this.#tell("installing", null);
      // A manifest that cannot be used is mended by an edit, so it is watched before it is read.
      this.#events.reading(entry);
      const spec = readManifest(entry.path);
      this.#events.read(spec);
      const prepared = await this.#prepare(entry, spec, signal);
      if (signal.aborted) throw noLongerWanted(entry.name);
      if (prepared.dependencies === "installed") this.#seenAtMs = Infinity;
      return { version, entry, spec, prepared };
    } finally {
      // Making the same version once more takes no edit away from replicas that run on.
      const isNew = this.#seenAtMs === Infinity;
      if (isNew && !signal.aborted) this.#seenAtMs = this.#tools.clock.wall();
      release();
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
        for (const waiting of this.#waiting) waiting.line(line);
      },
      began: (what) => this.#tell("installing", what),
    });
    if (reinstall && !signal.aborted) this.#reinstall = false;
    return prepared;
  }

  #tell(...phase: Parameters<Waiting["at"]>): void {
    this.#phase = phase;
    for (const waiting of this.#waiting) waiting.at(...phase);
  }
}

function noLongerWanted(name: string): EngineError {
  return new EngineError("cancelled", `The preparation of ${name} is no longer wanted`);
}
