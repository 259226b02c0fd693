/**
 * A supervisor on a fake clock, with its surroundings as fakes: launcher, traffic, directory.
 *
 * @module
 */
import type { DirectoryEntry } from "../../engine/ports/config.ts";
import type {
  Directory,
  FunctionFilter,
  FunctionView,
  TriggerTypeView,
  TriggerView,
  WorkerView,
} from "../../engine/ports/directory.ts";
import type {
  Ended,
  Launcher,
  LaunchSpec,
  OutputChunk,
  OutputLine,
  Running,
  StopProgram,
} from "../../engine/ports/launcher.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { WorkerState, WorkerStatus } from "../../engine/ports/supervision.ts";
import type { DrainOptions, Handover, Traffic } from "../../engine/ports/traffic.ts";
import type { Usage } from "../../engine/process/usage.ts";
import { Supervisor, type SupervisorOptions } from "../../engine/supervisor/supervisor.ts";
import type { WorkerChange, WorkerWatchOptions } from "../../engine/watch/worker_watch.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "./fake_clock.ts";
import { PATIENCE_MS } from "./until.ts";

const MANIFEST = "runtime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\n";
/** The manifest of a worker that ends before its new version starts. */
export const STOP_FIRST = `${MANIFEST}reload: stop-first\n`;

/** A supervisor and its fakes. */
export interface Supervised extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly launcher: FakeLauncher;
  readonly directory: FakeDirectory;
  readonly traffic: FakeTraffic;
  /** What programs are said to use, by process id; nothing is known of others. */
  readonly usages: Map<number, Usage>;
  readonly supervisor: Supervisor;
  /** The open watches of the supervisor. */
  readonly watches: Set<WorkerWatchOptions>;
  /** Lines of the log, such as `info worker ready`. */
  readonly lines: string[];
  /** Programs of a worker that run, the oldest first. */
  running(name: string): FakeProgram[];
  /** Makes a worker's directory and gives its entry. */
  entry(name: string, manifest?: string): Promise<DirectoryEntry>;
  /** Runs all pending work that needs no time. */
  settle(): Promise<void>;
  /** Settles until a worker is in a state; fails after a generous time. */
  reaches(name: string, state: WorkerState): Promise<WorkerStatus>;
  /** Settles until something holds of a worker; fails after a generous time. */
  until(name: string, holds: (status: WorkerStatus) => boolean): Promise<WorkerStatus>;
  /** Settles until so many programs of a worker have been started; gives the newest. */
  started(name: string, times: number): Promise<FakeProgram>;
  /**
   * A program that runs announces itself with one function and is ready: the newest that has no
   * connection, or this one.
   */
  announce(name: string, program?: FakeProgram): Promise<void>;
  /** The connection of a program is lost. */
  hangUp(program: FakeProgram): void;
  /** An edit of files of a worker, as its watch reports it. */
  edit(name: string, change?: Partial<WorkerChange>): void;
}

/** Starts with no workers; `overrides` replace what the supervisor works with. */
export async function supervised(
  overrides: Partial<SupervisorOptions> = {},
): Promise<Supervised> {
  const root = await Deno.makeTempDir();
  const clock = new FakeClock();
  const launcher = new FakeLauncher();
  const directory = new FakeDirectory();
  const traffic = new FakeTraffic();
  const usages = new Map<number, Usage>();
  const watches = new Set<WorkerWatchOptions>();
  const lines: string[] = [];
  let launches = 0;
  const supervisor = new Supervisor({
    clock,
    launchers: { process: launcher },
    log: recordingLog(lines),
    dataDirectory: `${root}/.engine`,
    engineUrl: () => "ws://127.0.0.1:1",
    directory,
    traffic,
    usageMeter: { measure: () => Promise.resolve(usages) },
    platform: "darwin",
    newId: () => `launch-${++launches}`,
    watch: (options) => {
      watches.add(options);
      return { [Symbol.dispose]: () => void watches.delete(options) };
    },
    ...overrides,
  });
  const there = { clock, launcher, directory, traffic, usages, supervisor, watches, lines };
  return { ...there, ...stepsOf(there, root) };
}

