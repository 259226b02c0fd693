/**
 * The project that an engine runs: its config.yaml, and the workers that the file names.
 *
 * The only writer of config.yaml. A worker that is added or removed is written to the file first,
 * and then applied from it like an edit by hand, so that file and system cannot disagree.
 *
 * @module
 */
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import type { Builtins } from "./builtins.ts";
import { parseConfig } from "./config/config.ts";
import {
  addWorkerEntry,
  changeWorkerConfig,
  changeWorkerKeys,
  readConfigFile,
  removeConfigFile,
  removeWorkerEntry,
  type WorkerKeys,
  writeConfigFile,
} from "./config/file.ts";
import { closest } from "./config/fields.ts";
import { TaskQueue } from "./platform/task_queue.ts";
import type { Absence } from "./ports/absences.ts";
import type {
  BuiltinEntry,
  Config,
  DirectoryEntry,
  KnownWorker,
  WorkerEntry,
} from "./ports/config.ts";
import type { Ended, ExecOptions, Isolation, OutputChunk } from "./ports/launcher.ts";
import type {
  AddAnswer,
  AddRequest,
  EngineInfo,
  ExecRequest,
  Supervision,
  WorkerStatus,
} from "./ports/supervision.ts";
import type { DirectoryWorkers } from "./supervisor/mod.ts";
import type { Supervisor } from "./supervisor/supervisor.ts";

/** What {@linkcode Project} works with. */
export interface ProjectOptions {
  readonly config: Config;
  /** All built-in workers, whether or not the configuration names them. */
  readonly known: readonly KnownWorker[];
  readonly builtins: Builtins;
  /** Loads what runs workers that are directories; called once, for the first of them. */
  loadDirectoryWorkers(): Promise<DirectoryWorkers>;
  /** Applies settings that are not about workers. */
  applySettings(config: Config): void;
  /** Called when another configuration is in force; must not wait or throw. */
  changed?(): void;
  /** Called when the file was edited, or could not be; must not wait or throw. */
  edited?(): void;
  info(config: Config): EngineInfo;
}

/** The outcome of a request to add a worker. */
type Added = { readonly name: string; readonly added: boolean; readonly changed: boolean };

/** Both kinds of workers behind one interface, and the file that lists them. */
export class Project implements Supervision {
  readonly #options: ProjectOptions;
  #config: Config;
  /** Changes of the configuration, one at a time. */
  readonly #changes = new TaskQueue();
  #directoryWorkers: Promise<DirectoryWorkers> | undefined;
  /** Once it is loaded. */
  #supervisor: Supervisor | undefined;
  #isClosed = false;

