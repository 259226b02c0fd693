/**
 * Puts the parts of an engine together, starts them upward and stops them downward.
 *
 * One stack undoes what was done: in stop(), and when a start fails half-way. Nothing here decides
 * what a message means or when a worker runs.
 *
 * @module
 */
import { DRAIN_MS } from "../workers/kit/define.ts";
import { errorBody, thrownText } from "../sdk/typescript/wire/errors.ts";
import { DEFAULT_NAMESPACE } from "../sdk/typescript/wire/protocol.ts";
import { isLoopback } from "../sdk/typescript/wire/loopback.ts";
import { builtinWorkers } from "../workers/mod.ts";
import { EngineAbsences } from "./absences.ts";
import { type ControlKey, openControlKey } from "./auth/control_key.ts";
import { tokenPath } from "./auth/token_file.ts";
import { Tokens } from "./auth/tokens.ts";
import { Builtins } from "./builtins.ts";
import { ChannelTable } from "./channels/channel_table.ts";
import { findConfig, parseConfig } from "./config/config.ts";
import { listenerChanges } from "./config/listeners.ts";
import { FIXED_SETTINGS, withOption, withRunning } from "./config/values.ts";
import { variablesOf } from "./config/variables.ts";
import { type ConfigWatch, watchConfig } from "./config/watch.ts";
import { Router } from "./core/router.ts";
import { descriptorLimit, descriptorsOpen, socketBounds } from "./platform/descriptors.ts";
import { FaultReports, isConnectionFault } from "./platform/faults.ts";
import { EventFeed } from "./platform/event_feed.ts";
import { Listeners, shareSockets } from "./listeners.ts";
import { LogOutput } from "./platform/log_output.ts";
import { createLog, logEvent } from "./platform/log_writer.ts";
import { FreedMemory } from "./platform/freed_memory.ts";
import { LocalKeeping } from "./platform/keeping.ts";
import { createMemoryBudget } from "./platform/memory_budget.ts";
import { createSchemas } from "./platform/schema_check.ts";
import { systemClock, tickClock } from "./platform/system_clock.ts";
import type { ClusterKeeping } from "./cluster/keeper/mod.ts";
import type { Cluster } from "./cluster/mod.ts";
import type { Config, ConfigValue } from "./ports/config.ts";
import type { Listener } from "./ports/connection.ts";
import type { EngineEvent } from "./ports/events.ts";
import type { EngineLogLine, Log, LogLevel } from "./ports/log.ts";
import type { MemoryBudget } from "./ports/memory.ts";
import type { Store, StoreFile } from "./ports/store.ts";
import type { Endpoint, EngineInfo } from "./ports/supervision.ts";
import type { PrintedLine, TelemetryFrame } from "./ports/telemetry.ts";
import { Project } from "./project.ts";
import { openKvStore } from "./store/kv_store.ts";
import { makePrivate } from "./store/private_files.ts";
import type { DirectoryWorkers } from "./supervisor/mod.ts";
import { CallRecorder } from "./telemetry/call_recorder.ts";
import { HttpFunctions } from "./served/http_functions.ts";
import { localDial } from "./transport/local_connection.ts";
import { SocketPaths } from "./transport/gate.ts";
import { Pages } from "./transport/pages.ts";
import { TickBudget } from "./transport/tick_budget.ts";
import { RawWebSockets } from "./transport/web_sockets.ts";
import { VERSION } from "./version.ts";
import {
  addressOf,
  openLoopbackPort,
  openWorkerPort,
  reachable,
  workerUrl,
} from "./worker_port.ts";

/** How to start an engine. */
export interface StartOptions {
  /** The config.yaml to run. Default: the one in `directory`, else embedded defaults. */
  readonly configPath?: string;
  /** Where the project is if `configPath` is left out. Default: the current directory. */
  readonly directory?: string;
  /** Port of the worker listener, instead of the file's `engine.port`; 0 for any free one. */
  readonly port?: number;
  /** Instead of the file's `log.level`. */
  readonly logLevel?: LogLevel;
  /**
   * Goes on with the state that is there, none included, when it is not what was there before.
   * Default: such a start fails.
   */
  readonly acceptsEmptyState?: boolean;
}

