/**
 * The project that an engine runs: its config.yaml, and the workers it names.
 *
 * The only writer of config.yaml. What is added or removed here is written to the file first and
 * then applied from it, like an edit by hand, so that file and system cannot disagree.
 *
 * @module
 */
import { EngineError } from "../sdk/typescript/errors.ts";
import type { BuiltinWorker } from "../workers/define.ts";
import type { Builtins } from "./builtins.ts";
import { ALWAYS_RUNNING, parseConfig } from "./config.ts";
import {
  addWorkerEntry,
  changeWorkerConfig,
  changeWorkerIsolation,
  removeWorkerEntry,
  writeConfigFile,
} from "./config_file.ts";
import { checkNewWorker } from "./launch/new_worker.ts";
import type { Supervisor } from "./launch/supervisor.ts";
import type { BuiltinEntry, Config, DirectoryEntry, WorkerEntry } from "./ports/config.ts";
import type { AddRequest, EngineInfo, Supervision, WorkerStatus } from "./ports/supervision.ts";

/** What {@linkcode Project} works with. */
export interface ProjectOptions {
  readonly config: Config;
  readonly known: readonly BuiltinWorker[];
  readonly builtins: Builtins;
  readonly supervisor: Supervisor;
  readonly platform: typeof Deno.build.os;
  /** Applies settings that are not about workers. */
  applySettings(config: Config): void;
  info(config: Config): EngineInfo;
}

/** What became of a request to add a worker. */
type Added = { readonly name: string; readonly added: boolean; readonly changed: boolean };

/** Both kinds of workers behind one interface, and the file that lists them. */
export class Project implements Supervision {
  readonly #options: ProjectOptions;
  #config: Config;
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** Applies nothing yet. */
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

  /** Makes the system equal to a configuration; what did not change is not touched. */
  apply(config: Config): Promise<void> {
    return this.#inTurn(() => this.#apply(config));
  }

  /**
   * Waits for what is being applied. What is asked for from now on is refused with `overloaded`, so
   * that nothing starts behind the back of an engine that stops.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turn;
  }

  /** Starts the built-ins that are always there and those of the configuration. */
  applyBuiltins(): Promise<void> {
    return this.#options.builtins.apply(this.#builtinEntries(this.#config));
  }

  list(): WorkerStatus[] {
    const { builtins, supervisor } = this.#options;
    return [...builtins.list(), ...supervisor.list()];
  }

  status(name: string): WorkerStatus {
    const { builtins, supervisor } = this.#options;
    const found = builtins.status(name) ?? supervisor.list().find((worker) => worker.name === name);
    if (found) return found;
    const names = this.list().map((worker) => worker.name).sort();
    throw new EngineError(
      "NOT_FOUND",
      `There is no worker ${name}; there are: ${names.join(", ")}`,
    );
  }

  start(name: string): WorkerStatus {
    const { builtins, supervisor } = this.#options;
    if (this.status(name).kind === "directory") return supervisor.start(name);
    void builtins.start(name);
    return this.status(name);
  }

  stop(name: string): WorkerStatus {
    const { builtins, supervisor } = this.#options;
    if (this.status(name).kind === "directory") return supervisor.stop(name);
    refuseAlways(name, "stopped");
    void builtins.stop(name);
    return this.status(name);
  }

  restart(name: string, options: { reinstall: boolean }): WorkerStatus {
    const { builtins, supervisor } = this.#options;
    if (this.status(name).kind === "directory") return supervisor.restart(name, options);
    refuseAlways(name, "restarted");
    void builtins.stop(name);
    void builtins.start(name);
    return this.status(name);
  }