  constructor(options: ProjectOptions) {
    this.#options = options;
    this.#config = options.config;
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  /** Where config.yaml is, or would be. */
  get configPath(): string {
    return this.#config.path ?? `${this.#config.directory}/config.yaml`;
  }

  /**
   * Makes the system equal to the configuration that `read` returns when the changes before it are
   * done. Parts that did not change are not touched; without a configuration nothing is.
   */
  apply(read: () => Config | undefined | Promise<Config | undefined>): Promise<void> {
    return this.#change(async () => {
      const config = await read();
      if (config) await this.#apply(config);
    });
  }

  /**
   * Waits for changes in progress, then stops all workers that are directories. Later changes fail
   * with `overloaded`, so that nothing starts while the engine stops.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#changes.idle();
    const loaded = await this.#directoryWorkers?.catch(() => undefined); // It never ran anything.
    await loaded?.supervisor.close();
  }

  /** Starts the built-ins that always run and those of the configuration. */
  async applyBuiltins(): Promise<void> {
    await this.#options.builtins.apply(this.#builtinEntries(this.#config));
  }

  async list(): Promise<WorkerStatus[]> {
    const loaded = await this.#directoryWorkers;
    return [...this.#options.builtins.list(), ...await loaded?.supervisor.list() ?? []];
  }

  /** Why a function is not there that a worker with a directory offered before. */
  absence(function_id: string, namespace: string): Absence | undefined {
    return this.#supervisor?.absence(function_id, namespace);
  }

  async status(name: string): Promise<WorkerStatus> {
    return this.#options.builtins.status(name) ??
      await (await this.#supervisorOf(name)).status(name);
  }

  async start(name: string): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) return await (await this.#supervisorOf(name)).start(name);
    void builtins.start(name);
    return await this.status(name);
  }

  async stop(name: string): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) return await (await this.#supervisorOf(name)).stop(name);
    this.#refuseAlways(name, "stopped");
    void builtins.stop(name);
    return await this.status(name);
  }

  async restart(name: string, options: { reinstall: boolean }): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) {
      return await (await this.#supervisorOf(name)).restart(name, options);
    }
    this.#refuseAlways(name, "restarted");
    void builtins.restart(name);
    return await this.status(name);
  }

  async exec(
    request: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    options?: ExecOptions,
  ): Promise<Ended> {
    const { name } = request;
    if (!this.#options.builtins.status(name)) {
      return await (await this.#supervisorOf(name)).exec(request, output, signal, options);
    }
    const message = `${name} runs inside the engine, and no command can be run beside it there`;
    throw new EngineError("INVALID_ARGUMENTS", message);
  }

  add(request: AddRequest): Promise<AddAnswer> {
    return this.#changeFile(async () => {
      const { name, path } = request;
      if ((name === undefined) === (path === undefined)) {
        throw new EngineError("INVALID_ARGUMENTS", "Give either name (a built-in) or path");
      }
      const added = path === undefined
        ? await this.#addBuiltin(name!, request)
        : await this.#addDirectory(path, request);
      return { ...added, config_path: this.configPath, worker: await this.status(added.name) };
    });
  }

  remove(name: string): Promise<{ config_path: string }> {
    return this.#changeFile(async () => {
      if (!this.#options.builtins.status(name)) await this.#supervisorOf(name);
      this.#refuseAlways(name, "removed");
      await this.#edit(name, (text) => removeWorkerEntry(text, name));
      return { config_path: this.configPath };
    });
  }

  async logs(name: string, tail: number): Promise<string[]> {
    if (!this.#options.builtins.status(name)) {
      return await (await this.#supervisorOf(name)).logs(name, tail);
    }
    const message =
      `${name} is part of the engine and has no log of its own; see the engine's output`;
    throw new EngineError("NOT_FOUND", message);
  }

  info(): EngineInfo {
    return this.#options.info(this.#config);
  }

  async #addBuiltin(name: string, request: AddRequest): Promise<Added> {
    const { builtins, known } = this.#options;
    const { config } = request;
    for (const key of ["isolation", "accel", "replicas", "reinstall"] as const) {
      if (request[key] === undefined) continue;
      const message = `${name} is a built-in worker, and ${key} is for workers with a path`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    this.#refuseAlways(name, "added");
    if (!known.some((worker) => worker.name === name)) {
      const names = known.flatMap(({ name, runsAlways }) => runsAlways ? [] : [name]);
      const nearest = names.find((known) => known === `engine-${name}`) ??
        closest(name, names);
      const hint = nearest === undefined
        ? `there are: ${names.join(", ")}`
        : `did you mean ${nearest}?`;
      throw new EngineError("NOT_FOUND", `There is no built-in worker ${name}; ${hint}`);
    }
    if (!builtins.status(name)) {
      const entry = config ? { name, config } : { name };
      await this.#edit(name, (text) => addWorkerEntry(text, entry));
      return { name, added: true, changed: false };
    }
    const changed = config !== undefined &&
      await this.#edit(name, (text) => changeWorkerConfig(text, name, config));
    if (builtins.status(name)?.state !== "ready") await builtins.start(name);
    return { name, added: false, changed };
  }

  async #addDirectory(path: string, request: AddRequest): Promise<Added> {
    const { supervisor, checkNewWorker } = await this.#loadDirectoryWorkers();
    const { readManifest } = await import("./install/manifest.ts");
    const { name } = readManifest(path);
    const present = this.#config.workers.find((entry) => entry.name === name);
    refuseClash(present, name, path);
    const known = present?.kind === "directory" ? present : undefined;
    const { isolation } = await checkNewWorker({
      path,
      isolation: request.isolation ?? known?.isolation,
      accel: request.accel ?? known?.accel,
    });
    refuseContradictions(name, isolation, request);

    const keys = differingKeys(request, known);
    const isOther = Object.keys(keys).length > 0;
    const before = known && await supervisor.status(name);
    const place = relativeTo(this.#config.directory, path);
    if (!known) {
      await this.#edit(name, (text) => addWorkerEntry(text, { name, path: place, ...keys }));
    } else if (isOther) await this.#edit(name, (text) => changeWorkerKeys(text, name, keys));

    const { state, reason, launch } = await supervisor.status(name);
    const isFine = state === "ready" && reason === null; // It may keep an older version running.
    if (request.reinstall) await supervisor.restart(name, { reinstall: true });
    else if (!isFine && launch === before?.launch) await supervisor.start(name);
    return { name, added: !known, changed: known !== undefined && isOther };
  }

  /** The supervisor, if it has a worker of this name. @throws {EngineError} `NOT_FOUND`. */
  async #supervisorOf(name: string): Promise<Supervisor> {
    const directories = this.#config.workers.filter(({ kind }) => kind === "directory");
    if (directories.some((entry) => entry.name === name)) {
      return (await this.#loadDirectoryWorkers()).supervisor;
    }
    const present = [...this.#options.builtins.list(), ...directories];
    const names = present.map((worker) => worker.name).sort();
    const message = `There is no worker ${name}; there are: ${names.join(", ")}`;
    throw new EngineError("NOT_FOUND", message);
  }

  #loadDirectoryWorkers(): Promise<DirectoryWorkers> {
    if (!this.#directoryWorkers) {
      const loading = this.#options.loadDirectoryWorkers();
      this.#directoryWorkers = loading;
      // Loading may fail for a lack of descriptors, and work a moment later.
      loading.then(
        ({ supervisor }) => this.#supervisor = supervisor,
        () => this.#directoryWorkers = undefined,
      );
    }
    return this.#directoryWorkers;
  }

  /**
   * Edits the entry of a worker in the file and applies the file. If the worker runs and cannot
   * run so, the file gets its text back. Without a file, the edit starts from a text that names the
   * workers in force. Returns whether the edit changed anything.
   */
  async #edit(name: string, change: (text: string) => string): Promise<boolean> {
    const path = this.configPath;
    const before = this.#config;
    const present = await readConfigFile(path);
    if (present === undefined && before.path !== null) {
      const message =
        `${path} was removed, so no entry of it can be changed; create it again first`;
      throw new EngineError("config_invalid", message, { details: { problems: [message] } });
    }
    const text = present ?? embeddedText(before);
    const edited = change(text);
    const { known } = this.#options;
    const config = parseConfig(edited, path, known, Deno.env.toObject());
    await writeConfigFile(path, edited, present);
    try {
      const refused = (await this.#apply(config)).get(name);
      if (refused) throw refused;
    } catch (thrown) {
      await this.#takeBack(before, edited, present);
      throw thrown;
    }
    return edited !== text;
  }

  /** Gives the file its text back and applies what was in force, after an edit that failed. */
  async #takeBack(before: Config, edited: string, text: string | undefined): Promise<void> {
    const path = this.configPath;
    try {
      if (text === undefined) await removeConfigFile(path, edited);
      else await writeConfigFile(path, text, edited);
      await this.#apply(before);
    } catch {
      // Someone edited it meanwhile: what it says now is applied next. The first error counts.
    }
  }

  /** Applies a configuration; returns why built-ins that ran before do not run as it says. */
  async #apply(config: Config): Promise<ReadonlyMap<string, EngineError>> {
    const before = this.#config;
    this.#config = config;
    try {
      this.#options.applySettings(config);
      const refused = await this.#options.builtins.apply(this.#builtinEntries(config));
      const directories = config.workers.filter((entry) => entry.kind === "directory");
      if (directories.length > 0 || this.#directoryWorkers) {
        (await this.#loadDirectoryWorkers()).supervisor.apply(directories);
      }
      return refused;
    } catch (thrown) {
      this.#config = before; // Else the file would be taken for what is in force.
      throw thrown;
    } finally {
      this.#options.changed?.();
    }
  }

  /** Entries of the workers that always run, then of the others that the configuration names. */
  #builtinEntries(config: Config): BuiltinEntry[] {
    const named = config.workers.filter((entry) => entry.kind === "builtin");
    const always = this.#options.known.filter(({ runsAlways }) => runsAlways);
    const isAlways = (name: string): boolean => always.some((worker) => worker.name === name);
    return [
      ...always.map((worker): BuiltinEntry =>
        named.find(({ name }) => name === worker.name) ??
          { kind: "builtin", name: worker.name, config: worker.parse({}), raw: {} }
      ),
      ...named.filter(({ name }) => !isAlways(name)),
    ];
  }

  /** @throws {EngineError} `INVALID_ARGUMENTS` for a worker that always runs. */
  #refuseAlways(name: string, done: string): void {
    const worker = this.#options.known.find((known) => known.name === name);
    if (!worker?.runsAlways) return;
    const message = `${name} is the engine itself and cannot be ${done}`;
    throw new EngineError("INVALID_ARGUMENTS", message);
  }

  /** A change that edits the file. */
  #changeFile<T>(task: () => Promise<T>): Promise<T> {
    return this.#change(task).finally(() => this.#options.edited?.());
  }

  #change<T>(task: () => Promise<T>): Promise<T> {
    return this.#changes.run(() => {
      if (!this.#isClosed) return task();
      throw new EngineError("overloaded", "The engine is stopping and changes no workers");
    });
  }
}