/** How to stop an engine. */
export interface StopOptions {
  /** Lets running calls finish first, for 5 s at most. Default `true`. */
  readonly drain?: boolean;
}

/** A running engine. */
export interface Engine extends AsyncDisposable {
  /** The addresses it serves now. */
  readonly endpoints: readonly Endpoint[];
  /** Settles when the engine has stopped. */
  readonly finished: Promise<void>;
  /** Its version, process and project. */
  info(): EngineInfo;
  /**
   * Takes an error that nothing awaited, such as from the events `error` and `unhandledrejection`
   * of the process. Logs it; the engine keeps serving if it concerns one connection, and otherwise
   * stops. Returns which.
   */
  handleFault(thrown: unknown): "kept" | "stopping";
  /** Stops everything the engine started. A second call with `drain: false` ends the drain. */
  stop(options?: StopOptions): Promise<void>;
}

/**
 * Starts an engine and returns when it listens and its built-in workers have started.
 *
 * Workers that are directories start in the background; `engine::supervisor::list` reports
 * their progress.
 *
 * @throws {EngineError} `config_invalid` with `details.problems`, `store_unavailable`,
 * `address_in_use`, `address_not_available`.
 */
export async function startEngine(options: StartOptions = {}): Promise<Engine> {
  const config = await findConfig(options, builtinWorkers, Deno.env.toObject());
  const engine = new AssembledEngine(config, options);
  await engine.start();
  return engine;
}

const BYTES_PER_MB = 1024 * 1024;

