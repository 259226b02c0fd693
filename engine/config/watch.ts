/**
 * Watches config.yaml, applies edits of it and logs what changed.
 *
 * A file that is invalid or removed is reported and changes nothing: everything keeps running as it
 * was. The text is always compared with that of the configuration in force, never with dates or
 * with what was read before, so it does not matter who wrote the file, when, and how. Notices of
 * the platform only make it soon: they can be lost or name another file, so the text is also
 * compared every 2 s, and again behind each change.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Config, WorkerEntry } from "../ports/config.ts";
import type { Log, LogFields } from "../ports/log.ts";
import { readConfigFile } from "./file.ts";

/** The file is read after this long without another edit. */
const EDIT_DEBOUNCE_MS = 150;
/** The file is read at the latest this long after the first of many edits. */
const EDIT_WAIT_MS_MAX = 1_000;
/** Time between two comparisons without a notice. */
const POLL_MS = 2_000;

/** What {@linkcode watchConfig} works with. */
export interface ConfigWatchOptions {
  /** Absolute; the file need not exist yet. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The configuration in force. */
  inForce(): Config;
  /** Checks the text of the file. @throws {EngineError} `config_invalid`. */
  parse(text: string): Config;
  /**
   * Applies the configuration that `read` returns, if it returns one. Must call `read` while the
   * engine itself does not change the file, or a change that came in between would be undone.
   */
  apply(read: () => Promise<Config | undefined>): Promise<void>;
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
  /** Compares the file with what is in force; an edit is applied. */
  check(): void;
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
  /** What was compared last: equal values need no second look. */
  #seen: { readonly text: string | undefined; readonly current: Config } | undefined;
  /** The problem that was logged last: a file that cannot be read is asked for every time. */
  #reported: string | undefined;
  #isRemoved = false;
  #running: Promise<void> | undefined;
  /** Another comparison is due when the running one is done; `true`: also of a text seen before. */
  #next: boolean | undefined;
  #noticedAtMs: number | undefined;
  #cancelNotice: () => void = () => {};
  #cancelPoll: () => void = () => {};
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
      options.log.warn("edits of config.yaml are noticed late", { reason: String(thrown) });
    }
    this.check();
    this.#poll();
  }

  check(): void {
    this.#request(false);
  }

  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelNotice();
    this.#cancelPoll();
    this.#watcher?.close();
    await this.idle();
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    for await (const { kind, paths } of watcher) {
      if (kind === "access" || !paths.some((path) => this.#names.has(nameOf(path)))) continue;
      this.#notice();
    }
  }

  /** Compares after a quiet moment, so that a half-written file is rarely read. */
  #notice(): void {
    const { clock } = this.#options;
    this.#noticedAtMs ??= clock.now();
    const latest = this.#noticedAtMs + EDIT_WAIT_MS_MAX - clock.now();
    this.#cancelNotice();
    this.#cancelNotice = clock.after(Math.max(0, Math.min(EDIT_DEBOUNCE_MS, latest)), () => {
      this.#noticedAtMs = undefined;
      this.#request(true);
    });
  }

  #poll(): void {
    this.#cancelPoll = this.#options.clock.after(POLL_MS, () => {
      this.check();
      this.#poll();
    });
  }

  /** Comparisons run one at a time, and one more behind the last request. */
  #request(isNotice: boolean): void {
    if (this.#isClosed) return;
    this.#next = isNotice || (this.#next ?? false);
    this.#running ??= this.#compareAll().finally(() => this.#running = undefined);
  }

  async #compareAll(): Promise<void> {
    while (this.#next !== undefined && !this.#isClosed) {
      const isNotice = this.#next;
      this.#next = undefined;
      // An edit that came while this one was applied is found by the next comparison.
      if (await this.#compare(isNotice)) this.#next ??= false;
    }
  }

  /** Compares the file with what is in force; returns whether its text was a new one. */
  async #compare(isNotice: boolean): Promise<boolean> {
    const { path, log, parse, inForce, apply } = this.#options;
    let fields: LogFields | undefined;
    let isNew = false;
    try {
      await apply(async () => {
        const text = await readConfigFile(path);
        const current = inForce();
        const { text: seenText, current: seenBeside } = this.#seen ?? {};
        const isSeen = seenText === text && seenBeside === current;
        if (this.#isClosed || (isSeen && !isNotice)) return undefined;
        this.#seen = { text, current };
        if (text === undefined) return this.#reportRemoved(current);
        this.#isRemoved = false;
        if (text === current.text) return this.#reported = undefined;
        isNew = !isSeen;
        const config = parse(text);
        const difference = fieldsOf(configDifference(current, config));
        const isSame = Object.values(difference).every((names) => names === undefined);
        if (isSame && current.path !== null) return undefined;
        fields = difference;
        return config;
      });
      if (fields) log.info("config.yaml applied", fields);
    } catch (thrown) {
      const isReported = this.#reported === String(thrown) && !isNew;
      this.#reported = String(thrown);
      if (!this.#isClosed && !isReported) reportProblems(log, path, thrown);
    }
    return isNew;
  }

  #reportRemoved(current: Config): undefined {
    if (this.#isRemoved || current.path === null) return;
    this.#isRemoved = true;
    const { path, log } = this.#options;
    log.warn("config.yaml was removed; everything keeps running as it was", { path });
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

function fieldsOf(difference: ConfigDifference): Record<string, string | undefined> {
  const fields = Object.entries(difference) as [string, readonly string[]][];
  return Object.fromEntries(
    fields.map(([key, names]) => [key, names.length > 0 ? names.join(" ") : undefined]),
  );
}

/** The text of an entry that is compared; without what its worker made of it. */
function essence(entry: WorkerEntry): string {
  if (entry.kind === "builtin") return JSON.stringify([entry.kind, entry.raw]);
  const { kind, path, isolation = null, accel = null, replicas = null, required, env } = entry;
  return JSON.stringify([kind, path, isolation, accel, replicas, required ?? false, env]);
}

function changedKeys(section: string, before: object, after: object): string[] {
  const old = before as Record<string, unknown>;
  const fresh = after as Record<string, unknown>;
  const keys = new Set([...Object.keys(old), ...Object.keys(fresh)]);
  return [...keys].filter((key) => JSON.stringify(old[key]) !== JSON.stringify(fresh[key]))
    .map((key) => `${section}.${key}`);
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
