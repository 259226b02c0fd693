/**
 * A real router with real workers on local connections: all of an engine but sockets, processes
 * and files. With {@linkcode observe}, `engine-observability` runs on it.
 *
 * @module
 */
import { ChannelTable } from "../../engine/channels/channel_table.ts";
import { Router } from "../../engine/core/router.ts";
import { createSchemas } from "../../engine/platform/schema_check.ts";
import { LocalKeeping } from "../../engine/platform/keeping.ts";
import { socketBounds } from "../../engine/platform/descriptors.ts";
import type { Clock } from "../../engine/ports/clock.ts";
import type { ConfigValue } from "../../engine/ports/config.ts";
import type {
  Accept,
  PageAnswer,
  PageRequest,
  Refusal,
  Upgrade,
} from "../../engine/ports/connection.ts";
import type { EngineEvent, EventListener } from "../../engine/ports/events.ts";
import type { EngineLogLine } from "../../engine/ports/log.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import type { Store } from "../../engine/ports/store.ts";
import type { Endpoint, Supervision } from "../../engine/ports/supervision.ts";
import type { Turns } from "../../engine/ports/turns.ts";
import type { PrintedLine, TelemetryFrame } from "../../engine/ports/telemetry.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { localDial } from "../../engine/transport/local_connection.ts";
import { TickBudget } from "../../engine/transport/tick_budget.ts";
import { RawWebSockets } from "../../engine/transport/web_sockets.ts";
import type { CallRequest, WorkerOptions } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { registerWorker } from "../../sdk/typescript/register_worker.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../../workers/kit/define.ts";
import { observability } from "../../workers/observability/mod.ts";
import { FakeClock } from "./fake_clock.ts";
import { type LogLine, recordingLog } from "./fake_http.ts";

/** Parts that a test provides to its built-in workers. */
export interface LocalEngineOptions {
  /** Default: a {@linkcode FakeClock}. */
  readonly clock?: Clock;
  readonly store?: Store;
  /** Default: unlimited. */
  readonly memory?: MemoryBudget;
  readonly supervision?: Supervision;
  /** Default: none. */
  readonly configuration?: readonly ConfigValue[];
  /** Default: it is alone. */
  readonly engines?: EngineHost["engines"];
  /** Default: nothing is known of functions that are not there. */
  readonly absenceOf?: EngineHost["absenceOf"];
}

/** Work is done when it is queued. */
const AT_ONCE: Turns = {
  queue(work) {
    while (work.work());
  },
  isSpent: () => false,
};

/** A path of the worker port that a built-in worker serves. */
export interface LocalSockets {
  readonly open: boolean;
  accept(upgrade: Upgrade): Refusal | Accept;
}

/** What answers a page, as a built-in gave it. */
export interface LocalPage {
  readonly open: boolean;
  answer(request: PageRequest): PageAnswer | Promise<PageAnswer>;
}

/** An engine for one test. */
export class LocalEngine implements AsyncDisposable {
  /** Aborted by a test as an engine does that begins to stop. */
  readonly draining = new AbortController();
  readonly clock: Clock;
  readonly router: Router;
  /** Lines that built-in workers logged. */
  readonly lines: LogLine[] = [];
  /** Endpoints that they serve. */
  readonly endpoints: Endpoint[] = [];
  /** Pages they offer on the worker port, by path. */
  readonly pages: Map<string, LocalPage> = new Map();
  /** Paths of the worker port that built-in workers serve. */
  readonly sockets: Map<string, LocalSockets> = new Map();
  /** Traces and meters of the router; records nothing before it is configured. */
  readonly recorder: CallRecorder;
  /** The channels; nothing connects to them unless the test does. */
  readonly channels: ChannelTable;
  readonly #options: LocalEngineOptions;
  readonly #listeners = new Set<EventListener>();
  readonly #telemetry = new Set<(frame: TelemetryFrame) => void>();
  readonly #printed = new Set<(line: PrintedLine) => void>();
  readonly #logged = new Set<(line: EngineLogLine) => void>();
  readonly #stack = new AsyncDisposableStack();

  constructor(options: LocalEngineOptions = {}) {
    this.#options = options;
    this.clock = options.clock ?? new FakeClock();
    this.recorder = new CallRecorder({ clock: this.clock });
    const memory = options.memory ?? UNLIMITED_MEMORY;
    this.channels = new ChannelTable({ clock: this.clock, memory });
    this.router = new Router({
      observer: this.recorder,
      telemetry: (frame) => this.deliver(frame),
      clock: this.clock,
      schemas: { compile: () => () => [] },
      newId: () => crypto.randomUUID(),
      report: (event: EngineEvent) => this.report(event),
      memory,
      settings: {
        invocation_timeout_ms: 600_000,
        validate_payloads: true,
        max_inflight_calls_per_worker: 10_000,
        max_inflight_bytes_per_worker: 256 * 1024 * 1024,
      },
    });
  }

  /** Connects a worker as if it came from outside; it is up when this resolves. */
  async connect(workerName: string, options: WorkerOptions = {}): Promise<Worker> {
    const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
    const dial = localDial({ open: (line) => this.router.open(line, peer) }, workerName);
    return await this.#up({ workerName, dial, ...options });
  }

  /** Starts a built-in worker; call the result to end it. */
  async start<Config>(
    definition: BuiltinWorker<Config>,
    config?: unknown,
  ): Promise<() => Promise<void>> {
    const stack = this.#stack.use(new AsyncDisposableStack());
    const { name } = definition;
    const worker = await this.#up({ workerName: name, dial: localDial(this.router, name) }, stack);
    const ending = new AbortController();
    const host = this.#hostFor(ending.signal);
    stack.use(await definition.start(worker, definition.parse(config), host));
    stack.defer(() => ending.abort());
    await this.settle();
    return () => stack.disposeAsync();
  }