/** The parts of one engine, and their order. */
class AssembledEngine implements Engine {
  readonly #options: StartOptions;
  readonly #startedAtMs = systemClock.wall();
  readonly #log: Log;
  readonly #output = new LogOutput((lines) => {
    this.#log.warn("lines of the log were dropped, since standard error was not read", { lines });
  });
  readonly #events: EventFeed<EngineEvent>;
  readonly #logged: EventFeed<EngineLogLine>;
  readonly #printed: EventFeed<PrintedLine>;
  readonly #telemetry: EventFeed<TelemetryFrame>;
  readonly #memory: MemoryBudget;
  readonly #recorder: CallRecorder;
  readonly #router: Router;
  readonly #channels: ChannelTable;
  readonly #httpFunctions: HttpFunctions;
  readonly #pages: Pages;
  readonly #absences = this.#createAbsences();
  readonly #socketPaths = new SocketPaths();
  readonly #tokens: Tokens;
  readonly #config: Config;
  readonly #finished = Promise.withResolvers<void>();
  readonly #stack = new AsyncDisposableStack();
  readonly #draining = new AbortController();
  /** What built-in workers still have to finish. */
  #delays = 0;
  readonly #faults: FaultReports;
  readonly #ticks = new TickBudget();
  readonly #schemas = this.#stack.use(createSchemas(systemClock, this.#ticks));
  readonly #skipDrain = Promise.withResolvers<void>();
  #level: LogLevel;
  #project!: Project;
  #builtins!: Builtins;
  #listener: Listener | undefined;
  /** Besides that one. */
  #listeners: Listeners | undefined;
  /** Where workers dial that this engine starts; with TLS not where other workers dial. */
  #loopback: Listener | undefined;
  #key: ControlKey | undefined;
  #watch: ConfigWatch | undefined;
  #stopping: Promise<void> | undefined;
  /** `undefined` in an engine that is alone. */
  #cluster: Cluster | undefined;
  #keeping: ClusterKeeping | undefined;

  constructor(config: Config, options: StartOptions) {
    this.#config = config;
    this.#options = options;
    this.#level = options.logLevel ?? config.log.level;
    const failed = (reason: string): void => this.#log.error("a listener failed", { reason });
    this.#logged = new EventFeed(failed);
    this.#printed = new EventFeed(failed);
    this.#telemetry = new EventFeed(failed);
    this.#events = new EventFeed(failed);
    this.#log = createLog({
      level: () => this.#level,
      format: logFormat(config),
      write: (line) => this.#output.write(line),
      observe: (line) => this.#logged.publish(line),
    });
    this.#faults = new FaultReports(this.#log, systemClock);
    this.#events.listen((event) => logEvent(this.#log, event));
    const freed = this.#stack.use(new FreedMemory({ clock: systemClock }));
    freed.freed(); // What loading took: most at the first start after an update, which compiles.
    const { memory_mb } = config.engine;
    this.#memory = createMemoryBudget(memory_mb * BYTES_PER_MB, undefined, () => freed.freed());
    this.#recorder = new CallRecorder({
      clock: tickClock,
      random: (bytes) => crypto.getRandomValues(bytes),
    });
    this.#httpFunctions = this.#stack.use(
      new HttpFunctions({
        clock: systemClock,
        turns: this.#ticks,
        memory: this.#memory,
        settings: config.engine.http_functions,
        maxMessageBytes: config.engine.max_message_bytes,
        variables: () => variablesOf(this.#project.configPath, Deno.env.toObject())[0],
      }),
    );
    this.#router = new Router({
      clock: tickClock,
      schemas: this.#schemas,
      newId: () => crypto.randomUUID(),
      report: (event) => this.#events.publish(event),
      settings: config.engine,
      observer: this.#recorder,
      telemetry: (frame) => this.#telemetry.publish(frame),
      memory: this.#memory,
      served: this.#httpFunctions,
      absences: this.#absences,
    });
    this.#channels = new ChannelTable({ clock: systemClock, memory: this.#memory });
    const path = tokenPath(config.dataDirectory);
    this.#tokens = new Tokens({ path, clock: systemClock, log: this.#log });
    this.#pages = new Pages({
      clock: systemClock,
      log: this.#log,
      isLoopback: isLoopback(config.engine.host),
      created: this.#tokens,
      ...config.engine.auth_token !== undefined && { authToken: config.engine.auth_token },
    });
  }

  #createAbsences(): EngineAbsences {
    return new EngineAbsences({
      known: builtinWorkers,
      builtin: (name) => this.#builtins?.status(name),
      isOffered: (id) => this.#router.directory.function(DEFAULT_NAMESPACE, id) !== undefined,
      isKeeperExpected: () => this.#keeping?.isExpected ?? false,
      isKeptTogether: () => this.#keeping !== undefined,
      keeperName: () => {
        const engines = this.#cluster?.engines;
        return engines?.list().find(({ life }) => life === engines.keeper)?.name;
      },
      isClusterAway: () => this.#cluster?.engines.isConnected === false,
      directoryWorker: (id, namespace) => this.#project?.absence(id, namespace),
    });
  }

  /** Starts upward; undoes what was done if a step fails. */
  async start(): Promise<void> {
    try {
      makePrivate(this.#config.dataDirectory);
      await this.#startCluster();
      const store = this.#stack.use(
        await openKvStore(`${this.#config.dataDirectory}/state.sqlite`, {
          acceptsEmptyState: this.#options.acceptsEmptyState ?? false,
          log: this.#log,
          memory: this.#memory,
          clock: systemClock,
          turns: this.#ticks,
        }),
      );
      this.#builtins = this.#createBuiltins(store);
      this.#project = this.#createProject();
      this.#stack.defer(() => this.#builtins.close());
      await this.#project.applyBuiltins();
      this.#stack.defer(() => this.#closeListeners());
      this.#listen();
      this.#stack.use(this.#tokens.watch((id, message) => {
        const error = errorBody("AUTH_ERROR", message);
        this.#router.endWhere(({ token }) => token === id, error);
      }));
      this.#key = this.#stack.use(await this.#openKey());
      // The text of both SDKs and the schemas: nothing needs them before the engine listens.
      const { writeSdkCopies } = await import("./install/sdk_copy.ts");
      await writeSdkCopies(this.#config.dataDirectory);
      const { writeSchemas } = await import("./schemas.ts");
      await writeSchemas(this.#config.dataDirectory);
      this.#stack.defer(() => this.#project.close());
      await this.#project.apply(() => this.#config);
      this.#watch = this.#stack.use(this.#watchFile());
      if (this.#cluster) this.#joinCluster(this.#cluster);
    } catch (thrown) {
      await this.#stack.disposeAsync();
      await this.#endLog();
      throw thrown;
    }
  }

  /** Nothing of a cluster is loaded in an engine that is alone. */
  async #startCluster(): Promise<void> {
    const settings = this.#config.engine.cluster;
    if (!settings) return;
    const { startCluster } = await import("./cluster/mod.ts");
    const { max_message_bytes: maxMessageBytes } = this.#config.engine;
    const [router, memory, log] = [this.#router, this.#memory, this.#log];
    const [version, channels] = [VERSION, this.#channels];
    const setup = { clock: systemClock, log, router, memory, version, maxMessageBytes, channels };
    const cluster = this.#stack.use(startCluster({ settings, ...setup }));
    this.#cluster = cluster;
    this.#events.listen(({ type }) => {
      if (type === "functions_changed" || type === "triggers_changed") cluster.changed();
    });
    if (settings.log === "none") return;
    const { prepareKeeping } = await import("./cluster/keeper/mod.ts");
    this.#keeping = prepareKeeping({
      ...{ parts: cluster.parts, memory, turns: this.#ticks },
      path: `${this.#config.dataDirectory}/cluster_state.sqlite`,
      serve: (isKept) => this.#builtins.keep(isKept),
      shared: () => this.#builtins.kept,
    });
    cluster.showKeeper(this.#keeping);
  }

  /** Takes calls of other engines. */
  #joinCluster(cluster: Cluster): void {
    cluster.join();
    this.#stack.defer(() => cluster.leave());
    if (!this.#keeping) return;
    this.#stack.use(this.#keeping);
    this.#keeping.start();
  }

  async #endLog(): Promise<void> {
    await this.#output.flush(systemClock);
    this.#output[Symbol.dispose]();
  }

  get endpoints(): readonly Endpoint[] {
    const workers = this.#listener ? [{ name: "workers", url: this.#address() }] : [];
    return [...workers, ...this.#listeners?.endpoints ?? [], ...this.#builtins.endpoints];
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  info(): EngineInfo {
    return this.#project.info();
  }

  stop({ drain = true }: StopOptions = {}): Promise<void> {
    if (!drain) this.#skipDrain.resolve();
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  handleFault(thrown: unknown): "kept" | "stopping" {
    // What fails while everything is being closed is closed.
    if (isConnectionFault(thrown) || this.#stopping) {
      this.#faults.kept(thrown);
      return "kept";
    }
    this.#faults.fatal(thrown);
    void this.stop();
    return "stopping";
  }

  async #stop(): Promise<void> {
    this.#draining.abort(); // First, so that new requests are refused as such.
    try {
      await this.#cluster?.drain();
      this.#router.drain();
      await this.#drained();
      this.#router.stopCalls();
      await this.#stack.disposeAsync();
      this.#router.close();
    } catch (thrown) {
      this.#log.error("the engine could not stop in order", { reason: thrownText(thrown) });
    } finally {
      await this.#endLog();
      this.#finished.resolve();
    }
  }

  async #closeListeners(): Promise<void> {
    this.#channels.close();
    const listeners = [this.#listener, this.#loopback, this.#listeners];
    await Promise.all(listeners.map((listener) => listener?.close()));
    this.#listener = this.#loopback = this.#listeners = undefined;
  }

  /** Settles when no call or request runs any more, or the drain has lasted long enough. */
  async #drained(): Promise<void> {
    const end = systemClock.now() + DRAIN_MS;
    let skipped = false;
    void this.#skipDrain.promise.then(() => skipped = true);
    const isBusy = (): boolean => this.#router.runningCalls > 0 || this.#delays > 0;
    while (isBusy() && systemClock.now() < end && !skipped) {
      await new Promise<void>((resolve) => systemClock.after(20, resolve));
    }
  }

  /** Half of an engine's code, so it is imported with the first worker that is a directory. */
  async #loadDirectoryWorkers(): Promise<DirectoryWorkers> {
    const { createDirectoryWorkers } = await import("./supervisor/mod.ts");
    const { dataDirectory, engine } = this.#config;
    const workers = createDirectoryWorkers({
      clock: systemClock,
      log: this.#log,
      dataDirectory,
      engine: () => reachable(this.#loopback!),
      engineUrl: () => workerUrl(this.#loopback!, engine.auth_token),
      directory: this.#router.directory,
      traffic: this.#router.traffic,
      print: (line) => this.#printed.publish(line),
      changed: (name) => this.#events.publish({ type: "supervised_changed", name }),
    });
    this.#events.listen((event) => workers.supervisor.onEvent(event));
    return workers;
  }

  #createBuiltins(store: Store): Builtins {
    const { directory } = this.#router;
    const project = (): Project => this.#project;
    return new Builtins({
      known: builtinWorkers,
      clock: systemClock,
      log: this.#log,
      directory,
      dial: ({ name, operator = false }) => {
        const open: Router["open"] = (line, peer) => this.#router.open(line, { ...peer, operator });
        return localDial({ open }, name, { ticks: this.#ticks });
      },
      changed: (name) => this.#events.publish({ type: "supervised_changed", name }),
      ...this.#keeping && { kept: this.#keeping.store },
      host: {
        clock: systemClock,
        log: this.#log,
        socketBounds: socketBounds(),
        draining: this.#draining.signal,
        delayStop: (work) => {
          this.#delays++;
          void work.finally(() => this.#delays--);
        },
        store: this.#keeping ? withFile(store, this.#keeping.file) : store,
        schemas: this.#schemas,
        memory: this.#memory,
        channels: this.#channels,
        webSockets: new RawWebSockets({
          ticks: this.#ticks,
          memory: this.#memory,
          onCut: (address, reason) => this.#log.debug("a WebSocket was cut", { address, reason }),
        }),
        directory,
        absenceOf: (id, namespace) => this.#absences.ofFunction(id, namespace),
        engines: this.#cluster?.engines,
        turns: this.#ticks,
        firings: this.#router.firings,
        keeping: new LocalKeeping({ clock: systemClock, log: this.#log }),
        get supervision() {
          return project();
        },
        onEvent: (listener) => this.#events.listen(listener),
        traces: this.#recorder,
        meters: this.#recorder,
        onTelemetry: (listener) => this.#telemetry.listen(listener),
        onPrint: (listener) => this.#printed.listen(listener),
        onEngineLog: (listener) => this.#logged.listen(listener),
        servePage: (path, answer, options) => this.#pages.serve(path, answer, options),
        serveSockets: (path, accept, options) => this.#socketPaths.serve(path, accept, options),
        configuration: () => this.#configuration(),
      },
    });
  }

  #createProject(): Project {
    return new Project({
      config: this.#config,
      known: builtinWorkers,
      builtins: this.#builtins,
      loadDirectoryWorkers: () => this.#loadDirectoryWorkers(),
      applySettings: (changed) => this.#applySettings(changed),
      changed: () => this.#events.publish({ type: "config_changed" }),
      edited: () => this.#watch?.check(),
      info: (current) => ({
        version: VERSION,
        pid: Deno.pid,
        config_path: current.path,
        data_directory: current.dataDirectory,
        endpoints: this.endpoints,
        listeners: this.#listeners?.infos ?? [],
        started_at_ms: this.#startedAtMs,
        platform: Deno.build.os,
        descriptors: { limit: descriptorLimit(), open: descriptorsOpen() ?? null },
        control_key: {
          path: this.#key?.path ?? "",
          problem: this.#key ? this.#key.problem : "the engine is still starting",
        },
      }),
    });
  }

  #applySettings(changed: Config): void {
    this.#router.applySettings(changed.engine);
    this.#httpFunctions.applySettings(changed.engine.http_functions);
    this.#level = this.#options.logLevel ?? changed.log.level;
    for (const key of FIXED_SETTINGS) {
      if (isSame(changed.engine[key], this.#config.engine[key])) continue;
      this.#log.warn("a changed setting takes effect when the engine restarts", {
        setting: `engine.${key}`,
        ...key === "listeners" && {
          detail: listenerChanges(this.#config.engine.listeners, changed.engine.listeners),
        },
      });
    }
  }

  /** The values in force; the command line wins over the file. */
  #configuration(): readonly ConfigValue[] {
    const { port, logLevel } = this.#options;
    const { config } = this.#project;
    const running = (name: string): unknown => this.#builtins.runningConfig(name);
    const values = withRunning(config.values, config, running);
    return withOption(withOption(values, "engine.port", port), "log.level", logLevel);
  }

  #listen(): void {
    const { engine } = this.#config;
    const { first, each } = shareSockets(socketBounds().workers, engine.listeners.length);
    const options = {
      settings: { ...engine, port: this.#options.port ?? engine.port },
      clock: systemClock,
      log: this.#log,
      router: this.#router,
      channels: this.#channels,
      telemetry: (frame: TelemetryFrame) => this.#telemetry.publish(frame),
      pages: this.#pages,
      socketPaths: this.#socketPaths,
      tokens: this.#tokens,
      memory: this.#memory,
      ticks: this.#ticks,
      sockets: first,
      isStopping: () => this.#draining.signal.aborted,
      key: () => this.#key,
    };
    this.#listener = openWorkerPort(options);
    this.#loopback = engine.tls ? openLoopbackPort(options) : this.#listener;
    this.#listeners = new Listeners({
      settings: engine.listeners,
      port: { ...options, sockets: each },
      dial: (name) => localDial(this.#router, name, { ticks: this.#ticks }),
    });
    this.#listeners.open();
  }

  #openKey(): Promise<ControlKey> {
    const { directory, engine } = this.#config;
    return openControlKey(this.#address(), this.#log, {
      local: addressOf(reachable(this.#loopback!)),
      project: directory,
      needs_token: engine.auth_token !== undefined,
    });
  }

  #address(): string {
    return addressOf(this.#listener!, this.#config.engine.tls ? "wss" : "ws");
  }

  #watchFile(): ConfigWatch {
    const path = this.#project.configPath;
    return watchConfig({
      path,
      clock: systemClock,
      log: this.#log,
      inForce: () => this.#project.config,
      parse: (text) => parseConfig(text, path, builtinWorkers, Deno.env.toObject()),
      apply: (read) => this.#project.apply(read),
    });
  }
}

function logFormat(config: Config): "text" | "json" {
  if (config.log.format !== "auto") return config.log.format;
  return Deno.stderr.isTerminal() ? "text" : "json";
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The store of this engine alone, with the state of the cluster as what is backed up. */
function withFile(store: Store, file: StoreFile): Store {
  return {
    file,
    get stats() {
      return store.stats;
    },
    get status() {
      return store.status;
    },
    get: (key) => store.get(key),
    list: (...query) => store.list(...query),
    write: (changes, options) => store.write(changes, options),
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  };
}
