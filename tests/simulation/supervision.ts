/**
 * A random world for the supervisor: programs that
 * crash, hang, never announce themselves or exit late, preparations that fail, lost connections.
 *
 * Forbidden actions of the supervisor are detected at once.
 *
 * @module
 */
import { Supervisor } from "../../engine/supervisor/supervisor.ts";
import type { Prepared, PrepareOptions } from "../../engine/install/prepare.ts";
import type { WorkerWatchOptions } from "../../engine/watch/worker_watch.ts";
import type { DirectoryEntry } from "../../engine/ports/config.ts";
import type { Ended, Launcher, LaunchSpec, Running } from "../../engine/ports/launcher.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../fakes/fake_clock.ts";
import { FakeDirectory, FakeTraffic } from "../fakes/fake_supervision.ts";
import type { Random } from "../fakes/random.ts";

/** Workers whose new versions start after the old ones have ended. */
export const STOP_FIRST: readonly string[] = ["c", "d"];

function name(spec: LaunchSpec): string {
  return spec.name.split("@")[0]!;
}

/** A program of the world. */
class SimProgram implements Running {
  readonly accelerator = null;
  readonly ended: Promise<Ended>;
  readonly pid: number;
  readonly spec: LaunchSpec;
  isRunning = true;
  /** Its connection is there and announced. */
  isAnnounced = false;
  isAsked = false;
  readonly #world: SimSupervision;
  readonly #end: (ended: Ended) => void;

  constructor(pid: number, spec: LaunchSpec, world: SimSupervision) {
    this.pid = pid;
    this.spec = spec;
    this.#world = world;
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.ended = promise;
    this.#end = resolve;
  }

  get worker_id(): string {
    return `connection-${this.pid}`;
  }

  get worker(): string {
    return name(this.spec);
  }

  stop(): Promise<Ended> {
    this.isAsked = true;
    if (this.#world.isCalm || this.#world.random.once(2)) this.exit(null);
    return this.ended;
  }

  exit(code: number | null): void {
    if (!this.isRunning) return;
    this.isRunning = false;
    this.hangUp();
    this.#end({ code, signal: code === null ? "SIGTERM" : null });
  }

  announce(): void {
    if (!this.isRunning || this.isAnnounced) return;
    this.isAnnounced = true;
    const { worker_id, pid, worker: name } = this;
    const launch_id = this.spec.env.ENGINE_LAUNCH_ID!;
    this.#world.directory.offer(worker_id, `${name}::run`);
    this.#world.supervisor.onEvent({ type: "worker_announced", worker_id, name, pid, launch_id });
  }

  hangUp(): void {
    if (!this.isAnnounced) return;
    this.isAnnounced = false;
    this.#world.directory.leave(this.worker_id);
    const { worker_id, worker: name } = this;
    const reason = "cut";
    this.#world.supervisor.onEvent({ type: "worker_disconnected", worker_id, name, reason });
  }

  exec(): Promise<Ended> {
    return this.ended;
  }
}

/** Supervisor and surroundings. */
export class SimSupervision implements AsyncDisposable {
  readonly random: Random;
  readonly clock = new FakeClock();
  readonly directory = new FakeDirectory();
  readonly traffic = new FakeTraffic();
  readonly supervisor: Supervisor;
  readonly programs: SimProgram[] = [];
  /** The list that was applied last. */
  readonly listed = new Map<string, DirectoryEntry>();
  /** Whether the user wants a listed worker to run. */
  readonly desired = new Map<string, boolean>();
  /** Forbidden actions of the supervisor. */
  readonly violations: string[] = [];
  /** From now on programs and preparations succeed. */
  isCalm = false;
  readonly #root: string;
  readonly #watches = new Set<WorkerWatchOptions>();
  /** Pending starts and preparations; call one to continue it. */
  readonly #pending = new Set<() => void>();
  readonly #preparing = new Set<string>();
  #level = 0;