  /** Reports an event to all listeners. */
  report(event: EngineEvent): void {
    this.#listeners.forEach((listen) => listen(event));
  }

  /** Delivers a telemetry frame. */
  deliver(frame: TelemetryFrame): void {
    this.#telemetry.forEach((listen) => listen(frame));
  }

  /** A supervised worker prints a line. */
  print(line: PrintedLine): void {
    this.#printed.forEach((listen) => listen(line));
  }

  /** The engine logs a line of its own. */
  log(line: EngineLogLine): void {
    this.#logged.forEach((listen) => listen(line));
  }

  /** Runs all pending microtasks. */
  async settle(): Promise<void> {
    for (let i = 0; i < 200; i++) await Promise.resolve();
  }

  /** Ends all workers, the last first. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    this.channels.close();
    this.router.close();
  }

  async #up(options: WorkerOptions, stack = this.#stack): Promise<Worker> {
    const worker = registerWorker("ws://local", {
      clock: this.clock,
      onError: ({ code, message }) => {
        this.lines.push({ level: "sdk", text: message, fields: { code } });
      },
      ...options,
    });
    stack.use(worker);
    await this.settle();
    return worker;
  }

  #hostFor(signal: AbortSignal): EngineHost {
    const { memory, store, supervision, engines, absenceOf } = this.#options;
    return {
      clock: this.clock,
      log: recordingLog(this.lines),
      socketBounds: socketBounds(20_000),
      draining: this.draining.signal,
      delayStop() {},
      signal,
      serves: (endpoint) => void this.endpoints.push(endpoint),
      store: store ?? missing("store"),
      schemas: createSchemas(),
      memory: memory ?? UNLIMITED_MEMORY,
      channels: this.channels,
      webSockets: new RawWebSockets({
        ticks: new TickBudget(),
        memory: memory ?? UNLIMITED_MEMORY,
      }),
      directory: this.router.directory,
      absenceOf: absenceOf ?? (() => undefined),
      turns: AT_ONCE,
      firings: this.router.firings,
      keeping: new LocalKeeping({ clock: this.clock, log: recordingLog(this.lines) }),
      engines,
      supervision: supervision ?? missing("supervision"),
      onEvent: (listener) => joined(this.#listeners, listener),
      traces: this.recorder,
      meters: this.recorder,
      onTelemetry: (listener) => joined(this.#telemetry, listener),
      onPrint: (listener) => joined(this.#printed, listener),
      onEngineLog: (listener) => joined(this.#logged, listener),
      servePage: (path, answer, { open = false } = {}) => {
        if (this.pages.has(path)) throw new Error(`${path} is taken`);
        this.pages.set(path, { open, answer });
        return () => void this.pages.delete(path);
      },
      serveSockets: (path, accept, { open = false } = {}) => {
        if (this.sockets.has(path)) throw new Error(`${path} is taken`);
        this.sockets.set(path, { open, accept });
        return () => void this.sockets.delete(path);
      },
      configuration: () => this.#options.configuration ?? [],
    };
  }
}

function joined<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Stands in for a part that the test did not provide; throws when it is used. */
function missing<T extends object>(name: string): T {
  return new Proxy({} as T, {
    get: () => {
      throw new Error(`this test provides no ${name}`);
    },
  });
}

/** An engine for one test. */
export interface Observed extends AsyncDisposable {
  readonly local: LocalEngine;
  readonly clock: FakeClock;
  /** Calls, and offers what a test wants. */
  readonly worker: Worker;
  /** An operator, as the command line is: sees payloads. */
  readonly operator: Worker;
  /** Calls a function of the engine; returns the result. */
  ask(function_id: string, payload?: Json): Promise<Record<string, Json>>;
  /** The same as an operator. */
  askAsOperator(function_id: string, payload?: Json): Promise<Record<string, Json>>;
  /** Moves the clock and runs all pending microtasks. */
  pass(ms: number): Promise<void>;
  /** Ends `engine-observability`, such as to start it with another configuration. */
  stop(): Promise<void>;
}

/** Starts an engine; `dataDirectory`: the directory of telemetry on disk. */
export async function observe(
  config: Json = {},
  dataDirectory = "/nowhere",
  memory: MemoryBudget = UNLIMITED_MEMORY,
): Promise<Observed> {
  const clock = new FakeClock();
  const supervision = {
    info: () => ({ data_directory: dataDirectory }),
    list: () => Promise.resolve([]),
  } as unknown as Supervision;
  const local = new LocalEngine({ clock, memory, store: new MemoryStore(), supervision });
  const stop = await local.start(observability, config);
  const worker = await local.connect("shop");
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null, operator: true };
  const dial = localDial({ open: (line) => local.router.open(line, peer) }, "operator");
  const operator = await local.connect("operator", { dial });
  const askBy = (by: Worker) => async (function_id: string, payload: Json = {}) => {
    const answer = by.trigger<Json, Record<string, Json>>({ function_id, payload });
    answer.catch(() => {}); // The caller awaits it below.
    await local.settle();
    return await answer;
  };
  return {
    local,
    clock,
    worker,
    operator,
    ask: askBy(worker),
    askAsOperator: askBy(operator),
    stop,
    pass: async (ms) => {
      clock.tick(ms);
      await local.settle();
    },
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

/** Calls a function; returns the result or the error. */
export async function outcome(worker: Worker, request: CallRequest<Json>): Promise<unknown> {
  return await worker.trigger<Json, Json>(request).catch((thrown) => thrown);
}
