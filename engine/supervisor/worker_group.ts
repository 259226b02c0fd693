/**
 * One worker of the configuration: its desired state, its version and its replicas.
 *
 * `#reconcile` compares the desired state with the replicas and gives orders; it is called after
 * every change of either. {@linkcode Replica} carries orders out.
 *
 * A rolling restart follows one rule: replicas that do not serve get the desired version at once;
 * of those that serve an older one, the next gets it when all before it serve the new one. A
 * version that does not become ready stops the roll, and the replicas go on with the old one.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Absence } from "../ports/absences.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { OutputLine, Running } from "../ports/launcher.ts";
import type { LogFields } from "../ports/log.ts";
import type { WorkerStatus } from "../ports/supervision.ts";
import type { PrintListener } from "../ports/telemetry.ts";
import { EditWatch, type EditWatchTools, type WorkerChange } from "../watch/worker_watch.ts";
import { withoutEffect, type WorkerSpec } from "../install/manifest.ts";
import { OutputLog } from "../process/output.ts";
import { isolationOf } from "../install/prepare.ts";
import { absenceOf, LostFunctions } from "./lost_functions.ts";
import { launchOf } from "./replica_run.ts";
import { Releases, type ReleaseTools } from "./releases.ts";
import { Replica, type ReplicaTools } from "./replica.ts";
import type { Usage } from "../process/usage.ts";
import { type ReplicaReport, workerStatus } from "./status.ts";

/** What workers work with. */
export type GroupTools = ReplicaTools & ReleaseTools & EditWatchTools & {
  /** Receives what the programs of workers print. */
  readonly print?: PrintListener;
  /** Called when the status of a worker has changed, with its name; must not throw. */
  readonly changed?: (name: string) => void;
};

/** One worker and its replicas. */
export class WorkerGroup {
  readonly #tools: GroupTools;
  readonly #log: OutputLog;
  readonly #watch: EditWatch;
  readonly #releases: Releases;
  readonly #lost = new LostFunctions();
  /** By number, from 1; includes replicas that are no longer desired and have not ended yet. */
  readonly #replicas = new Map<number, Replica>();
  /** Replicas start after it has settled. */
  readonly #before: Promise<void> | undefined;
  #entry: DirectoryEntry;
  #spec: WorkerSpec | undefined;
  #dependencies: WorkerStatus["dependencies"] = null;
  #isDesired = false;
  #version = 1;
  #launch = 0;
  /** The last warning about settings without effect, to log each warning once. */
  #ineffectiveSettings: string | undefined;

