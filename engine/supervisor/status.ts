/**
 * The status of a worker, put together from its replicas and checked against the world.
 *
 * What a replica claims is compared with the processes and the lines there are at that moment: what
 * is not so is not shown. Pure, apart from looking into the directory.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { Accelerator } from "../ports/launcher.ts";
import type { Log, LogFields } from "../ports/log.ts";
import type { ReplicaStatus, WorkerState, WorkerStatus } from "../ports/supervision.ts";
import type { Usage } from "../process/usage.ts";

/** What a replica says of itself. */
export interface ReplicaView extends BoardView {
  /** From 1. */
  readonly number: number;
  /** Lines that belong to its program. */
  readonly lines: readonly string[];
  readonly accelerator: Accelerator | null;
}

/** What is known of the worker as a whole. */
export type WorkerFacts =
  & Pick<
    WorkerStatus,
    "name" | "path" | "isolation" | "network" | "resources" | "dependencies" | "launch" | "log_path"
  >
  & {
    /** Why not all of it is as wanted, although it runs; `null`: all is well. */
    readonly problem: string | null;
  };

/** What claims are checked against. */
export interface World {
  readonly directory: Directory;
  /** By process id; one that is missing is not checked. */
  readonly usages: ReadonlyMap<number, Usage>;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** From the one that serves to the one that nobody wants. */
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

/** The status of a worker; `replicas` holds one at least, by number. */
export function workerStatus(
  { problem, ...facts }: WorkerFacts,
  claims: readonly ReplicaView[],
  world: World,
): WorkerStatus {
  const replicas = claims.map((claim) => checked(claim, world));
  const rank = ({ state }: ReplicaView): number => FURTHEST_FIRST.indexOf(state);
  const first = replicas.reduce((best, other) => rank(other) < rank(best) ? other : best);
  const running = replicas.find(({ pid }) => pid !== null);
  const statuses = replicas.map((replica) => replicaStatus(replica, world));
  return {
    kind: "directory",
    ...facts,
    state: first.state,
    since_ms: Math.min(
      ...replicas.filter(({ state }) => state === first.state).map(({ since_ms }) => since_ms),
    ),
    reason: problem ?? first.reason ?? reasonOfOthers(replicas),
    pid: running?.pid ?? null,
    functions: functionsOf(replicas.flatMap(({ lines }) => lines), world.directory),
    restarts: replicas.reduce((sum, { restarts }) => sum + restarts, 0),
    started_at_ms: running?.started_at_ms ?? null,
    ready_after_ms: first.ready_after_ms,
    last_exit: latest(replicas.map(({ lastExit }) => lastExit)),
    last_error: latest(replicas.map(({ lastError }) => lastError)),
    tail: replicas.find(({ tail }) => tail.length > 0)?.tail ?? [],
    accelerator: running?.accelerator ?? null,
    memory_bytes: sum(statuses.map(({ memory_bytes }) => memory_bytes)),
    cpu_percent: sum(statuses.map(({ cpu_percent }) => cpu_percent)),
    replicas: statuses,
  };
}

/** A claim, put right where the world says otherwise. */
function checked(claim: ReplicaView, { directory, usages, nowMs }: World): ReplicaView {
  const { state, pid, lines } = claim;
  const wrong = (state: WorkerState, reason: string): ReplicaView => ({
    ...claim,
    state,
    reason,
    since_ms: nowMs,
    ready_after_ms: null,
  });
  if (pid !== null && usages.get(pid)?.isAlive === false) {
    const isNews = state === "ready" || state === "starting";
    // Whether it is started again is decided when all that it had started is gone, too.
    return { ...isNews ? wrong("queued", `Process ${pid} is gone`) : claim, pid: null };
  }
  const hasLine = lines.some((id) => directory.worker(id) !== undefined);
  if (state === "ready" && !hasLine) return wrong("starting", "It has no line to the engine");
  const halted = pid === null ? undefined : usages.get(pid)?.halted;
  if (halted === undefined) return claim;
  const remark = `Process ${halted} is held by a signal; to let it go on: kill -CONT ${halted}`;
  return { ...claim, reason: claim.reason === null ? remark : `${claim.reason}. ${remark}` };
}

function replicaStatus(replica: ReplicaView, { directory, usages }: World): ReplicaStatus {
  const usage = replica.pid === null ? undefined : usages.get(replica.pid);
  return {
    number: replica.number,
    state: replica.state,
    since_ms: replica.since_ms,
    reason: replica.reason,
    pid: replica.pid,
    worker_ids: replica.lines.filter((id) => directory.worker(id) !== undefined),
    restarts: replica.restarts,
    started_at_ms: replica.started_at_ms,
    last_exit: replica.lastExit?.text ?? null,
    memory_bytes: usage?.memoryBytes ?? null,
    cpu_percent: usage?.cpuPercent ?? null,
  };
}

/** A worker may serve while some of its replicas do not. */
function reasonOfOthers(replicas: readonly ReplicaView[]): string | null {
  if (replicas.length === 1) return null;
  const other = replicas.find(({ state, reason }) =>
    reason !== null && (state === "waiting" || state === "failed")
  );
  return other ? `Replica ${other.number} is ${other.state}: ${other.reason}` : null;
}

function functionsOf(lines: readonly string[], directory: Directory): string[] {
  if (lines.length === 0) return [];
  return directory.functions()
    .filter(({ worker_ids }) => worker_ids.some((id) => lines.includes(id)))
    .map(({ function_id }) => function_id).sort();
}

function latest(all: readonly (Dated | null)[]): string | null {
  const said = all.filter((dated) => dated !== null);
  if (said.length === 0) return null;
  return said.reduce((best, other) => other.atMs > best.atMs ? other : best).text;
}

function sum(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  return Math.round(known.reduce((total, value) => total + value, 0) * 10) / 10;
}

/** Last lines that go with a failure. */
const FAILURE_LINES = 20;

/** Something that was said, and when, in milliseconds since 1970. */
export interface Dated {
  readonly text: string;
  readonly atMs: number;
}

/** What a board says; the rest of a replica's status is known elsewhere. */
export type BoardView =
  & Pick<ReplicaStatus, "state" | "since_ms" | "reason" | "pid" | "restarts" | "started_at_ms">
  & {
    readonly ready_after_ms: number | null;
    readonly lastExit: Dated | null;
    readonly lastError: Dated | null;
    /** Last lines it printed, while it waits after an end or has failed; empty otherwise. */
    readonly tail: readonly string[];
  };

/** The status of one replica. */
export class StatusBoard {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Fields that every line of the log about it has. */
  readonly #who: () => LogFields;
  readonly #changed: () => void;
  #state: WorkerState = "stopped";
  #sinceMs: number;
  #reason: string | null = null;
  #pid: number | null = null;
  #restarts = 0;
  #startedAtMs: number | null = null;
  #readyAfterMs: number | null = null;
  #lastExit: Dated | null = null;
  #lastError: Dated | null = null;
  #tail: string[] = [];

