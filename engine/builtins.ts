/**
 * Runs the workers that come with the engine, each on a local connection, and reports their status.
 *
 * They start and stop one after another, in the order of the list, so that the difference between
 * two configurations is applied as a whole. A worker that cannot start is `failed`; the others run.
 *
 * @module
 */
import { describeThrown, EngineError } from "../sdk/typescript/wire/errors.ts";
import { ENGINE_URL_DEFAULT } from "../sdk/typescript/wire/limits.ts";
import type { Dial } from "../sdk/typescript/wire/transport.ts";
import { registerWorker, type Worker } from "../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../workers/kit/define.ts";
import { TaskQueue } from "./platform/task_queue.ts";
import type { Clock } from "./ports/clock.ts";
import type { BuiltinEntry } from "./ports/config.ts";
import type { Directory } from "./ports/directory.ts";
import type { Log } from "./ports/log.ts";
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
}

/** One built-in that the configuration names. */
interface Run {
  entry: BuiltinEntry;
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
}

/** The built-in workers of one engine. */
export class Builtins {
  readonly #options: BuiltinsOptions;
  readonly #runs = new Map<string, Run>();
  /** Starts and stops, one at a time. */
  readonly #tasks = new TaskQueue();
  #isClosed = false;

  constructor(options: BuiltinsOptions) {
    this.#options = options;
  }

  /** Addresses that running built-ins serve. */
  get endpoints(): Endpoint[] {
    return [...this.#runs.values()].flatMap((run) => run.endpoints);
  }

  /** Makes the running workers equal to a list; workers whose entry did not change keep running. */
  apply(entries: readonly BuiltinEntry[]): Promise<void> {
    return this.#tasks.run(async () => {
      for (const [name, run] of [...this.#runs].reverse()) {
        if (entries.some((entry) => entry.name === name)) continue;
        await this.#end(run);
        this.#runs.delete(name);
      }
      for (const entry of entries) {
        const run = this.#runs.get(entry.name);
        if (!run) await this.#begin(this.#add(entry));
        else if (JSON.stringify(run.entry.raw) !== JSON.stringify(entry.raw)) {
          run.entry = entry;
          await this.#end(run);
          await this.#begin(run);
        }
      }
    });
  }

  /** Starts a built-in that is stopped or failed. */
  start(name: string): Promise<void> {
    return this.#tasks.run(async () => {
      const run = this.#runs.get(name);
      if (run && !run.stack) await this.#begin(run);
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

  /** The status of every built-in of the configuration. */
  list(): WorkerStatus[] {
    return [...this.#runs.keys()].map((name) => this.status(name)!);
  }

  /** The status of one built-in; `undefined` when the configuration does not name it. */
  status(name: string): WorkerStatus | undefined {
    const run = this.#runs.get(name);
    if (!run) return undefined;
    const functions = this.#options.directory.functions()
      .filter((view) => view.builtin && view.worker_name === name)
      .map((view) => view.function_id);
    return {
      name,
      kind: "builtin",
      state: run.state,
      since_ms: run.sinceMs,
      reason: run.reason,
      path: null,
      isolation: null,
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
      state: "queued",
      sinceMs: this.#options.clock.wall(),
      reason: null,
      lastError: null,
      launch: 0,
      startedAtMs: null,
      readyAfterMs: null,
      endpoints: [],
      stack: null,
    };
    this.#runs.set(entry.name, run);
    return run;
  }

  async #begin(run: Run): Promise<void> {
    if (this.#isClosed) return this.#set(run, "stopped", null);
    const { clock, log } = this.#options;
    const { name, config } = run.entry;
    const definition = this.#options.known.find((worker) => worker.name === name);
    if (!definition) throw new EngineError("NOT_FOUND", `There is no built-in worker ${name}`);
    const began = clock.now();
    run.launch++;
    this.#set(run, "starting", null); // Without the reason of the start before.
    run.startedAtMs = clock.wall();
    const stack = new AsyncDisposableStack();
    try {
      const worker = this.#connect(definition);
      stack.defer(() => worker.shutdown());
      stack.use(await definition.start(worker, config, this.#hostFor(run, stack)));
      run.stack = stack;
      this.#set(run, "ready", definition.summary);
      run.readyAfterMs = Math.round(clock.now() - began);
      log.debug("built-in worker ready", { worker: name });
    } catch (thrown) {
      await stack.disposeAsync();
      const { code, message } = describeThrown(thrown);
      this.#set(run, "failed", message);
      run.lastError = message;
      run.startedAtMs = null;
      run.endpoints = [];
      log.error("built-in worker failed to start", { worker: name, code, reason: message });
    }
  }

  async #end(run: Run): Promise<void> {
    const { stack, entry: { name } } = run;
    run.stack = null;
    if (stack) {
      this.#set(run, "stopping", run.reason);
      await stack.disposeAsync().catch((thrown: unknown) => {
        this.#options.log.error("built-in worker failed to stop", {
          worker: name,
          reason: describeThrown(thrown).message,
        });
      });
    }
    this.#set(run, "stopped", null);
    run.startedAtMs = null;
    run.endpoints = [];
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

  #hostFor(run: Run, stack: AsyncDisposableStack): EngineHost {
    const ending = new AbortController();
    stack.defer(() => ending.abort());
    return {
      ...this.#options.host,
      signal: ending.signal,
      serves: (endpoint) => void run.endpoints.push(endpoint),
    };
  }
}
