/**
 * Runs the workers that come with the engine, each on a local connection, and reports their status.
 *
 * They start and stop one after another, in the order of the list, so that the difference between
 * two configurations is applied as a whole. A worker that cannot start is `failed`; the others run.
 * One that ran and cannot start with another configuration starts again with the one before.
 *
 * @module
 */
import { describeThrown, EngineError } from "../sdk/typescript/wire/errors.ts";
import { ENGINE_URL_DEFAULT } from "../sdk/typescript/wire/limits.ts";
import type { Dial } from "../sdk/typescript/wire/transport.ts";
import { registerWorker } from "../sdk/typescript/register_worker.ts";
import type { Worker } from "../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../workers/kit/define.ts";
import { TaskQueue } from "./platform/task_queue.ts";
import type { Clock } from "./ports/clock.ts";
import type { BuiltinEntry } from "./ports/config.ts";
import type { Directory, FunctionView } from "./ports/directory.ts";
import type { Log } from "./ports/log.ts";
import type { Store } from "./ports/store.ts";
import type { Endpoint, WorkerState, WorkerStatus } from "./ports/supervision.ts";

/** What {@linkcode Builtins} works with. */
export interface BuiltinsOptions {
  readonly known: readonly BuiltinWorker[];
  readonly clock: Clock;
  readonly log: Log;
  readonly directory: Directory;
  /** Opens a local connection for a built-in. */
  dial(worker: BuiltinWorker): Dial;
  /** Called when the status of one of them changes. */
  changed?(name: string): void;
  /** What every built-in uses of the engine, without its own signal and addresses. */
  readonly host: Omit<EngineHost, "serves" | "signal">;
  /**
   * In a cluster: the store of built-ins that run where the state is kept, which begin with
   * {@linkcode Builtins.keep}.
   */
  readonly kept?: Store;
}

/** Why a built-in of a cluster does not run here. */
const ELSEWHERE = "runs at the engine that keeps the state";
/** What it does here instead, if it does something. */
const CLIENTS_HERE = "serves clients here; the engine that keeps the state does the rest";

/** How long a worker may take to start, and to stop; what takes longer is left behind. */
export const BUILTIN_MS_MAX = 30_000;

/** One built-in that the configuration names. */
interface Run {
  /** What it runs with, or ran with last. */
  entry: BuiltinEntry;
  /** What it was to run with last; another one than `entry` after a change that failed. */
  wanted: BuiltinEntry;
  state: WorkerState;
  /** When that state began, in milliseconds since 1970. */
  sinceMs: number;
  reason: string | null;
  /** Why it last failed. */
  lastError: string | null;
  launch: number;
  startedAtMs: number | null;
  readyAfterMs: number | null;
  endpoints: Endpoint[];
  /** Ends the worker; `null` unless it runs. */
  stack: AsyncDisposableStack | null;
  /** It runs as where another engine keeps the state. */
  isElsewhere: boolean;
}

/** The built-in workers of one engine. */
export class Builtins {
  readonly #options: BuiltinsOptions;
  readonly #runs = new Map<string, Run>();
  /** Starts and stops, one at a time. */
  readonly #tasks = new TaskQueue();
  #isClosed = false;
  /** Whether this engine keeps the state; one that is alone always does. */
  #isKeeper: boolean;

  constructor(options: BuiltinsOptions) {
    this.#options = options;
    this.#isKeeper = options.kept === undefined;
  }

  /** In a cluster: starts the built-ins that run where the state is kept, or ends them. */
  keep(isKeeper: boolean): Promise<void> {
    return this.#tasks.run(async () => {
      this.#isKeeper = isKeeper;
      const runs = [...this.#runs.values()].filter(({ entry }) => this.#isKept(entry.name));
      if (isKeeper) {
        for (const run of runs) if (run.state === "queued") await this.#begin(run);
        // Behind those, since their clients have to leave first.
        for (const run of runs.filter(({ isElsewhere }) => isElsewhere)) {
          await this.#end(run);
          await this.#begin(run);
        }
        return;
      }
      const running = runs.filter(({ state }) => state !== "stopped"); // Those are, by hand.
      for (const run of running.toReversed()) {
        await this.#end(run);
        this.#set(run, "queued", ELSEWHERE);
      }
      // A stopping engine opens nothing anew.
      if (this.#options.host.draining?.aborted) return;
      for (const run of running) await this.#begin(run);
    });
  }

  /** The built-ins of the configuration that run where the state is kept. */
  get kept(): string[] {
    return [...this.#runs.keys()].filter((name) => this.#isKept(name));
  }

  #isKept(name: string): boolean {
    return this.#options.known.some((worker) => worker.name === name && worker.kept !== undefined);
  }