/** The actions of tests. */
function stepsOf(
  there: Pick<Supervised, "clock" | "launcher" | "directory" | "supervisor" | "watches">,
  root: string,
) {
  const { clock, launcher, directory, supervisor, watches } = there;
  const settle = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
  const patiently = async <Found>(look: () => Promise<Found | undefined>): Promise<Found> => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end;) {
      const found = await look();
      if (found !== undefined) return found;
      await settle();
    }
    const all = (await supervisor.list()).map(({ name, state, reason }) => [name, state, reason]);
    throw new Error(`It did not come: ${JSON.stringify(all)}`);
  };
  const until: Supervised["until"] = (name, holds) =>
    patiently(async () => {
      const status = await supervisor.status(name);
      return holds(status) ? status : undefined;
    });
  const all = (name: string): FakeProgram[] =>
    launcher.programs.filter(({ spec }) => spec.name.split("@")[0] === name);
  const running = (name: string): FakeProgram[] => all(name).filter((it) => it.isRunning);
  const connectionOf = ({ pid }: FakeProgram): string => `connection-${pid}`;
  const hangUp = (program: FakeProgram): void => {
    const worker_id = connectionOf(program);
    directory.leave(worker_id);
    supervisor.onEvent({ type: "worker_disconnected", worker_id, name: null, reason: "cut" });
  };
  return {
    settle,
    until,
    running,
    hangUp,
    reaches: (name: string, state: WorkerState) => until(name, (it) => it.state === state),
    started: (name: string, times: number) =>
      patiently(() => {
        const programs = all(name);
        return Promise.resolve(programs.length >= times ? programs[times - 1] : undefined);
      }),
    async announce(name: string, program?: FakeProgram) {
      const newest = program ??
        await patiently(() =>
          Promise.resolve(running(name).findLast((it) => !directory.worker(connectionOf(it))))
        );
      // The first program is shown; one that starts beside another is not before it is ready.
      if (all(name).length > 1) await settle();
      else await until(name, ({ replicas }) => replicas.some(({ pid }) => pid === newest.pid));
      const { pid, spec } = newest;
      const worker_id = connectionOf(newest);
      const launch_id = spec.env.ENGINE_LAUNCH_ID!;
      directory.offer(worker_id, `${name}::run`);
      void newest.ended.then(() => hangUp(newest));
      supervisor.onEvent({ type: "worker_announced", worker_id, name, pid, launch_id });
      clock.tick(100);
      await settle();
    },
    async entry(name: string, manifest = MANIFEST): Promise<DirectoryEntry> {
      const path = `${root}/${name}`;
      await Deno.mkdir(path, { recursive: true });
      await Deno.writeTextFile(`${path}/engine.worker.yaml`, `name: ${name}\n${manifest}`);
      return { kind: "directory", name, path, env: {} };
    },
    edit(name: string, change: Partial<WorkerChange> = {}) {
      const watch = [...watches].find((options) => options.directory === `${root}/${name}`);
      const changedAtMs = clock.wall();
      watch!.onChange({ paths: ["main.js"], changedAtMs, ...change });
    },
    async [Symbol.asyncDispose]() {
      await supervisor.close();
      await Deno.remove(root, { recursive: true });
    },
  };
}

function recordingLog(lines: string[]): Log {
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** A command beside a program, in the hands of a test. */
export interface FakeCommand {
  readonly command: readonly string[];
  readonly output: (chunk: OutputChunk) => void;
  readonly signal: AbortSignal;
  end(ended: Ended): void;
}

/** A program that a {@linkcode FakeLauncher} was asked to start. */
export class FakeProgram implements Running {
  readonly pid: number;
  readonly spec: LaunchSpec;
  readonly ended: Promise<Ended>;
  readonly accelerator = null;
  /** Whether it runs still. */
  isRunning = true;
  /** Whether stop() said that the same worker starts again at once. */
  isKept = false;
  /** Commands that were run beside it. */
  readonly commands: FakeCommand[] = [];
  /** Times that stop() was called with, in order. */
  readonly stops: number[] = [];
  /** Whether stop() ends it at once; else the test does. */
  leavesWhenAsked = true;
  readonly #end: (ended: Ended) => void;
  readonly #output: (line: OutputLine) => void;

  /** Runs until exit() or kill(). */
  constructor(pid: number, spec: LaunchSpec, output: (line: OutputLine) => void) {
    this.pid = pid;
    this.spec = spec;
    this.#output = output;
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.ended = promise;
    this.#end = (ended) => {
      this.isRunning = false;
      resolve(ended);
    };
  }

  /** Prints a line. */
  print(text: string): void {
    this.#output({ stream: "stdout", text });
  }

  /** Ends by itself. */
  exit(code: number): void {
    this.#end({ code, signal: null });
  }

  stop(graceMs: number, { keep = false }: StopProgram = {}): Promise<Ended> {
    this.stops.push(graceMs);
    this.isKept = keep;
    if (this.leavesWhenAsked) this.#end({ code: null, signal: "SIGTERM" });
    return this.ended;
  }

  exec(
    command: readonly string[],
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.commands.push({ command, output, signal, end: resolve });
    const stop = (): void => resolve({ code: null, signal: "SIGTERM" });
    signal.addEventListener("abort", stop, { once: true });
    return promise;
  }
}