  add(request: AddRequest): ReturnType<Supervision["add"]> {
    return this.#inTurn(async () => {
      const { name, path } = request;
      if ((name === undefined) === (path === undefined)) {
        throw new EngineError("INVALID_ARGUMENTS", "Give either name (a built-in) or path");
      }
      const added = path === undefined
        ? await this.#addBuiltin(name!, request)
        : await this.#addDirectory(path, request);
      return { ...added, config_path: this.configPath, worker: this.status(added.name) };
    });
  }

  remove(name: string): Promise<{ config_path: string }> {
    return this.#inTurn(async () => {
      this.status(name);
      refuseAlways(name, "removed");
      await this.#edit((text) => removeWorkerEntry(text, name));
      return { config_path: this.configPath };
    });
  }

  logs(name: string, tail: number): Promise<string[]> {
    if (this.status(name).kind === "directory") return this.#options.supervisor.logs(name, tail);
    const message =
      `${name} is part of the engine and has no log of its own; see the engine's output`;
    return Promise.reject(new EngineError("NOT_FOUND", message));
  }

  info(): EngineInfo {
    return this.#options.info(this.#config);
  }

  async #addBuiltin(name: string, { config }: AddRequest): Promise<Added> {
    const { builtins, known } = this.#options;
    refuseAlways(name, "added");
    if (!known.some((worker) => worker.name === name)) {
      const names = builtins.names.filter((known) => !ALWAYS_RUNNING.includes(known)).join(", ");
      const message = `There is no built-in worker ${name}; there are: ${names}`;
      throw new EngineError("NOT_FOUND", message);
    }
    if (!builtins.status(name)) {
      const entry = config ? { name, config } : { name };
      await this.#edit((text) => addWorkerEntry(text, entry));
      return { name, added: true, changed: false };
    }
    const changed = config !== undefined &&
      await this.#edit((text) => changeWorkerConfig(text, name, config));
    if (builtins.status(name)?.state !== "ready") await builtins.start(name);
    return { name, added: false, changed };
  }

  async #addDirectory(
    path: string,
    request: AddRequest,
  ): Promise<Added> {
    const { supervisor, platform } = this.#options;
    const known = this.#config.workers.find((entry): entry is DirectoryEntry =>
      entry.kind === "directory" && isSamePlace(entry.path, path)
    );
    const wanted = request.isolation ?? known?.isolation;
    const { name, isolation } = await checkNewWorker(path, wanted, platform);
    const present = this.#config.workers.find((entry) => entry.name === name);
    refuseClash(present, name, path);
    const entry = {
      name,
      path: relativeTo(this.#config.directory, path),
      ...request.isolation ? { isolation } : {},
    };
    const before = supervisor.list().find((worker) => worker.name === name)?.launch;
    const isOther = request.isolation !== undefined && known?.isolation !== isolation;
    const changed = present !== undefined && isOther &&
      await this.#edit((text) => changeWorkerIsolation(text, name, isolation));
    if (!present) await this.#edit((text) => addWorkerEntry(text, entry));
    const status = supervisor.status(name);
    if (request.reinstall) supervisor.restart(name, { reinstall: true });
    else if (status.state !== "ready" && status.launch === before) supervisor.start(name);
    return { name, added: !present, changed };
  }

  /**
   * Edits the file and applies it; without a file, writes one that says what was in force. Says
   * whether the edit changed anything.
   */
  async #edit(change: (text: string) => string): Promise<boolean> {
    const path = this.configPath;
    const text = this.#config.path === null
      ? embeddedText(this.#config)
      : await Deno.readTextFile(path);
    const edited = change(text);
    const { known } = this.#options;
    const config = parseConfig(edited, path, known, Deno.env.toObject());
    await writeConfigFile(path, edited, this.#config.path === null ? undefined : text);
    await this.#apply(config);
    return edited !== text;
  }

  async #apply(config: Config): Promise<void> {
    this.#config = config;
    this.#options.applySettings(config);
    await this.#options.builtins.apply(this.#builtinEntries(config));
    this.#options.supervisor.apply(config.workers.filter((entry) => entry.kind === "directory"));
  }

  #builtinEntries(config: Config): BuiltinEntry[] {
    const always = this.#options.known.filter(({ name }) => ALWAYS_RUNNING.includes(name))
      .map((worker): BuiltinEntry => ({
        kind: "builtin",
        name: worker.name,
        config: worker.parse({}),
        raw: {},
      }));
    const named = config.workers.filter((entry) => entry.kind === "builtin")
      .filter((entry) => !ALWAYS_RUNNING.includes(entry.name));
    return [...always, ...named];
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(() => {
      if (!this.#isClosed) return task();
      throw new EngineError("overloaded", "The engine is stopping and changes no workers");
    });
    this.#turn = turn.catch(() => {}); // Its caller hears of it; the next must begin all the same.
    return turn;
  }
}

function embeddedText(config: Config): string {
  const names = config.workers.map((entry) => `  - name: ${entry.name}\n`).join("");
  return `# What this engine runs; every key is described in the README.\nworkers:\n${names}`;
}

function refuseAlways(name: string, done: string): void {
  if (!ALWAYS_RUNNING.includes(name)) return;
  throw new EngineError("INVALID_ARGUMENTS", `${name} is the engine itself and cannot be ${done}`);
}

function refuseClash(present: WorkerEntry | undefined, name: string, path: string): void {
  if (!present || (present.kind === "directory" && isSamePlace(present.path, path))) {
    return;
  }
  const other = present.kind === "directory" ? present.path : "a built-in worker";
  const message = `A worker ${name} is there already (${other}); ` +
    `change name in ${path}/engine.worker.yaml, or remove the other one`;
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** Whether two paths lead to one directory, be it over links. */
function isSamePlace(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    return Deno.realPathSync(one) === Deno.realPathSync(other);
  } catch {
    return false; // One of them is not there: not the same as one that is.
  }
}

/** The path as config.yaml has it: relative where the worker lies below the project. */
function relativeTo(directory: string, path: string): string {
  return path.startsWith(`${directory}/`) ? `.${path.slice(directory.length)}` : path;
}
