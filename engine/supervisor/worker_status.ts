/**
 * The status of a worker, put together from its replicas and checked against the world.
 *
 * What a replica claims is compared with the processes and the lines there are at that moment: what
 * is not so is not shown. Pure, apart from looking into the directory.
 *
 * @module
 */
import type { Directory } from "../ports/directory.ts";
import type { Accelerator } from "../ports/launcher.ts";
import type { ReplicaStatus, WorkerState, WorkerStatus } from "../ports/supervision.ts";
import type { BoardView, Dated } from "./status_board.ts";
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
