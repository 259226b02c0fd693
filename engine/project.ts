/**
 * The project that an engine runs: its config.yaml, and the workers it names.
 *
 * The only writer of config.yaml. What is added or removed here is written to the file first and
 * then applied from it, like an edit by hand, so that file and system cannot disagree.
 *
 * @module
 */
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import type { BuiltinWorker } from "../workers/kit/define.ts";
import type { Builtins } from "./builtins.ts";
import {
  differingKeys,
  refuseAlways,
  refuseClash,
  refuseMisfits,
  relativeTo,
} from "./config/add_rules.ts";
import { ALWAYS_RUNNING, parseConfig } from "./config/config.ts";
import {
  addWorkerEntry,
  changeWorkerConfig,
  changeWorkerKeys,
  removeWorkerEntry,
  writeConfigFile,
} from "./config/file.ts";
import type { NewWorker, NewWorkerRequest } from "./install/prepare.ts";
import type { LateSupervisor } from "./late_supervisor.ts";
import type { BuiltinEntry, Config } from "./ports/config.ts";
import type { Ended, OutputChunk } from "./ports/launcher.ts";
import type {
  AddAnswer,
  AddRequest,
  EngineInfo,
  ExecRequest,
  Supervision,
  WorkerStatus,
} from "./ports/supervision.ts";

/** What {@linkcode Project} works with. */
export interface ProjectOptions {
  readonly config: Config;
  readonly known: readonly BuiltinWorker[];
  readonly builtins: Builtins;
  readonly supervisor: LateSupervisor;
  /**
   * Settles how a worker would run, and asks whether it can, before anything is written down.
   *
   * @throws {EngineError} `manifest_invalid`; `isolation_unavailable` with what to do.
   */
  checkNewWorker(request: NewWorkerRequest): Promise<NewWorker>;
  /** Applies settings that are not about workers. */
  applySettings(config: Config): void;
  /** Another configuration is in force; never waits or throws. */
  changed?(): void;
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

  /**
   * Makes the system equal to the configuration that `read` returns when its turn has come; what
   * did not change is not touched, and without one nothing is.
   */
  apply(read: () => Config | undefined): Promise<void> {
    return this.#inTurn(async () => {
      const config = read();
      if (config) await this.#apply(config);
    });
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

  async list(): Promise<WorkerStatus[]> {
    const { builtins, supervisor } = this.#options;
    return [...builtins.list(), ...await supervisor.list()];
  }

  async status(name: string): Promise<WorkerStatus> {
    return this.#options.builtins.status(name) ?? await this.#directory(name).status(name);
  }

  async start(name: string): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) return await this.#directory(name).start(name);
    void builtins.start(name);
    return await this.status(name);
  }

  async stop(name: string): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) return await this.#directory(name).stop(name);
    refuseAlways(name, "stopped");
    void builtins.stop(name);
    return await this.status(name);
  }

  async restart(name: string, options: { reinstall: boolean }): Promise<WorkerStatus> {
    const { builtins } = this.#options;
    if (!builtins.status(name)) return await this.#directory(name).restart(name, options);
    refuseAlways(name, "restarted");
    void builtins.stop(name);
    void builtins.start(name);
    return await this.status(name);
  }

  async exec(
    request: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const { name } = request;
    if (!this.#options.builtins.status(name)) {
      return await this.#directory(name).exec(request, output, signal);
    }
    const message = `${name} runs inside the engine, and no command can be run beside it there`;
    throw new EngineError("INVALID_ARGUMENTS", message);
  }

  add(request: AddRequest): Promise<AddAnswer> {
    return this.#inTurn(async () => {
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
    return this.#inTurn(async () => {
      if (!this.#options.builtins.status(name)) this.#directory(name);
      refuseAlways(name, "removed");
      await this.#edit((text) => removeWorkerEntry(text, name));
      return { config_path: this.configPath };
    });
  }

  async logs(name: string, tail: number): Promise<string[]> {
    if (!this.#options.builtins.status(name)) return await this.#directory(name).logs(name, tail);
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

  async #addDirectory(path: string, request: AddRequest): Promise<Added> {
    const { supervisor, checkNewWorker } = this.#options;
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
    refuseMisfits(name, isolation, request);

    const keys = differingKeys(request, known);
    const isOther = Object.keys(keys).length > 0;
    const before = known && await supervisor.status(name);
    const place = relativeTo(this.#config.directory, path);
    if (!known) await this.#edit((text) => addWorkerEntry(text, { name, path: place, ...keys }));
    else if (isOther) await this.#edit((text) => changeWorkerKeys(text, name, keys));

    const { state, reason, launch } = await supervisor.status(name);
    const isFine = state === "ready" && reason === null; // It may keep an older version running.
    if (request.reinstall) await supervisor.restart(name, { reinstall: true });
    else if (!isFine && launch === before?.launch) await supervisor.start(name);
    return { name, added: !known, changed: known !== undefined && isOther };
  }

  /** The supervisor, for a worker that it has. @throws {EngineError} `NOT_FOUND`. */
  #directory(name: string): LateSupervisor {
    const { builtins, supervisor } = this.#options;
    const directories = this.#config.workers.filter(({ kind }) => kind === "directory");
    if (directories.some((entry) => entry.name === name)) return supervisor;
    const names = [...builtins.list(), ...directories].map((worker) => worker.name).sort();
    const message = `There is no worker ${name}; there are: ${names.join(", ")}`;
    throw new EngineError("NOT_FOUND", message);
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
    const directories = config.workers.filter((entry) => entry.kind === "directory");
    await this.#options.supervisor.apply(directories);
    this.#options.changed?.();
  }

  #builtinEntries(config: Config): BuiltinEntry[] {
    const named = config.workers.filter((entry) => entry.kind === "builtin");
    const isAlways = ({ name }: { readonly name: string }): boolean => {
      return ALWAYS_RUNNING.includes(name);
    };
    const always = this.#options.known.filter(isAlways).map((worker): BuiltinEntry => {
      const { name } = worker;
      return named.find((entry) => entry.name === name) ??
        { kind: "builtin", name, config: worker.parse({}), raw: {} };
    });
    return [...always, ...named.filter((entry) => !isAlways(entry))];
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