/** A {@linkcode Launcher} whose programs are in the hands of a test. */
export class FakeLauncher implements Launcher {
  readonly isolation = "process";
  /** All that were started, in order. */
  readonly programs: FakeProgram[] = [];
  /** Called with every program when it starts. */
  onStart: (program: FakeProgram) => void = () => {};
  /** While set, nothing can be started and this is why. */
  failure: string | undefined;
  /** Whether close() was called. */
  isClosed = false;

  /** The program that was started last. */
  get last(): FakeProgram {
    return this.programs.at(-1)!;
  }

  start(spec: LaunchSpec, output: (line: OutputLine) => void): Promise<Running> {
    if (this.failure !== undefined) {
      return Promise.reject(new EngineError("launch_failed", this.failure));
    }
    const program = new FakeProgram(100 + this.programs.length, spec, output);
    this.programs.push(program);
    this.onStart(program);
    return Promise.resolve(program);
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

/** A {@linkcode Handover} in the hands of a test. */
export class FakeHandover implements Handover {
  readonly worker_ids: readonly string[];
  readonly isComingBack: boolean;
  runningCalls: number;
  /** Whether end() was called. */
  isOver = false;

  /** Drains these connections, which run `runningCalls` calls. */
  constructor(worker_ids: readonly string[], isComingBack: boolean, runningCalls: number) {
    this.worker_ids = worker_ids;
    this.isComingBack = isComingBack;
    this.runningCalls = runningCalls;
  }

  end(): void {
    this.isOver = true;
  }
}

/** A {@linkcode Traffic} that records its drains. */
export class FakeTraffic implements Traffic {
  /** All handovers, in order. */
  readonly handovers: FakeHandover[] = [];
  /** Calls that run when a drain begins. */
  runningCalls = 0;

  drain(worker_ids: readonly string[], { isComingBack }: DrainOptions): Handover {
    const handover = new FakeHandover(worker_ids, isComingBack, this.runningCalls);
    this.handovers.push(handover);
    return handover;
  }
}

/** A {@linkcode Directory} without a router. */
export class FakeDirectory implements Directory {
  /** See {@linkcode Directory.visibleTo}. */
  filter: FunctionFilter | undefined;
  readonly #offers = new Map<string, readonly string[]>();
  /** Ids of connections that do not answer. */
  readonly suspects = new Set<string>();

  /** Sets the functions that a worker offers. */
  offer(workerId: string, ...functionIds: string[]): void {
    this.#offers.set(workerId, functionIds);
  }

  /** Removes a worker. */
  leave(workerId: string): void {
    this.#offers.delete(workerId);
  }

  builtinFunctions(): FunctionView[] {
    return this.functions().filter(({ builtin }) => builtin);
  }

  functions(): FunctionView[] {
    const ids = new Set([...this.#offers.values()].flat());
    return [...ids].map((function_id) => {
      const worker_ids = [...this.#offers.keys()]
        .filter((id) => this.#offers.get(id)!.includes(function_id));
      return {
        function_id,
        namespace: "default",
        worker_id: worker_ids.at(-1)!,
        worker_name: "fake",
        internal: false,
        builtin: false,
        worker_ids,
      };
    });
  }

  function(_namespace: string, function_id: string): FunctionView | undefined {
    return this.functions().find((view) => view.function_id === function_id);
  }

  functionsAfter(after: string): FunctionView[] {
    return this.functions().filter(({ function_id }) => function_id > after)
      .sort((a, b) => a.function_id < b.function_id ? -1 : 1);
  }

  functionsMark(): string {
    return this.functions().map(({ function_id }) => function_id).sort().join();
  }

  isInternal(): boolean {
    return false;
  }

  visibleTo(): FunctionFilter | undefined {
    return this.filter;
  }

  functionsOf(worker_id: string): FunctionView[] {
    return this.functions().filter(({ worker_ids }) => worker_ids.includes(worker_id));
  }

  triggerTypes(): TriggerTypeView[] {
    return [];
  }

  triggerType(): TriggerTypeView | undefined {
    return undefined;
  }

  triggers(): TriggerView[] {
    return [];
  }

  trigger(): TriggerView | undefined {
    return undefined;
  }

  workers(): WorkerView[] {
    return [...this.#offers.keys()].map((id) => this.worker(id)!);
  }

  worker(id: string): WorkerView | undefined {
    const offered = this.#offers.get(id);
    if (!offered) return undefined;
    return {
      id,
      name: "fake",
      namespace: null,
      description: null,
      version: null,
      runtime: null,
      os: null,
      pid: null,
      isolation: null,
      launch_id: null,
      status: "connected",
      suspect: this.suspects.has(id),
      announced: true,
      builtin: false,
      operator: false,
      function_count: offered.length,
      trigger_count: 0,
      connected_at_ms: 0,
      active_invocations: 0,
      queued_bytes: 0,
      ip_address: null,
    };
  }
}
