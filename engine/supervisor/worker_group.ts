/**
 * One worker of the configuration: its wish, its version and its replicas.
 *
 * One function, `#reconcile`, compares what is wanted with what there is and gives orders; it is
 * called after everything that changes either. How a replica carries an order out is its own
 * business ({@linkcode Replica}).
 *
 * The rule of a roll: a replica that does not serve gets the wanted version at once; of those that
 * serve an older one, the next gets it when all that were told have arrived. So at least one serves
 * at any time, and a version that does not become ready stops the roll by itself.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
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
import { ownerOf } from "./replica_run.ts";
import { Releases, type ReleaseTools } from "./releases.ts";
import { Replica, type ReplicaTools } from "./replica.ts";
import type { Usage } from "../process/usage.ts";
import { type ReplicaView, workerStatus } from "./status.ts";

/** What every worker works with. */
export type GroupTools = ReplicaTools & ReleaseTools & EditWatchTools & {
  /** Hears of what the programs of workers print. */
  readonly print?: PrintListener;
  /** Hears when the status of a worker says something else, by its name; never waits or throws. */
  readonly changed?: (name: string) => void;
};

/** One worker of the supervisor. */
export class WorkerGroup {
  readonly #tools: GroupTools;
  readonly #log: OutputLog;
  readonly #watch: EditWatch;
  readonly #releases: Releases;
  /** By number, from 1; also such as are no longer wanted and have not ended yet. */
  readonly #replicas = new Map<number, Replica>();
  /** Nothing begins before it has settled. */
  readonly #before: Promise<void> | undefined;
  #entry: DirectoryEntry;
  #spec: WorkerSpec | undefined;
  #dependencies: WorkerStatus["dependencies"] = null;
  #isWanted = false;
  #version = 1;
  #launch = 0;
  /** What was said of settings that have no effect; said again only when it is something else. */
  #idleSettings: string | undefined;