  /**
   * Starts as `stopped`; `who` gives the fields that name it in the log, `changed` hears whenever
   * the view is another.
   */
  constructor(
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    who: () => LogFields,
    changed: () => void = () => {},
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#who = who;
    this.#changed = changed;
    this.#sinceMs = clock.wall();
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Another state, with what there is to say about it. */
  set(state: WorkerState, reason: string | null = null): void {
    const isNew = state !== this.#state;
    if (!isNew && reason === this.#reason) return;
    this.#state = state;
    this.#reason = reason;
    if (isNew) this.#sinceMs = this.#clock.wall();
    this.#changed();
    if (!isNew) return;
    const fields = { ...this.#who(), reason: reason ?? undefined };
    if (state === "failed") this.#log.error("worker failed", fields);
    else if (state === "waiting") this.#log.warn("worker waits for its next start", fields);
    else if (state === "stopped") this.#log.info("worker stopped", fields);
    else if (state !== "ready") this.#log.debug("worker changed state", { ...fields, state });
  }

  /** Preparations or a program begin: lines from before say nothing of what comes. */
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

  /** It offers what it has to offer, so many milliseconds after its start. */
  ready(afterMs: number): void {
    this.#readyAfterMs = Math.round(afterMs);
    this.set("ready");
    this.#log.info("worker ready", { ...this.#who(), pid: this.#pid, ms: this.#readyAfterMs });
  }

  /** The program has ended. */
  ended(how: string): void {
    this.#lastExit = this.#dated(how);
    this.#pid = null;
    this.#startedAtMs = null;
    this.#changed();
  }

  /** Something went wrong; it is remembered when all is well again. */
  error(reason: string): void {
    this.#lastError = this.#dated(reason);
    this.#changed();
  }

  /** An end that nobody asked for. */
  countRestart(): void {
    this.#restarts++;
  }

  /** Somebody started it by hand or changed it. */
  forgetRestarts(): void {
    this.#restarts = 0;
  }

  /** A line that it, or its installation, printed. */
  print(text: string): void {
    this.#tail.push(text);
    if (this.#tail.length > FAILURE_LINES) this.#tail.shift();
  }

  /** All of it. */
  view(): BoardView {
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

  #dated(text: string): Dated {
    return { text, atMs: this.#clock.wall() };
  }
}
