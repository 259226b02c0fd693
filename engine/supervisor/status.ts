/**
 * The status of workers, as `list` and `status` report it.
 *
 * A {@linkcode StatusTracker} records what happens to one replica, dates it and logs it.
 * {@linkcode workerStatus} combines the replicas of a worker and compares what they report with the
 * processes and connections that exist at that moment: what they contradict is not shown.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { Accelerator } from "../ports/launcher.ts";
import type { Log, LogFields } from "../ports/log.ts";
import type { ReplicaStatus, WorkerState, WorkerStatus } from "../ports/supervision.ts";
import type { Usage } from "../process/usage.ts";

/** Last lines of output that are kept for a failure. */
const FAILURE_LINES = 20;

/** A text with its time, in milliseconds since 1970. */
export interface DatedText {
  readonly text: string;
  readonly atMs: number;
}

/** What a tracker knows about its replica. */
export type TrackedStatus =
  & Pick<ReplicaStatus, "state" | "since_ms" | "reason" | "pid" | "restarts" | "started_at_ms">
  & {
    readonly ready_after_ms: number | null;
    readonly lastExit: DatedText | null;
    readonly lastError: DatedText | null;
    /** Last lines of output, while it waits for a restart or has failed; empty otherwise. */
    readonly tail: readonly string[];
  };

/** Tracks the status of one replica. It decides nothing. */
export class StatusTracker {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #logFields: () => LogFields;
  readonly #changed: () => void;
  #state: WorkerState = "stopped";
  #sinceMs: number;
  #reason: string | null = null;
  #pid: number | null = null;
  #restarts = 0;
  #startedAtMs: number | null = null;
  #readyAfterMs: number | null = null;
  #lastExit: DatedText | null = null;
  #lastError: DatedText | null = null;
  #tail: string[] = [];
  #nextStartMs: number | null = null;