  /** `root` holds a directory with a manifest for each of the workers. */
  constructor(root: string, random: Random) {
    this.#root = root;
    this.random = random;
    const quiet = (): void => {};
    let launches = 0;
    this.supervisor = new Supervisor({
      clock: this.clock,
      directory: this.directory,
      traffic: this.traffic,
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      launchers: { process: this.#launcher() },
      prepare: (_tools, options) => this.#prepare(options),
      usageMeter: { measure: () => Promise.resolve(new Map()) },
      dataDirectory: root,
      engineUrl: () => "ws://127.0.0.1:1",
      platform: "darwin",
      newId: () => `launch-${++launches}`,
      watch: (options) => {
        this.#watches.add(options);
        return { [Symbol.dispose]: () => void this.#watches.delete(options) };
      },
    });
  }

  /** Programs of a worker that run. */
  running(name: string): SimProgram[] {
    return this.programs.filter((program) => program.isRunning && program.worker === name);
  }

  /** Runs all pending microtasks. */
  async settle(): Promise<void> {
    for (let i = 0; i < 60; i++) await Promise.resolve();
  }

  /** Lists a worker, anew or with another entry. */
  list(name: string, replicas: number, isEdited: boolean): void {
    const before = this.listed.get(name);
    if (isEdited || !before) this.#level++;
    const env = isEdited || !before ? { LEVEL: `${this.#level}` } : before.env;
    const path = `${this.#root}/${name}`;
    this.listed.set(name, { kind: "directory", name, path, env, replicas });
    if (!before) this.desired.set(name, true);
    this.supervisor.apply([...this.listed.values()]);
  }

  /** Removes a worker from the list. */
  remove(name: string): void {
    this.listed.delete(name);
    this.desired.delete(name);
    this.supervisor.apply([...this.listed.values()]);
  }

  /** A file of a worker is saved. */
  edit(name: string): void {
    const path = `${this.#root}/${name}`;
    const watch = [...this.#watches].find(({ directory }) => directory === path);
    const changedAtMs = this.clock.wall();
    watch?.onChange({ paths: ["main.js"], changedAtMs });
  }

  /** One pending start or preparation continues. */
  proceed(): void {
    const all = [...this.#pending];
    if (all.length > 0) this.random.pick(all)();
  }

  /**
   * All pending work continues, programs announce themselves, time passes; `look` is
   * called again and again.
   */
  async calmDown(look: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    this.isCalm = true;
    for (let i = 0; i < 400; i++) {
      await this.settle();
      await look();
      for (const go of [...this.#pending]) go();
      for (const handover of this.traffic.handovers) handover.runningCalls = 0;
      for (const program of this.programs.filter(({ isRunning }) => isRunning)) {
        if (program.isAsked) program.exit(null);
        else program.announce();
      }
      await this.settle();
      // Time passes when nothing else is pending.
      const isBusy = this.#pending.size > 0 ||
        this.programs.some(({ isRunning, isAnnounced }) => isRunning && !isAnnounced);
      if (isBusy) continue;
      if (this.clock.nextIn === undefined) return;
      this.clock.tick(this.clock.nextIn);
    }
    throw new Error("the world does not come to rest");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.supervisor.close();
    await this.calmDown();
    await closed;
  }

  #launcher(): Launcher {
    return {
      isolation: "process",
      start: async (spec) => {
        const same = this.programs.filter((it) => it.isRunning && it.spec.name === spec.name);
        const besideMax = STOP_FIRST.includes(name(spec)) ? 0 : 1;
        const program = new SimProgram(1_000 + this.programs.length, spec, this);
        this.programs.push(program);
        if (same.length > besideMax) {
          this.violations.push(`${spec.name} is started beside ${same.length}`);
        }
        if (!this.desired.get(program.worker)) this.violations.push(`${spec.name} is not desired`);
        const { replicas = 1 } = this.listed.get(program.worker) ?? {};
        const number = Number(spec.name.split("@")[1] ?? 1);
        if (number > replicas) this.violations.push(`${spec.name} is one too many`);
        await this.#moment();
        if (!this.isCalm && this.random.once(12)) {
          program.isRunning = false;
          throw new EngineError("launch_failed", "no shell");
        }
        return program;
      },
    };
  }

  async #prepare({ entry, signal }: PrepareOptions): Promise<Prepared> {
    if (this.#preparing.has(entry.name)) this.violations.push(`${entry.name} is prepared twice`);
    this.#preparing.add(entry.name);
    await this.#moment();
    this.#preparing.delete(entry.name);
    if (signal.aborted) throw new EngineError("cancelled", "no longer wanted");
    if (!this.isCalm && this.random.once(8)) throw new EngineError("install_failed", "no network");
    return {
      launcher: this.#launcher(),
      containment: undefined,
      env: { ...entry.env },
      dependencies: "none",
    };
  }

  /** Resolves at once, or when the test continues it. */
  async #moment(): Promise<void> {
    if (this.random.once(2)) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        this.#pending.delete(go);
        resolve();
      };
      this.#pending.add(go);
    });
  }
}