function embeddedText(config: Config): string {
  const names = config.workers.map((entry) => `  - name: ${entry.name}\n`).join("");
  const header = "# What this engine runs; docs/reference/config.md of the engine has every key.";
  return `${header}\nworkers:\n${names}`;
}

/** @throws {EngineError} `INVALID_ARGUMENTS` when another worker has the name. */
function refuseClash(present: WorkerEntry | undefined, name: string, path: string): void {
  if (!present || (present.kind === "directory" && isSamePlace(present.path, path))) {
    return;
  }
  const other = present.kind === "directory" ? present.path : "a built-in worker";
  const message = `A worker ${name} is there already (${other}); ` +
    `change name in ${path}/engine.worker.yaml, or remove the other one`;
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for options that contradict. */
function refuseContradictions(name: string, isolation: Isolation, request: AddRequest): void {
  if (request.config !== undefined) {
    const message = `Worker ${name} is a directory, and config is for built-in workers; ` +
      "set what it reads under env in config.yaml";
    throw new EngineError("INVALID_ARGUMENTS", message);
  }
  if (request.accel === undefined || isolation === "microvm") return;
  const message =
    `accel says what runs a microVM, and worker ${name} would run as a plain process; ` +
    "leave it out, or ask for isolation microvm";
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** The requested keys that differ from those of the entry. */
function differingKeys(request: AddRequest, entry: DirectoryEntry | undefined): WorkerKeys {
  const { isolation, accel, replicas } = request;
  return {
    ...isolation !== entry?.isolation && isolation && { isolation },
    ...accel !== (entry?.accel ?? "auto") && accel && { accel },
    ...replicas !== entry?.replicas && replicas && { replicas },
  };
}

/** Whether two paths lead to one directory, also over links. */
function isSamePlace(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    return Deno.realPathSync(one) === Deno.realPathSync(other);
  } catch {
    return false; // One of them does not exist.
  }
}

/** The path as config.yaml has it: relative when the worker is below the project. */
function relativeTo(directory: string, path: string): string {
  return path.startsWith(`${directory}/`) ? `.${path.slice(directory.length)}` : path;
}