  /**
   * Starts as `stopped`. `logFields` name the replica in the log; `changed` is called after each
   * change of the {@linkcode status}.
   */
  constructor(
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    logFields: () => LogFields,
    changed: () => void = () => {},
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#logFields = logFields;
    this.#changed = changed;
    this.#sinceMs = clock.wall();
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** When the next start is due, in milliseconds since 1970; `null` unless it waits for one. */
  get nextStartMs(): number | null {
    return this.#state === "waiting" ? this.#nextStartMs : null;
  }

  /** Waits for the next start, in so many milliseconds. */
  wait(ms: number, reason: string): void {
    this.#nextStartMs = this.#clock.wall() + ms;
    this.set("waiting", reason);
  }

  /** Enters a state, or changes the reason of the current one. */
  set(state: WorkerState, reason: string | null = null): void {
    const isNew = state !== this.#state;
    if (!isNew && reason === this.#reason) return;
    this.#state = state;
    this.#reason = reason;
    if (isNew) this.#sinceMs = this.#clock.wall();
    this.#changed();
    if (!isNew) return;
    const fields = { ...this.#logFields(), reason: reason ?? undefined };
    if (state === "failed") this.#log.error("worker failed", fields);
    else if (state === "waiting") this.#log.warn("worker waits for its next start", fields);
    else if (state === "stopped") this.#log.info("worker stopped", fields);
    else if (state !== "ready") this.#log.debug("worker changed state", { ...fields, state });
  }

  /** A new attempt begins; output of the one before is dropped. */
  begin(state: "queued" | "starting"): void {
    this.#tail = [];
    this.set(state);
  }

  /** The program runs. */
  started(pid: number): void {
    this.#pid = pid;
    this.#startedAtMs = this.#clock.wall();
    this.#changed();
  }

  /** Another program, which runs already, takes the place of the one before. */
  switched(pid: number): void {
    this.#tail = [];
    this.started(pid);
  }

  /** The worker is ready, so many milliseconds after its start. */
  ready(afterMs: number): void {
    this.#readyAfterMs = Math.round(afterMs);
    this.set("ready");
    const fields = { ...this.#logFields(), pid: this.#pid, ms: this.#readyAfterMs };
    this.#log.info("worker ready", fields);
  }

  /** The program has ended. */
  ended(how: string): void {
    this.#lastExit = this.#dated(how);
    this.#pid = null;
    this.#startedAtMs = null;
    this.#changed();
  }

  /** Records an error, which stays after recovery. */
  error(reason: string): void {
    this.#lastError = this.#dated(reason);
    this.#changed();
  }

  /** Counts an unexpected exit. */
  countRestart(): void {
    this.#restarts++;
  }

  /** Resets the count, after a person has started or changed the worker. */
  resetRestarts(): void {
    this.#restarts = 0;
  }

  /** The program, or its installation, printed a line. */
  print(text: string): void {
    this.#tail.push(text);
    if (this.#tail.length > FAILURE_LINES) this.#tail.shift();
  }

  /** Everything that is known. */
  status(): TrackedStatus {
    const hasFailed = this.#state === "waiting" || this.#state === "failed";
    return {
      state: this.#state,
      since_ms: this.#sinceMs,
      reason: this.#reason,
      pid: this.#pid,
      restarts: this.#restarts,
      started_at_ms: this.#startedAtMs,
      ready_after_ms: this.#state === "ready" ? this.#readyAfterMs : null,
      lastExit: this.#lastExit,
      lastError: this.#lastError,
      tail: hasFailed ? [...this.#tail] : [],
    };
  }

  #dated(text: string): DatedText {
    return { text, atMs: this.#clock.wall() };
  }
}

/** What a replica reports. */
export interface ReplicaReport extends TrackedStatus {
  /** From 1. */
  readonly number: number;
  /** Ids of the connections of its program. */
  readonly connections: readonly string[];
  readonly accelerator: Accelerator | null;
}

/** What is known about the worker as a whole. */
export type WorkerFacts =
  & Pick<
    WorkerStatus,
    | "name"
    | "path"
    | "required"
    | "isolation"
    | "network"
    | "resources"
    | "dependencies"
    | "launch"
    | "log_path"
  >
  & {
    /** Why it runs otherwise than desired; `null`: it does not. */
    readonly problem: string | null;
  };

/** What reports are compared with. */
export interface Observed {
  readonly directory: Directory;
  /** By process id; a process that is missing is not checked. */
  readonly usages: ReadonlyMap<number, Usage>;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** From serving to not running. */
const FURTHEST_FIRST: readonly WorkerState[] = [
  "ready",
  "starting",
  "installing",
  "queued",
  "stopping",
  "waiting",
  "failed",
  "stopped",
];

/** The status of a worker from its replicas, of which there is at least one. */
export function workerStatus(
  { problem, ...facts }: WorkerFacts,
  reports: readonly ReplicaReport[],
  observed: Observed,
): WorkerStatus {
  const replicas = reports.map((report) => corrected(report, observed));
  const rank = ({ state }: ReplicaReport): number => FURTHEST_FIRST.indexOf(state);
  const first = replicas.reduce((best, other) => rank(other) < rank(best) ? other : best);
  const running = replicas.find(({ pid }) => pid !== null);
  const statuses = replicas.map((replica) => replicaStatus(replica, observed));
  return {
    kind: "directory",
    ...facts,
    state: first.state,
    since_ms: Math.min(
      ...replicas.filter(({ state }) => state === first.state).map(({ since_ms }) => since_ms),
    ),
    reason: problem ?? first.reason ?? reasonOfOthers(replicas),
    suspect: statuses.some(({ state }) => state === "ready") &&
      statuses.every(({ state, suspect }) => state !== "ready" || suspect),
    pid: running?.pid ?? null,
    functions: functionsOf(replicas.flatMap(({ connections }) => connections), observed.directory),
    restarts: replicas.reduce((sum, { restarts }) => sum + restarts, 0),
    started_at_ms: running?.started_at_ms ?? null,
    ready_after_ms: first.ready_after_ms,
    last_exit: latest(replicas.map(({ lastExit }) => lastExit)),
    last_error: latest(
      replicas.filter((replica) => !isHealthy(replica, observed)).map(({ lastError }) => lastError),
    ),
    tail: replicas.find(({ tail }) => tail.length > 0)?.tail ?? [],
    accelerator: running?.accelerator ?? null,
    memory_bytes: sum(statuses.map(({ memory_bytes }) => memory_bytes)),
    cpu_percent: sum(statuses.map(({ cpu_percent }) => cpu_percent)),
    replicas: statuses,
  };
}

/** How long a replica is ready until what was wrong before is of no interest any more. */
const HEALTHY_MS = 60_000;

function isHealthy({ state, since_ms }: ReplicaReport, { nowMs }: Observed): boolean {
  return state === "ready" && nowMs - since_ms >= HEALTHY_MS;
}

/** A report, corrected where processes or connections contradict it. */
function corrected(
  report: ReplicaReport,
  { directory, usages, nowMs }: Observed,
): ReplicaReport {
  const { state, pid, connections } = report;
  const changed = (state: WorkerState, reason: string): ReplicaReport => ({
    ...report,
    state,
    reason,
    since_ms: nowMs,
    ready_after_ms: null,
  });
  if (pid !== null && usages.get(pid)?.isAlive === false) {
    const isRunning = state === "ready" || state === "starting";
    // The restart policy applies once its children are gone, too.
    return { ...isRunning ? changed("queued", `Process ${pid} is gone`) : report, pid: null };
  }
  const isConnected = connections.some((id) => directory.worker(id) !== undefined);
  if (state === "ready" && !isConnected) {
    return changed("starting", "It has no connection to the engine");
  }
  const halted = pid === null ? undefined : usages.get(pid)?.halted;
  if (halted === undefined) {
    return isSuspect(report, directory) ? remarked(report, SUSPECT) : report;
  }
  const remark = `Process ${halted} is stopped by a signal; to continue it: kill -CONT ${halted}`;
  return remarked(report, remark);
}

const SUSPECT = "It does not answer; calls go to other workers that offer its functions";

function remarked(report: ReplicaReport, remark: string): ReplicaReport {
  return { ...report, reason: report.reason === null ? remark : `${report.reason}. ${remark}` };
}

/** Whether no connection of a replica that is ready answers. */
function isSuspect(
  { state, connections }: Pick<ReplicaReport, "state" | "connections">,
  directory: Directory,
): boolean {
  const views = connections.map((id) => directory.worker(id)).filter((view) => view !== undefined);
  return state === "ready" && views.length > 0 && views.every(({ suspect }) => suspect);
}

function replicaStatus(replica: ReplicaReport, { directory, usages }: Observed): ReplicaStatus {
  const usage = replica.pid === null ? undefined : usages.get(replica.pid);
  return {
    number: replica.number,
    state: replica.state,
    since_ms: replica.since_ms,
    reason: replica.reason,
    pid: replica.pid,
    suspect: isSuspect(replica, directory),
    worker_ids: replica.connections.filter((id) => directory.worker(id) !== undefined),
    restarts: replica.restarts,
    started_at_ms: replica.started_at_ms,
    last_exit: replica.lastExit?.text ?? null,
    memory_bytes: usage?.memoryBytes ?? null,
    cpu_percent: usage?.cpuPercent ?? null,
  };
}

/** Why a replica does not serve although others do. */
function reasonOfOthers(replicas: readonly ReplicaReport[]): string | null {
  if (replicas.length === 1) return null;
  const other = replicas.find(({ state, reason }) =>
    reason !== null && (state === "waiting" || state === "failed" || state === "ready")
  );
  if (!other) return null;
  const what = other.state === "ready" ? "" : ` is ${other.state}`;
  return `Replica ${other.number}${what}: ${other.reason}`;
}

function functionsOf(connections: readonly string[], directory: Directory): string[] {
  const views = connections.flatMap((id) => directory.functionsOf(id));
  return [...new Set(views.map(({ function_id }) => function_id))].sort();
}

function latest(all: readonly (DatedText | null)[]): string | null {
  const texts = all.filter((dated) => dated !== null);
  if (texts.length === 0) return null;
  return texts.reduce((best, other) => other.atMs > best.atMs ? other : best).text;
}

function sum(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  return Math.round(known.reduce((total, value) => total + value, 0) * 10) / 10;
}