  /** Starts as stopped. Replicas start after `before` has settled. */
  constructor(entry: DirectoryEntry, tools: GroupTools, before?: Promise<void>) {
    this.#entry = entry;
    this.#tools = tools;
    this.#before = before;
    const path = `${tools.dataDirectory}/logs/${entry.name}.log`;
    this.#log = new OutputLog(path, () => tools.clock.wall());
    this.#watch = new EditWatch(tools, entry.name, (change) => this.#edited(change));
    this.#releases = new Releases(tools, {
      reading: ({ path }) => this.#watch.watchDirectory(path, this.#isContained(undefined)),
      read: (spec) => this.#read(spec),
      line: (line) => this.#log.write(line),
    });
    this.#replicas.set(1, this.#replica(1));
  }

  /** Its entry in the configuration. */
  get entry(): DirectoryEntry {
    return this.#entry;
  }

  /** Process ids of its programs. */
  get pids(): number[] {
    return this.#desiredReplicas.map(({ tracker }) => tracker.status().pid).filter((pid) =>
      pid !== null
    );
  }

  /** Its status; `usages` holds what its programs use, by process id. */
  status(usages: ReadonlyMap<number, Usage>): WorkerStatus {
    const { directory, clock, platform } = this.#tools;
    const running = this.#desiredReplicas.find(({ current }) => current)?.current?.release;
    const spec = running?.spec ?? this.#spec;
    const isolation = isolationOf(running?.entry ?? this.#entry, spec, platform);
    const isContained = isolation === "microvm" && spec !== undefined;
    return workerStatus(
      {
        name: this.#entry.name,
        path: this.#entry.path,
        required: this.#entry.required ?? false,
        isolation,
        network: isContained ? spec.network : null,
        resources: isContained ? spec.resources : null,
        dependencies: this.#dependencies,
        launch: this.#launch,
        log_path: this.#log.path,
        problem: this.#problem(),
      },
      this.#desiredReplicas.map((replica, i) => reportOf(replica, i + 1)),
      { directory, usages, nowMs: clock.wall() },
    );
  }

  /** Why a function is not there that it offered before; `undefined`: it did not, or is ready. */
  absence(function_id: string, namespace: string): Absence | undefined {
    if (!this.#lost.has(function_id, namespace)) return undefined;
    const nowMs = this.#tools.clock.wall();
    const absences = this.#desiredReplicas.map(({ tracker, current }) => {
      const { state, reason, lastExit } = tracker.status();
      const connections = current?.readiness.connections ?? [];
      const isConnected = connections.some((id) => this.#tools.directory.worker(id) !== undefined);
      const next_start_ms = tracker.nextStartMs;
      const replica = { state, reason, lastExit, isConnected, next_start_ms };
      return absenceOf(this.#entry.name, replica, nowMs);
    });
    return absences.every((absence) => absence) ? absences[0] : undefined;
  }

  /** The last lines of its output, with their times. */
  logs(tail: number): Promise<string[]> {
    return this.#log.tail(tail);
  }

  /** Desires that it runs; ends waits and retries what was given up. */
  start(): void {
    const wasStopped = !this.#isDesired;
    this.#isDesired = true;
    const idle = this.#desiredReplicas.filter((replica) =>
      replica.version !== 0 && (replica.isHeldBack || isIdle(replica))
    );
    if (wasStopped || idle.length > 0) this.#releases.invalidate();
    for (const replica of idle) replica.run(this.#version);
    this.#reconcile();
  }

  /** Desires that it does not run. */
  stop(): void {
    this.#isDesired = false;
    this.#reconcile();
  }

  /** Restarts all replicas, one after the other. */
  restart(reinstall: boolean): void {
    this.#isDesired = true;
    this.#renew(reinstall);
  }

  /** Applies a changed entry; a worker that was stopped by hand stays stopped. */
  update(entry: DirectoryEntry): void {
    const isSame = isSameProgram(this.#entry, entry);
    this.#entry = entry;
    if (isSame) this.#reconcile();
    else this.#renew(false);
  }

  /** Handles an event of the core. */
  onEvent(event: EngineEvent): void {
    const launches = [...this.#replicas.values()].flatMap(({ runs }) => runs)
      .map(({ readiness }) => readiness);
    if (event.type === "worker_disconnected") {
      this.#lost.disconnected(event.worker_id, event.functions ?? []);
    }
    if (event.type !== "worker_announced") {
      for (const launch of launches) launch.onEvent(event);
    } else {
      const launch = launchOf(event, this.#entry.name, launches);
      launch?.add(event.worker_id);
      if (launch) this.#lost.announced(event.worker_id);
    }
    if (event.type !== "worker_announced" && event.type !== "functions_changed") return;
    const isOurs = launches.some(({ connections }) => connections.includes(event.worker_id));
    if (isOurs) this.#tools.changed?.(this.#entry.name);
  }

  /**
   * The program of a replica, or of the first that runs.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when there is no such replica or it does not run.
   */
  running(number: number | undefined): Running {
    const { name } = this.#entry;
    const count = this.#desiredReplicas.length;
    if (number !== undefined && (number < 1 || number > count || !Number.isInteger(number))) {
      const message = `Worker ${name} has no replica ${number}; there are 1 to ${count}`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const asked = number === undefined
      ? this.#desiredReplicas
      : [this.#desiredReplicas[number - 1]!];
    const running = asked.map((replica) => replica.running).find((running) => running);
    if (running) return running;
    const { state } = asked[0]!.tracker;
    const who = number === undefined ? `Worker ${name}` : `Replica ${number} of worker ${name}`;
    const message = `${who} is ${state}, and commands run beside running workers only`;
    throw new EngineError("INVALID_ARGUMENTS", message, { details: { state } });
  }

  /** Stops it for good; `immediately`: without waiting for its calls. */
  async close(immediately: boolean): Promise<void> {
    this.#isDesired = false;
    this.#watch[Symbol.dispose]();
    this.#reconcile();
    const replicas = [...this.#replicas.values()];
    await Promise.all(replicas.map((replica) => immediately ? replica.close() : replica.stopped()));
    await this.#releases.idle(); // An aborted installation takes time to end.
    await this.#log.close();
  }

  /** How many replicas are desired. */
  get #count(): number {
    return this.#entry.replicas ?? this.#spec?.replicas ?? 1;
  }

  /** The desired replicas, by number. */
  get #desiredReplicas(): Replica[] {
    return [...this.#replicas].filter(([number]) => number <= this.#count)
      .sort(([one], [other]) => one - other).map(([, replica]) => replica);
  }

  /** Begins a new version. */
  #renew(reinstall: boolean): void {
    for (const replica of this.#replicas.values()) replica.hold();
    this.#version++;
    this.#releases.supersede(reinstall);
    this.#reconcile();
  }

  #reconcile(): void {
    const count = this.#count;
    for (let n = 1; n <= count; n++) {
      if (!this.#replicas.has(n)) this.#replicas.set(n, this.#replica(n));
    }
    for (const [number, replica] of this.#replicas) {
      if (number <= count && this.#isDesired) continue;
      if (number > count && replica.isIdle) this.#replicas.delete(number);
      else replica.stop();
    }
    if (!this.#isDesired) return;

    const desired = this.#desiredReplicas;
    const isOutdated = (replica: Replica): boolean => replica.version !== this.#version;
    for (const replica of desired) {
      if (isOutdated(replica) && !replica.isReady) replica.run(this.#version);
    }
    const areOthersUpToDate = desired.every((replica) => isOutdated(replica) || replica.isUpToDate);
    if (areOthersUpToDate) desired.find(isOutdated)?.run(this.#version);
  }

  #replica(number: number): Replica {
    const { name } = this.#entry;
    return new Replica(this.#tools, {
      // Names of workers contain no @, so this is no name of another worker.
      programName: number === 1 ? name : `${name}@${number}`,
      logFields: (): LogFields =>
        this.#isSingle ? { worker: name } : { worker: name, replica: number },
      release: async (observer, signal) => {
        await this.#before;
        if (signal.aborted) return undefined;
        const release = await this.#releases.get(this.#version, this.#entry, observer, signal);
        if (release) this.#dependencies = release.prepared.dependencies;
        return release;
      },
      line: (line) => {
        this.#log.write(this.#isSingle ? line : prefixed(line, number));
        const { clock, print } = this.#tools;
        print?.({ worker: name, replica: number, ...line, at_ms: clock.wall() });
      },
      launching: () => {
        // A rolling restart counts once, with its last replica.
        if (this.#desiredReplicas.every(({ version }) => version === this.#version)) this.#launch++;
      },
      refused: () => void this.#launch++,
      exited: () => this.#releases.invalidate(),
      changed: () => this.#reconcile(),
      statusChanged: () => this.#tools.changed?.(name),
    });
  }

  get #isSingle(): boolean {
    return this.#count === 1;
  }

  #read(spec: WorkerSpec): void {
    this.#spec = spec;
    this.#watch.watchPaths(this.#entry.path, spec.watch, this.#isContained(spec));
    this.#warnOfIneffectiveSettings(spec);
    this.#reconcile();
  }

  #isContained(spec: WorkerSpec | undefined): boolean {
    return isolationOf(this.#entry, spec, this.#tools.platform) === "microvm";
  }

  #warnOfIneffectiveSettings(spec: WorkerSpec): void {
    const { log, platform } = this.#tools;
    const reason = withoutEffect(spec, isolationOf(this.#entry, spec, platform));
    if (reason !== undefined && reason !== this.#ineffectiveSettings) {
      log.warn("a setting has no effect", { worker: this.#entry.name, reason });
    }
    this.#ineffectiveSettings = reason;
  }

  /** Why some replicas run an older version than desired; `null`: none do. */
  #problem(): string | null {
    const desired = this.#desiredReplicas;
    const culprit = desired.find((replica) =>
      replica.version === this.#version &&
      (replica.isHeldBack || replica.tracker.state === "failed")
    );
    const older = desired.filter((replica) =>
      replica.current && replica.current.release.version !== this.#version && replica.isReady
    );
    if (!culprit || older.length === 0) return null;
    const { reason, lastError } = culprit.tracker.status();
    const why = culprit.isHeldBack ? lastError!.text : reason;
    const who = desired.length === 1
      ? "the version before keeps running"
      : `${older.length} of ${desired.length} replicas keep running the version before`;
    return `Reload failed: ${why}; ${who}`;
  }

  #edited({ paths, changedAtMs }: WorkerChange): void {
    if (!this.#isDesired || changedAtMs < this.#releases.seenAtMs) return;
    this.#tools.log.info("worker changed", {
      worker: this.#entry.name,
      files: paths.join(" "),
    });
    this.#renew(false);
  }
}

/** Whether it does not run, or waits for a restart. */
function isIdle(replica: Replica): boolean {
  return replica.isIdle || replica.tracker.state === "waiting";
}

function reportOf(replica: Replica, number: number): ReplicaReport {
  const { tracker, current } = replica;
  const connections = current?.readiness.connections ?? [];
  const accelerator = current?.running?.accelerator ?? null;
  return { ...tracker.status(), number, connections, accelerator };
}

function prefixed({ stream, text }: OutputLine, number: number): OutputLine {
  return { stream, text: `[${number}] ${text}` };
}

/** Whether two entries describe the same program, so that it need not be replaced. */
function isSameProgram(one: DirectoryEntry, other: DirectoryEntry): boolean {
  return one.path === other.path && one.isolation === other.isolation &&
    one.accel === other.accel && JSON.stringify(one.env) === JSON.stringify(other.env);
}