  /** Addresses that running built-ins serve. */
  get endpoints(): Endpoint[] {
    return [...this.#runs.values()].flatMap((run) => run.endpoints);
  }

  /**
   * Makes the running workers equal to a list; workers whose entry did not change keep running.
   * Returns by name why workers that ran before do not run as their entry says.
   */
  apply(entries: readonly BuiltinEntry[]): Promise<ReadonlyMap<string, EngineError>> {
    const refused = new Map<string, EngineError>();
    return this.#tasks.run(async () => {
      for (const [name, run] of [...this.#runs].reverse()) {
        if (entries.some((entry) => entry.name === name)) continue;
        await this.#end(run);
        this.#runs.delete(name);
      }
      for (const entry of entries) {
        const run = this.#runs.get(entry.name);
        if (!run) await this.#begin(this.#add(entry));
        else if (isOther(run.wanted, entry)) {
          const failure = await this.#change(run, entry);
          if (failure) refused.set(entry.name, failure);
        }
      }
      return refused;
    });
  }

  /** Starts a built-in that is stopped or failed. */
  start(name: string): Promise<void> {
    return this.#tasks.run(async () => {
      const run = this.#runs.get(name);
      if (run && !run.stack) await this.#change(run, run.wanted);
    });
  }

  /** Starts a built-in again, with the configuration that it is to have. */
  restart(name: string): Promise<void> {
    return this.#tasks.run(async () => {
      const run = this.#runs.get(name);
      if (!run) return;
      if (isOther(run.entry, run.wanted)) return void await this.#change(run, run.wanted);
      await this.#end(run);
      await this.#begin(run);
    });
  }

  /** Stops a built-in until {@linkcode start}. */
  stop(name: string): Promise<void> {
    return this.#tasks.run(async () => {
      const run = this.#runs.get(name);
      if (run) await this.#end(run);
    });
  }

  /** Stops all workers in reverse order; none can be started after that. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#tasks.run(async () => {
      for (const run of [...this.#runs.values()].reverse()) await this.#end(run);
    });
  }

  /** What a worker runs with while a change of it has failed; `undefined`: as configured. */
  runningConfig(name: string): unknown {
    const run = this.#runs.get(name);
    return run?.stack && isOther(run.entry, run.wanted) ? run.entry.config : undefined;
  }

  /** The status of every built-in of the configuration. */
  list(): WorkerStatus[] {
    const functions = this.#options.directory.builtinFunctions();
    return [...this.#runs.keys()].map((name) => this.status(name, functions)!);
  }

  /**
   * The status of one built-in; `undefined` when the configuration does not name it. `all`: the
   * functions of all built-ins.
   */
  status(
    name: string,
    all: readonly FunctionView[] = this.#options.directory.builtinFunctions(),
  ): WorkerStatus | undefined {
    const run = this.#runs.get(name);
    if (!run) return undefined;
    const functions = all.filter((view) => view.worker_name === name)
      .map((view) => view.function_id);
    return {
      name,
      kind: "builtin",
      state: run.state,
      since_ms: run.sinceMs,
      reason: run.reason,
      path: null,
      isolation: null,
      required: false,
      suspect: false, // Its connection has no network.
      pid: run.stack ? Deno.pid : null,
      functions: functions.sort(),
      restarts: 0,
      started_at_ms: run.startedAtMs,
      ready_after_ms: run.state === "ready" ? run.readyAfterMs : null,
      last_exit: null,
      dependencies: null,
      launch: run.launch,
      tail: [],
      log_path: null,
      last_error: run.lastError,
      accelerator: null,
      network: null,
      resources: null,
      memory_bytes: null, // It shares the engine's memory.
      cpu_percent: null,
      replicas: [],
    };
  }

  #add(entry: BuiltinEntry): Run {
    const run: Run = {
      entry,
      wanted: entry,
      state: "queued",
      sinceMs: this.#options.clock.wall(),
      reason: null,
      lastError: null,
      launch: 0,
      startedAtMs: null,
      readyAfterMs: null,
      endpoints: [],
      stack: null,
      isElsewhere: false,
    };
    this.#runs.set(entry.name, run);
    return run;
  }

  /**
   * Starts a worker anew with another entry, and with the one before if that fails: a failed
   * change must not end what serves. Returns why it runs as before.
   */
  async #change(run: Run, entry: BuiltinEntry): Promise<EngineError | undefined> {
    const before = run.entry;
    const hasFallback = isOther(before, entry) && run.readyAfterMs !== null;
    run.wanted = entry;
    if (run.stack && !isOther(before, entry)) { // Back to what has been running all along.
      this.#set(run, "ready", this.#summaryOf(run));
      return undefined;
    }
    if (run.stack) await this.#end(run);
    run.entry = entry;
    const failure = await this.#launch(run);
    if (!failure) return undefined;
    if (!hasFallback || this.#isClosed) return void this.#fail(run, failure, failure.message);
    run.entry = before;
    const { code, message } = failure;
    const again = await this.#launch(run);
    const reason = again
      ? `${message}; nor did ${entry.name} start again as before: ${again.message}`
      : `${message}; ${entry.name} keeps running as before`;
    if (again) this.#fail(run, failure, reason);
    else {
      run.lastError = message;
      this.#set(run, "ready", reason);
      const { log } = this.#options;
      log.error("the new configuration of a built-in worker failed", {
        worker: entry.name,
        code,
        reason,
      });
    }
    return new EngineError(code, reason);
  }

  async #begin(run: Run): Promise<void> {
    const failure = await this.#launch(run);
    if (failure) this.#fail(run, failure, failure.message);
  }

  /** Starts a worker with its entry; returns why it did not start. */
  async #launch(run: Run): Promise<EngineError | undefined> {
    if (this.#isClosed) return void this.#set(run, "stopped", null);
    const { clock, log } = this.#options;
    const { name, config } = run.entry;
    const definition = this.#options.known.find((worker) => worker.name === name);
    const isElsewhere = definition?.kept !== undefined && !this.#isKeeper;
    if (isElsewhere && !definition?.startElsewhere) {
      return void this.#set(run, "queued", ELSEWHERE);
    }
    if (!definition) throw new EngineError("NOT_FOUND", `There is no built-in worker ${name}`);
    const began = clock.now();
    run.launch++;
    this.#set(run, "starting", null); // Without the reason of the start before.
    run.startedAtMs = clock.wall();
    const stack = new AsyncDisposableStack();
    try {
      const worker = this.#connect(definition);
      stack.defer(() => worker.shutdown());
      const host = this.#hostFor(run, stack, definition.kept !== undefined);
      const starting = isElsewhere
        ? definition.startElsewhere!(worker, config, host)
        : definition.start(worker, config, host);
      stack.use(await this.#within(starting, `${name} did not start`));
      run.stack = stack;
      run.isElsewhere = isElsewhere;
      this.#set(run, "ready", this.#summaryOf(run));
      run.readyAfterMs = Math.round(clock.now() - began);
      log.debug("built-in worker ready", { worker: name });
      return undefined;
    } catch (thrown) {
      await this.#dispose(stack, name);
      run.startedAtMs = null;
      run.endpoints = [];
      const { code, message } = describeThrown(thrown);
      return new EngineError(code, message);
    }
  }

  #fail(run: Run, { code, message }: EngineError, reason: string): void {
    this.#set(run, "failed", reason);
    run.lastError = message;
    this.#options.log.error("built-in worker failed to start", {
      worker: run.entry.name,
      code,
      reason,
    });
  }

  async #end(run: Run): Promise<void> {
    const { stack, entry: { name } } = run;
    run.stack = null;
    run.isElsewhere = false;
    if (stack) {
      this.#set(run, "stopping", run.reason);
      await this.#dispose(stack, name);
    }
    this.#set(run, "stopped", null);
    run.startedAtMs = null;
    run.endpoints = [];
  }

  async #dispose(stack: AsyncDisposableStack, name: string): Promise<void> {
    const disposed = this.#within(stack.disposeAsync(), `${name} did not stop`);
    await disposed.catch((thrown: unknown) => {
      this.#options.log.error("built-in worker failed to stop", {
        worker: name,
        reason: describeThrown(thrown).message,
      });
    });
  }

  /** The result of a task; what arrives after the limit is disposed of. */
  async #within<T extends AsyncDisposable | void>(task: Promise<T>, text: string): Promise<T> {
    const late = Promise.withResolvers<never>();
    let isLate = false;
    const cancel = this.#options.clock.after(BUILTIN_MS_MAX, () => {
      isLate = true;
      late.reject(new EngineError("timeout", `${text} within ${BUILTIN_MS_MAX / 1_000} s`));
    });
    task.then((result) => isLate ? result?.[Symbol.asyncDispose]() : undefined)
      .catch(() => {}); // The caller gets the error, or the one of the limit.
    return await Promise.race([task, late.promise]).finally(cancel);
  }

  #summaryOf(run: Run): string {
    const { name, config } = run.entry;
    if (run.isElsewhere) return CLIENTS_HERE;
    const definition = this.#options.known.find((worker) => worker.name === name);
    return definition?.summaryOf?.(config) ?? definition?.summary ?? "";
  }

  #set(run: Run, state: WorkerState, reason: string | null): void {
    if (run.state !== state) run.sinceMs = this.#options.clock.wall();
    run.state = state;
    run.reason = reason;
    this.#options.changed?.(run.entry.name);
  }

  #connect(definition: BuiltinWorker): Worker {
    const { name: workerName, summary: description } = definition;
    const dial = this.#options.dial(definition);
    return registerWorker(ENGINE_URL_DEFAULT, { workerName, description, dial });
  }

  #hostFor(run: Run, stack: AsyncDisposableStack, isKept: boolean): EngineHost {
    const ending = new AbortController();
    stack.defer(() => ending.abort());
    const { host, kept } = this.#options;
    return {
      ...host,
      ...isKept && kept && { store: kept },
      signal: ending.signal,
      serves: (endpoint) => void run.endpoints.push(endpoint),
    };
  }
}

/** Whether the file has other keys for a worker than before. */
function isOther(one: BuiltinEntry, other: BuiltinEntry): boolean {
  return JSON.stringify(one.raw) !== JSON.stringify(other.raw);
}
