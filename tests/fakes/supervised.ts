/**
 * A supervisor on a fake clock with a fake launcher, and directories for its workers.
 *
 * @module
 */
import { Supervisor } from "../../engine/launch/supervisor.ts";
import type { WorkerChange, WorkerWatchOptions } from "../../engine/launch/worker_watch.ts";
import type { DirectoryEntry } from "../../engine/ports/config.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { WorkerState } from "../../engine/ports/supervision.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeDirectory } from "./fake_directory.ts";
import { FakeLauncher } from "./fake_launcher.ts";

const MANIFEST = "runtime: { kind: javascript, package_manager: npm }\nscripts: { start: run }\n";

/** Everything that the tests of supervision touch. */
export interface Supervised extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly launcher: FakeLauncher;
  readonly directory: FakeDirectory;
  readonly supervisor: Supervisor;
  /** What the supervisor asked to watch and still watches. */
  readonly watches: Set<WorkerWatchOptions>;
  /** Lines of the log, such as `info worker ready`. */
  readonly lines: string[];
  /** Makes a worker's directory and gives its entry. */
  entry(name: string, manifest?: string): Promise<DirectoryEntry>;
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>;
  /** Settles until a worker is in a state; fails after a generous time. */
  reaches(name: string, state: WorkerState): Promise<void>;
  /** The newest launch of a worker announces itself with one function and is ready. */
  announce(name: string): Promise<void>;
  /** An edit of files of a worker, as its watch reports it. */
  edit(name: string, change?: Partial<WorkerChange>): void;
}

/** Starts with no workers. */
export async function supervised(): Promise<Supervised> {
  const root = await Deno.makeTempDir();
  const clock = new FakeClock();
  const launcher = new FakeLauncher();
  const directory = new FakeDirectory();
  const watches = new Set<WorkerWatchOptions>();
  const lines: string[] = [];
  const supervisor = new Supervisor({
    clock,
    launchers: { process: launcher },
    log: recordingLog(lines),
    dataDirectory: `${root}/.engine`,
    engineUrl: () => "ws://127.0.0.1:1",
    directory,
    platform: "darwin",
    newId: () => `launch-${launcher.programs.length + 1}`,
    watch: (options) => {
      watches.add(options);
      return { [Symbol.dispose]: () => void watches.delete(options) };
    },
  });
  const settle = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
  const reaches = async (name: string, state: WorkerState): Promise<void> => {
    for (let i = 0; i < 2_000; i++) {
      if (supervisor.status(name).state === state) return;
      await settle();
    }
    throw new Error(`${name} is ${supervisor.status(name).state}, not ${state}`);
  };
  const there: Supervised = {
    clock,
    launcher,
    directory,
    supervisor,
    watches,
    lines,
    settle,
    reaches,
    async entry(name, manifest = MANIFEST) {
      const path = `${root}/${name}`;
      await Deno.mkdir(path, { recursive: true });
      await Deno.writeTextFile(`${path}/engine.worker.yaml`, `name: ${name}\n${manifest}`);
      return { kind: "directory", name, path, env: {} };
    },
    async announce(name) {
      await reaches(name, "starting");
      while (supervisor.status(name).pid === null) await settle();
      const { pid, spec } = launcher.programs.findLast((program) => program.spec.name === name)!;
      const worker_id = `line-${pid}`;
      const launch_id = spec.env.ENGINE_LAUNCH_ID!;
      directory.offer(worker_id, `${name}::run`);
      supervisor.onEvent({ type: "worker_announced", worker_id, name, pid, launch_id });
      clock.tick(100);
    },
    edit(name, change = {}) {
      const watch = [...watches].find((options) => options.directory === `${root}/${name}`);
      const changedAtMs = clock.wall();
      watch!.onChange({ paths: ["main.js"], dependencies: false, changedAtMs, ...change });
    },
    async [Symbol.asyncDispose]() {
      await supervisor.close();
      await Deno.remove(root, { recursive: true });
    },
  };
  return there;
}

function recordingLog(lines: string[]): Log {
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
