/**
 * Watches config.yaml, applies edits of it and logs what changed.
 *
 * A file that is invalid or removed is reported and changes nothing: everything keeps running as it
 * was. A notice counts as an edit when the text differs from the text read before.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { TaskQueue } from "../platform/task_queue.ts";
import type { Clock } from "../ports/clock.ts";
import type { Config, WorkerEntry } from "../ports/config.ts";
import type { Log, LogFields } from "../ports/log.ts";

/** The file is read after this long without another edit. */
const EDIT_DEBOUNCE_MS = 150;

/** What {@linkcode watchConfig} works with. */
export interface ConfigWatchOptions {
  /** Absolute; the file need not exist yet. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The configuration in force. If it is given, an edit since it was read is applied at once. */
  readonly current?: Config;
  /** Reads and checks the file. @throws {EngineError} `config_invalid`. */
  load(path: string): Config;
  /**
   * Applies the configuration that `read` returns, if it returns one. Must call `read` while the
   * engine itself does not change the file, or a change that came in between would be undone.
   */
  apply(read: () => Config | undefined): Promise<void>;
}

/** What differs between two configurations. */
export interface ConfigDifference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Workers whose entries differ. */
  readonly changed: readonly string[];
  /** Settings that differ, such as `engine.port`. */
  readonly settings: readonly string[];
}

/** A running watch; disposing of it waits for an edit that is being applied. */
export interface ConfigWatch extends AsyncDisposable {
  /** Settles when every edit that was noticed so far has been read and applied. */
  idle(): Promise<void>;
}

/** Watches the folder of the file, so that editors that rename are seen too. */
export function watchConfig(options: ConfigWatchOptions): ConfigWatch {
  return new FileWatch(options);
}

/** Compares two configurations; the order of workers does not count. */
export function configDifference(before: Config, after: Config): ConfigDifference {
  const old = new Map(before.workers.map((entry) => [entry.name, entry]));
  const names = new Set(after.workers.map(({ name }) => name));
  const kept = after.workers.filter(({ name }) => old.has(name));
  return {
    added: [...names].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !names.has(name)),
    changed: kept.filter((entry) => essence(entry) !== essence(old.get(entry.name)!))
      .map(({ name }) => name),
    settings: [
      ...changedKeys("engine", before.engine, after.engine),
      ...changedKeys("log", before.log, after.log),
    ],
  };
}

/** One file's watch. */
class FileWatch implements ConfigWatch {
  readonly #options: ConfigWatchOptions;
  readonly #watcher: Deno.FsWatcher | undefined;
  readonly #names: ReadonlySet<string>;
  /** Reads of the file, one at a time. */
  readonly #reads = new TaskQueue();
  #text: string | undefined;
  #current: Config | undefined;
  #cancelTimer: () => void = () => {};
  #isClosed = false;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    const target = realPath(options.path);
    this.#names = new Set([nameOf(options.path), nameOf(target)]);
    try {
      const folders = new Set([parentOf(options.path), parentOf(target)]);
      this.#watcher = Deno.watchFs([...folders], { recursive: false });
      void this.#follow(this.#watcher);
    } catch (thrown) {
      options.log.warn("edits of config.yaml are not noticed", { reason: String(thrown) });
    }
    if (options.current?.path === options.path) {
      this.#current = options.current;
      void this.#reads.run(() => this.#read());
    } else {
      this.#text = readText(options.path);
      this.#current = this.#baseline();
    }
  }

  idle(): Promise<void> {
    return this.#reads.idle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#watcher?.close();
    await this.#reads.idle();
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    for await (const { kind, paths } of watcher) {
      if (kind === "access" || !paths.some((path) => this.#names.has(nameOf(path)))) continue;
      this.#cancelTimer();
      this.#cancelTimer = this.#options.clock.after(EDIT_DEBOUNCE_MS, () => {
        void this.#reads.run(() => this.#read());
      });
    }
  }

  async #read(): Promise<void> {
    const { path, log, load, apply } = this.#options;
    const text = readText(path);
    if (this.#isClosed || text === this.#text) return;
    this.#text = text;
    if (text === undefined) {
      log.warn("config.yaml was removed; everything keeps running as it was", { path });
      return;
    }
    try {
      let applied: Config | undefined;
      let fields: LogFields = {};
      await apply(() => {
        const config = load(path);
        const difference = this.#current && configDifference(this.#current, config);
        fields = fieldsOf(difference);
        const isSame = difference && Object.values(fields).every((names) => names === undefined);
        return applied = isSame ? undefined : config;
      });
      if (!applied) return;
      this.#current = applied;
      log.info("config.yaml applied", fields);
    } catch (thrown) {
      reportProblems(log, path, thrown);
    }
  }

  /** The configuration at the start of the watch, to log what the first edit changed. */
  #baseline(): Config | undefined {
    try {
      return this.#text === undefined ? undefined : this.#options.load(this.#options.path);
    } catch {
      return undefined; // The engine started with something else and has logged why.
    }
  }
}

function reportProblems(log: Log, path: string, thrown: unknown): void {
  const problems = thrown instanceof EngineError ? thrown.details?.problems : undefined;
  const texts = Array.isArray(problems) ? problems : [String(thrown)];
  log.error("config.yaml cannot be used; everything keeps running as it was", {
    path,
    problems: texts.length,
  });
  for (const problem of texts) log.error("config.yaml", { problem: String(problem) });
}

function fieldsOf(difference: ConfigDifference | undefined): Record<string, string | undefined> {
  if (!difference) return {};
  const fields = Object.entries(difference) as [string, readonly string[]][];
  return Object.fromEntries(
    fields.map(([key, names]) => [key, names.length > 0 ? names.join(" ") : undefined]),
  );
}

/** The text of an entry that is compared; without what its worker made of it. */
function essence(entry: WorkerEntry): string {
  if (entry.kind === "builtin") return JSON.stringify([entry.kind, entry.raw]);
  const { kind, path, isolation = null, accel = null, replicas = null, env } = entry;
  return JSON.stringify([kind, path, isolation, accel, replicas, env]);
}

function changedKeys(section: string, before: object, after: object): string[] {
  const old = before as Record<string, unknown>;
  const fresh = after as Record<string, unknown>;
  const keys = new Set([...Object.keys(old), ...Object.keys(fresh)]);
  return [...keys].filter((key) => JSON.stringify(old[key]) !== JSON.stringify(fresh[key]))
    .map((key) => `${section}.${key}`);
}

function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined; // Removed, or being replaced: then another notice follows.
  }
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
