/**
 * A supervisor on a fake clock with a fake launcher, and directories for its workers.
 *
 * @module
 */
import { Supervisor, type SupervisorOptions } from "../../engine/supervisor/supervisor.ts";
import type { Usage } from "../../engine/process/usage.ts";
import type { WorkerChange, WorkerWatchOptions } from "../../engine/watch/worker_watch.ts";
import type { DirectoryEntry } from "../../engine/ports/config.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { WorkerState, WorkerStatus } from "../../engine/ports/supervision.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeDirectory } from "./fake_directory.ts";
import { FakeLauncher, type FakeProgram } from "./fake_launcher.ts";
import { FakeTraffic } from "./fake_traffic.ts";
import { PATIENCE_MS } from "./until.ts";

const MANIFEST = "runtime: { kind: javascript, package_manager: npm }\nscripts: { start: run }\n";

/** Everything that the tests of supervision touch. */
export interface Supervised extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly launcher: FakeLauncher;
  readonly directory: FakeDirectory;
  readonly traffic: FakeTraffic;
  /** What programs are said to use, by process id; nothing is known of others. */
  readonly usages: Map<number, Usage>;
  readonly supervisor: Supervisor;
  /** What the supervisor asked to watch and still watches. */
  readonly watches: Set<WorkerWatchOptions>;
  /** Lines of the log, such as `info worker ready`. */
  readonly lines: string[];
  /** Programs of a worker that run, the oldest first. */
  running(name: string): FakeProgram[];
  /** Makes a worker's directory and gives its entry. */
  entry(name: string, manifest?: string): Promise<DirectoryEntry>;
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>;
  /** Settles until a worker is in a state; fails after a generous time. */
  reaches(name: string, state: WorkerState): Promise<WorkerStatus>;
  /** Settles until something holds of a worker; fails after a generous time. */
  until(name: string, holds: (status: WorkerStatus) => boolean): Promise<WorkerStatus>;
  /** Settles until so many programs of a worker have been started; gives the newest. */
  started(name: string, times: number): Promise<FakeProgram>;
  /**
   * A program that runs announces itself with one function and is ready: the newest that has no
   * line, or this one.
   */
  announce(name: string, program?: FakeProgram): Promise<void>;
  /** The line of a program ends. */
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

/** What tests do with it. */
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
  const lineOf = ({ pid }: FakeProgram): string => `line-${pid}`;
  const hangUp = (program: FakeProgram): void => {
    const worker_id = lineOf(program);
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
          Promise.resolve(running(name).findLast((it) => !directory.worker(lineOf(it))))
        );
      await until(name, ({ replicas }) => replicas.some(({ pid }) => pid === newest.pid));
      const { pid, spec } = newest;
      const worker_id = lineOf(newest);
      const launch_id = spec.env.ENGINE_LAUNCH_ID!;
      directory.offer(worker_id, `${name}::run`);
      void newest.ended.then(() => hangUp(newest));
      supervisor.onEvent({ type: "worker_announced", worker_id, name, pid, launch_id });
      clock.tick(100);
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