  /** Runs nothing before {@linkcode start}, and then only after `before` has settled. */
  constructor(entry: DirectoryEntry, tools: GroupTools, before?: Promise<void>) {
    this.#entry = entry;
    this.#tools = tools;
    this.#before = before;
    const path = `${tools.dataDirectory}/logs/${entry.name}.log`;
    this.#log = new OutputLog(path, () => tools.clock.wall());
    this.#watch = new EditWatch(tools, entry.name, (change) => this.#edited(change));
    this.#releases = new Releases(tools, {
      reading: ({ path }) => this.#watch.look(path, this.#isContained(undefined)),
      read: (spec) => this.#read(spec),
      line: (line) => this.#log.write(line),
    });
    this.#replicas.set(1, this.#replica(1));
  }

  /** What it runs by. */
  get entry(): DirectoryEntry {
    return this.#entry;
  }

  /** Process ids of its programs. */
  get pids(): number[] {
    return this.#wanted.map(({ board }) => board.view().pid).filter((pid) => pid !== null);
  }

  /** How it fares now; `usages` says what its programs use, by process id. */
  status(usages: ReadonlyMap<number, Usage>): WorkerStatus {
    const { directory, clock, platform } = this.#tools;
    const running = this.#wanted.find(({ current }) => current)?.current?.release;
    const spec = running?.spec ?? this.#spec;
    const isolation = isolationOf(running?.entry ?? this.#entry, spec, platform);
    const isContained = isolation === "microvm" && spec !== undefined;
    return workerStatus(
      {
        name: this.#entry.name,
        path: this.#entry.path,
        isolation,
        network: isContained ? spec.network : null,
        resources: isContained ? spec.resources : null,
        dependencies: this.#dependencies,
        launch: this.#launch,
        log_path: this.#log.path,
        problem: this.#problem(),
      },
      this.#wanted.map((replica, i) => viewOf(replica, i + 1)),
      { directory, usages, nowMs: clock.wall() },
    );
  }

  /** The last lines it printed, with their times. */
  logs(tail: number): Promise<string[]> {
    return this.#log.tail(tail);
  }

  /** Wants it to run; ends waits, and tries again what was given up. */
  start(): void {
    const isNews = !this.#isWanted;
    this.#isWanted = true;
    const idle = this.#wanted.filter((replica) =>
      replica.version !== 0 && (replica.isRefused || isIdle(replica))
    );
    if (isNews || idle.length > 0) this.#releases.doubt();
    for (const replica of idle) replica.run(this.#version);
    this.#reconcile();
  }

  /** Wants it not to run. */
  stop(): void {
    this.#isWanted = false;
    this.#reconcile();
  }

  /** Starts all replicas anew, one after the other. */
  restart(reinstall: boolean): void {
    this.#isWanted = true;
    this.#renew(reinstall);
  }

  /** Takes a changed entry; a worker that was stopped by hand stays so. */
  update(entry: DirectoryEntry): void {
    const isSame = isSameProgram(this.#entry, entry);
    this.#entry = entry;
    if (isSame) this.#reconcile();
    else this.#renew(false);
  }

  /** Takes what the core reports. */
  onEvent(event: EngineEvent): void {
    const launches = [...this.#replicas.values()].flatMap(({ current }) =>
      current?.readiness ?? []
    );
    if (event.type !== "worker_announced") {
      for (const launch of launches) launch.onEvent(event);
    } else ownerOf(event, this.#entry.name, launches)?.take(event.worker_id);
    if (event.type !== "worker_announced" && event.type !== "functions_changed") return;
    const isOurs = launches.some(({ lines }) => lines.includes(event.worker_id));
    if (isOurs) this.#tools.changed?.(this.#entry.name);
  }

  /**
   * The program of a replica, or of the first that runs.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when there is no such replica or it does not run.
   */
  running(number: number | undefined): Running {
    const { name } = this.#entry;
    const count = this.#wanted.length;
    if (number !== undefined && (number < 1 || number > count || !Number.isInteger(number))) {
      const message = `Worker ${name} has no replica ${number}; there are 1 to ${count}`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const asked = number === undefined ? this.#wanted : [this.#wanted[number - 1]!];
    const running = asked.map((replica) => replica.running).find((running) => running);
    if (running) return running;
    const { state } = asked[0]!.board;
    const who = number === undefined ? `Worker ${name}` : `Replica ${number} of worker ${name}`;
    const message = `${who} is ${state}, and a command is run only beside one that runs`;
    throw new EngineError("INVALID_ARGUMENTS", message, { details: { state } });
  }

  /** Stops it for good; `hurry`: without waiting for the calls it runs. */
  async close(hurry: boolean): Promise<void> {
    this.#isWanted = false;
    this.#watch[Symbol.dispose]();
    this.#reconcile();
    const replicas = [...this.#replicas.values()];
    await Promise.all(replicas.map((replica) => hurry ? replica.close() : replica.gone()));
    await this.#releases.idle(); // An installation that is no longer wanted takes time to end.
    await this.#log.close();
  }

  /** How many replicas are wanted. */
  get #count(): number {
    return this.#entry.replicas ?? this.#spec?.replicas ?? 1;
  }

  /** The replicas that are wanted, by number. */
  get #wanted(): Replica[] {
    return [...this.#replicas].filter(([number]) => number <= this.#count)
      .sort(([one], [other]) => one - other).map(([, replica]) => replica);
  }

  /** Another version is wanted. */
  #renew(reinstall: boolean): void {
    for (const replica of this.#replicas.values()) replica.hold();
    this.#version++;
    this.#releases.renew(reinstall);
    this.#reconcile();
  }

  #reconcile(): void {
    const count = this.#count;
    for (let n = 1; n <= count; n++) {
      if (!this.#replicas.has(n)) this.#replicas.set(n, this.#replica(n));
    }
    for (const [number, replica] of this.#replicas) {
      if (number <= count && this.#isWanted) continue;
      if (number > count && replica.isIdle) this.#replicas.delete(number);
      else replica.stop();
    }
    if (!this.#isWanted) return;

    const wanted = this.#wanted;
    const isOutdated = (replica: Replica): boolean => replica.version !== this.#version;
    for (const replica of wanted) {
      if (isOutdated(replica) && !replica.isReady) replica.run(this.#version);
    }
    const areAllThere = wanted.every((replica) => isOutdated(replica) || replica.hasArrived);
    if (areAllThere) wanted.find(isOutdated)?.run(this.#version);
  }

  #replica(number: number): Replica {
    const { name } = this.#entry;
    return new Replica(this.#tools, {
      // No name of a worker has an @, so no other worker's file or program is meant.
      programName: number === 1 ? name : `${name}@${number}`,
      who: (): LogFields => this.#isSingle ? { worker: name } : { worker: name, replica: number },
      release: async (waiting, signal) => {
        await this.#before;
        if (signal.aborted) return undefined;
        const release = await this.#releases.get(this.#version, this.#entry, waiting, signal);
        if (release) this.#dependencies = release.prepared.dependencies;
        return release;
      },
      line: (line) => {
        this.#log.write(this.#isSingle ? line : prefixed(line, number));
        const { clock, print } = this.#tools;
        print?.({ worker: name, replica: number, ...line, at_ms: clock.wall() });
      },
      launched: () => {
        // While others have yet to follow, the restart is not over.
        if (this.#wanted.every(({ version }) => version === this.#version)) this.#launch++;
      },
      refused: () => void this.#launch++,
      ended: () => this.#releases.doubt(),
      changed: () => this.#reconcile(),
      told: () => this.#tools.changed?.(name),
    });
  }

  get #isSingle(): boolean {
    return this.#count === 1;
  }

  #read(spec: WorkerSpec): void {
    this.#spec = spec;
    this.#watch.follow(this.#entry.path, spec.watch, this.#isContained(spec));
    this.#warnOfIdleSettings(spec);
    this.#reconcile();
  }

  #isContained(spec: WorkerSpec | undefined): boolean {
    return isolationOf(this.#entry, spec, this.#tools.platform) === "microvm";
  }

  #warnOfIdleSettings(spec: WorkerSpec): void {
    const { log, platform } = this.#tools;
    const idle = withoutEffect(spec, isolationOf(this.#entry, spec, platform));
    if (idle !== undefined && idle !== this.#idleSettings) {
      log.warn("a setting has no effect", { worker: this.#entry.name, reason: idle });
    }
    this.#idleSettings = idle;
  }

  /** Why some replicas run an older version than they are meant to. */
  #problem(): string | null {
    const wanted = this.#wanted;
    const culprit = wanted.find((replica) =>
      replica.version === this.#version && (replica.isRefused || replica.board.state === "failed")
    );
    const older = wanted.filter((replica) =>
      replica.current && replica.current.release.version !== this.#version && replica.isReady
    );
    if (!culprit || older.length === 0) return null;
    const { reason, lastError } = culprit.board.view();
    const who = wanted.length === 1 ? "it keeps" : `${older.length} of ${wanted.length} keep`;
    return `The new version did not become ready, so ${who} running the old one: ` +
      (culprit.isRefused ? lastError!.text : reason);
  }

  #edited({ paths, changedAtMs }: WorkerChange): void {
    if (!this.#isWanted || changedAtMs < this.#releases.seenAtMs) return;
    this.#tools.log.info("worker changed", {
      worker: this.#entry.name,
      files: paths.join(" "),
    });
    this.#renew(false);
  }
}

/** Whether it does nothing of itself, or not yet. */
function isIdle(replica: Replica): boolean {
  return replica.isIdle || replica.board.state === "waiting";
}

function viewOf(replica: Replica, number: number): ReplicaView {
  const { board, current } = replica;
  const lines = current?.readiness.lines ?? [];
  return { ...board.view(), number, lines, accelerator: current?.running?.accelerator ?? null };
}

function prefixed({ stream, text }: OutputLine, number: number): OutputLine {
  return { stream, text: `[${number}] ${text}` };
}

/** Whether programs that run by one entry need not be replaced to run by the other. */
function isSameProgram(one: DirectoryEntry, other: DirectoryEntry): boolean {
  return one.path === other.path && one.isolation === other.isolation &&
    one.accel === other.accel && JSON.stringify(one.env) === JSON.stringify(other.env);
}
